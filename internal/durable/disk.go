package durable

import (
	"errors"
	"io"
)

// DiskError is an error of the disk, told apart from those of what is on its way there.
type DiskError struct{ Err error }

// Error is what the system said.
func (e *DiskError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *DiskError) Unwrap() error { return e.Err }

// OfDisk marks an error as one of the disk; nil stays nil.
func OfDisk(err error) error {
	if err == nil {
		return nil
	}
	return &DiskError{err}
}

// IsDisk reports an error of the disk.
func IsDisk(err error) bool {
	_, ok := errors.AsType[*DiskError](err)
	return ok
}

// DiskWriter marks the errors of a file that is written.
type DiskWriter struct{ To io.Writer }

// Write implements io.Writer.
func (w DiskWriter) Write(p []byte) (int, error) {
	n, err := w.To.Write(p)
	return n, OfDisk(err)
}
