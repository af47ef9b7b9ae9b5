//go:build unix

package spool

import (
	"errors"
	"os"

	"github.com/ecluse-gate/ecluse/internal/durable"

	"golang.org/x/sys/unix"
)

// Identity tells which file a file is and in which state: its device and inode, its size, and the
// times at which its content (mtime) and anything of it (ctime) last changed. While it stays the
// same nobody has written to the file through the file system. The zero Identity is no file's.
type Identity struct {
	dev, ino           uint64
	size, mtime, ctime int64
}

// IdentityOf is the identity of an open file.
func IdentityOf(f *os.File) (Identity, error) {
	var st unix.Stat_t
	err := durable.Again(func() error { return unix.Fstat(int(f.Fd()), &st) })
	if err != nil {
		return Identity{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return identity(&st), nil
}

func identityAt(path string) (Identity, error) {
	var st unix.Stat_t
	if err := durable.Again(func() error { return unix.Lstat(path, &st) }); err != nil {
		return Identity{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return identity(&st), nil
}

func identity(st *unix.Stat_t) Identity {
	return Identity{uint64(st.Dev), uint64(st.Ino), st.Size, st.Mtim.Nano(), st.Ctim.Nano()} //nolint:unconvert // types differ by system
}

// Size is the file's size.
func (i Identity) Size() int64 { return i.size }

func (i Identity) sameFile(o Identity) bool {
	return i.dev == o.dev && i.ino == o.ino && i.size == o.size
}

// IsFull reports an error of a disk that has no room, or none for this user, or none for a file of
// this size.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// IsExhausted reports that the process or the system has no descriptor or memory left: an error
// that says nothing of the file.
func IsExhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}
