//go:build linux || darwin

package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Mounted reports whether the folder is on another file system than the one above it: what is
// written beside it may be gone when it is mounted again.
func (d *Dir) Mounted() (bool, error) {
	parent, _, err := openParent(d.path)
	if err != nil {
		return false, err
	}
	defer parent.Close()
	above, err := stat(int(parent.Fd()))
	if err != nil {
		return false, refuse(d.path, "cannot be examined", err)
	}
	own, err := stat(d.fd())
	if err != nil {
		return false, refuse(d.path, "cannot be examined", err)
	}
	return own.Dev != above.Dev, nil
}

// ReadBeside gives the bytes of the file beside the folder whose name is the folder's and suffix: a
// regular file of the user, closed to others, at most max bytes.
func (d *Dir) ReadBeside(suffix string, maxBytes int64) ([]byte, error) {
	parent, leaf, err := openParent(d.path)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	name := leaf + suffix
	unread := func(err error) error { return &Error{Code: CodeUnread, Op: "read", Name: name, Err: err} }
	var fd int
	err = Again(func() (err error) {
		fd, err = unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, unread(err)
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	st, err := stat(fd)
	if err != nil {
		return nil, unread(err)
	}
	if err := checkRecord(st, 1); err != nil {
		return nil, &Error{Code: CodeUnsafe, Op: "read", Name: name, Detail: err.Error()}
	}
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	switch {
	case err != nil:
		return nil, unread(err)
	case int64(len(data)) > maxBytes:
		return nil, &Error{Code: CodeUnsafe, Op: "read", Name: name, Detail: fmt.Sprintf("the file has more than %d bytes", maxBytes)}
	}
	return data, nil
}

// WriteBeside replaces that file, or makes it. A crash leaves the old bytes or the new ones; the
// new ones may be lost by a power failure. It is for the holder of the folder's lock.
func (d *Dir) WriteBeside(suffix string, data []byte) error {
	parent, leaf, err := openParent(d.path)
	if err != nil {
		return err
	}
	defer parent.Close()
	name := leaf + suffix
	temp := "." + name + ".new"
	var file *os.File
	steps := []struct {
		step Step
		call func() error
	}{
		{StepCreate, func() (err error) { file, err = createBeside(parent, temp); return err }},
		{StepWrite, func() error { _, err := file.Write(data); return err }},
		{StepSync, func() error { return file.Sync() }},
		{StepRename, func() error {
			at := int(parent.Fd())
			return Again(func() error { return unix.Renameat(at, temp, at, name) })
		}},
	}
	defer func() {
		if file != nil {
			file.Close()
		}
	}()
	for _, s := range steps {
		if err := d.opt.Take(s.step, name, s.call); err != nil {
			return &Error{Code: CodeReceipt, Op: string(s.step), Name: filepath.Join(filepath.Dir(d.path), name), Err: err}
		}
	}
	return nil
}

// createBeside makes a temporary file anew. One that an interrupted process left goes first.
func createBeside(parent *os.File, name string) (*os.File, error) {
	at := int(parent.Fd())
	if err := unlink(at, name); err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, err
	}
	var fd int
	err := Again(func() (err error) {
		fd, err = unix.Openat(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
