//go:build !unix

package durable

import "os"

// LockFolder opens the folder; systems without flock do not keep other processes out.
func LockFolder(path string) (*os.File, error) { return os.Open(path) }

func Unlock(f *os.File) error { return f.Close() }
