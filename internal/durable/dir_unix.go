//go:build linux || darwin

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Dir is an open private folder. It is for one goroutine at a time; Close releases it and its lock.
type Dir struct {
	path string
	file *os.File // open on the folder; owns the lock
	opt  Options
}

// Open checks an existing private folder and holds it open. The path must be absolute and clean.
// Any weakness of the folder or of an ancestor gives [CodeDirectory] with the component and the
// remedy.
func Open(path string, opt Options) (*Dir, error) {
	parent, leaf, err := openParent(path)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	fd, err := openFolder(int(parent.Fd()), leaf, unix.O_RDONLY)
	if err != nil {
		return nil, refuse(path, "cannot be opened as a folder (symbolic links are not followed)", err)
	}
	file := os.NewFile(uintptr(fd), path)
	st, err := stat(fd)
	if err == nil {
		err = checkPrivate(path, st)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Dir{path: path, file: file, opt: opt}, nil
}

// Make is [Open], but creates the folder itself with mode 0700 when it is absent; its parent must
// exist and be safe. A new folder is on the disk when Make returns.
func Make(path string, opt Options) (*Dir, error) {
	parent, leaf, err := openParent(path)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	err = opt.Take(StepMkdir, path, func() error {
		return Again(func() error { return unix.Mkdirat(int(parent.Fd()), leaf, 0o700) })
	})
	switch {
	case errors.Is(err, fs.ErrExist):
	case err != nil:
		return nil, &Error{Code: CodeReceipt, Op: string(StepMkdir), Name: path, Err: err}
	default:
		if err := opt.Take(StepSyncParent, path, parent.Sync); err != nil {
			return nil, &Error{Code: CodeReceipt, Op: string(StepSyncParent), Name: path, Landed: true, Err: err}
		}
	}
	return Open(path, opt)
}

// Path is the path that the folder was opened with.
func (d *Dir) Path() string { return d.path }

// Close releases the folder and its lock.
func (d *Dir) Close() error { return Unlock(d.file) }

func (d *Dir) fd() int { return int(d.file.Fd()) }

// Lock takes the operating system's lock on the folder without waiting: shared for readers,
// exclusive for a writer. When another process (or another [Dir] of this one) is in the way the
// error has [CodeLocked]. The lock ends with Close or with the process (S152).
func (d *Dir) Lock(shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err := Again(func() error { return unix.Flock(d.fd(), how|unix.LOCK_NB) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return &Error{Code: CodeLocked, Op: "lock", Name: d.path, Detail: "another process is using this folder; wait until it ends"}
	default:
		return &Error{Code: CodeReceipt, Op: "lock", Name: d.path, Detail: "the file system cannot lock a folder; use a local disk", Err: err}
	}
}

// openParent walks from the root to the parent of path, one component at a time and never through a
// link, and checks each ancestor.
func openParent(path string) (*os.File, string, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return nil, "", refuse(path, "must be an absolute, clean path below the root", nil)
	}
	parts := strings.Split(path[1:], "/")
	fd, err := openFolder(unix.AT_FDCWD, "/", searchOnly)
	if err != nil {
		return nil, "", refuse("/", "cannot be opened", err)
	}
	at := "/"
	for i := 0; ; i++ {
		if err := checkAncestor(fd, at); err != nil {
			_ = unix.Close(fd)
			return nil, "", err
		}
		if i == len(parts)-1 {
			break
		}
		at = filepath.Join(at, parts[i])
		next, err := openFolder(fd, parts[i], searchOnly)
		_ = unix.Close(fd)
		if err != nil {
			return nil, "", refuse(at, "an ancestor must be a folder, not a symbolic link", err)
		}
		fd = next
	}
	// The parent is opened again by its own handle, because a search-only handle cannot be synced.
	parent, err := openFolder(fd, ".", unix.O_RDONLY)
	_ = unix.Close(fd)
	if err != nil {
		return nil, "", refuse(at, "cannot be opened", err)
	}
	return os.NewFile(uintptr(parent), at), parts[len(parts)-1], nil
}

func openFolder(at int, name string, flags int) (fd int, err error) {
	err = Again(func() error {
		fd, err = unix.Openat(at, name, flags|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

func checkAncestor(fd int, at string) error {
	st, err := stat(fd)
	if err != nil {
		return refuse(at, "cannot be examined", err)
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return refuse(at, fmt.Sprintf("an ancestor must be owned by root or you, not by user %d", st.Uid), nil)
	}
	if st.Mode&0o022 != 0 {
		return refuse(at, fmt.Sprintf("an ancestor must not be writable by group or others (mode %04o); choose a folder below your home",
			st.Mode&0o7777), nil)
	}
	return nil
}

func checkPrivate(path string, st *unix.Stat_t) error {
	if int(st.Uid) != os.Geteuid() {
		return refuse(path, fmt.Sprintf("must be owned by you, not by user %d", st.Uid), nil)
	}
	if st.Mode&0o077 != 0 {
		return refuse(path, fmt.Sprintf("must not be accessible to group and others (mode %04o); run chmod 700", st.Mode&0o7777), nil)
	}
	return nil
}

func refuse(path, detail string, err error) error {
	return &Error{Code: CodeDirectory, Op: "check", Name: path, Detail: detail, Err: err}
}

func stat(fd int) (*unix.Stat_t, error) {
	var st unix.Stat_t
	err := Again(func() error { return unix.Fstat(fd, &st) })
	return &st, err
}

func statAt(dir int, name string) (*unix.Stat_t, error) {
	var st unix.Stat_t
	err := Again(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return &st, err
}

// Again repeats a call that a signal interrupted. It is for calls that can be repeated, which close
// is not.
func Again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
