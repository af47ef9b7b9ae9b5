//go:build !unix

package durable

import (
	"errors"
	"os"
)

// LockFolder opens the folder; systems without flock do not keep other processes out.
func LockFolder(path string) (*os.File, error) { return os.Open(path) }

// LockFile is not there on these systems: whoever asks for it must not go on without.
func LockFile(string) (*os.File, error) { return nil, errors.New("this system cannot lock a file") }

func Unlock(f *os.File) error { return f.Close() }
