//go:build !unix

package durable

import "os"

// lockSpools opens the folder; systems without flock do not keep other processes out.
func lockSpools(path string) (*os.File, error) { return os.Open(path) }

func release(f *os.File) error { return f.Close() }
