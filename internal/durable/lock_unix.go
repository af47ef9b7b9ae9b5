//go:build unix

package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// LockFolder takes the folder for this process; the lock lives as long as the returned file is
// open.
func LockFolder(path string) (*os.File, error) { return taken(os.Open(path)) }

// LockFile is LockFolder for a file, which is made when it is absent.
func LockFile(path string) (*os.File, error) {
	return taken(os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600))
}

func taken(d *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	path := d.Name()
	if err := Again(func() error { return unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB) }); err != nil {
		_ = d.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("open %s: %w", path, ErrBusy)
		}
		return nil, fmt.Errorf("lock %s: %v", path, err)
	}
	return d, nil
}

// Unlock gives back the lock of a file, if there is one, and closes it. Closing alone would not
// do: a child process that is being started at this moment holds a copy of the descriptor until its
// exec, and a lock ends with the last copy.
func Unlock(f *os.File) error {
	_ = Again(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) })
	return f.Close()
}
