//go:build !unix

package durable

import "os"

func OpenPlain(path string) (*os.File, error) { return os.Open(path) }

func unchanged(_ *os.File, path string, then os.FileInfo) bool { return sameThere(path, then) }
