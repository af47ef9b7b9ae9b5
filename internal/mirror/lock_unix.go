//go:build unix

package mirror

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock takes the operating system's lock on a file, which ends with the process.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the mirror's folder: %v", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil { //nolint:gosec // a descriptor
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another process is running the mirror jobs of %s; start this one with --no-worker, or choose another folder with --data", path)
		}
		return nil, fmt.Errorf("lock the mirror's folder: %v", err)
	}
	return func() {
		// A child process that is just being started holds a copy of the descriptor, so closing
		// ours would not end the lock yet.
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) //nolint:gosec // a descriptor
		_ = f.Close()
	}, nil
}
