package durable

import (
	"errors"
	"fmt"
	"os"
)

// Scratch makes a file in dir that has no name any more, for what is only passing through: it ends
// with its last descriptor, so that a process that is killed leaves nothing behind. Nothing in it
// is durable. Its errors are a *DiskError.
func Scratch(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "scratch-*")
	if err != nil {
		return nil, OfDisk(fmt.Errorf("create a temporary file: %w", err))
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, OfDisk(errors.Join(fmt.Errorf("create a temporary file: %w", err), f.Close()))
	}
	return f, nil
}

// MakeAll makes a folder and the folders above it, private to their user. Unlike [Make] it asks
// nothing of them.
func MakeAll(path string) error { return os.MkdirAll(path, 0o700) }
