//go:build !unix

package spool

import "os"

// Identity tells which file a file is and in which state, as far as the system says.
type Identity struct{ size, mtime int64 }

// IdentityOf is the identity of an open file.
func IdentityOf(f *os.File) (Identity, error) {
	info, err := f.Stat()
	if err != nil {
		return Identity{}, err
	}
	return Identity{info.Size(), info.ModTime().UnixNano()}, nil
}

func identityAt(path string) (Identity, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return Identity{}, err
	}
	return Identity{info.Size(), info.ModTime().UnixNano()}, nil
}

// Size is the file's size.
func (i Identity) Size() int64 { return i.size }

func (i Identity) sameFile(o Identity) bool { return i.size == o.size }

// IsFull is not known on this system.
func IsFull(error) bool { return false }

// IsExhausted is not known on this system.
func IsExhausted(error) bool { return false }
