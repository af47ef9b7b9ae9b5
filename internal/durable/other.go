//go:build !linux && !darwin

package durable

import "errors"

// ErrUnsupported is the cause of every refusal on this system: its access control lists are not
// checked yet, and an unchecked folder is not a private one.
var ErrUnsupported = errors.New("private folders are not supported on this system yet; use Linux or macOS")

// Dir is an open private folder; this system cannot open one yet.
type Dir struct{}

// Open refuses.
func Open(path string, _ Options) (*Dir, error) {
	return nil, &Error{Code: CodeDirectory, Op: "open", Name: path, Err: ErrUnsupported}
}

// Make refuses.
func Make(path string, opt Options) (*Dir, error) { return Open(path, opt) }

// Path is empty.
func (*Dir) Path() string { return "" }

// Close does nothing.
func (*Dir) Close() error { return nil }

// Lock refuses.
func (*Dir) Lock(bool) error { return ErrUnsupported }

// Publish refuses.
func (*Dir) Publish(string, []byte) error { return ErrUnsupported }

// Read refuses.
func (*Dir) Read(string, int64) ([]byte, error) { return nil, ErrUnsupported }

// Remove refuses.
func (*Dir) Remove(string, []byte) error { return ErrUnsupported }

// List refuses.
func (*Dir) List(int) (names, leftovers []string, err error) { return nil, nil, ErrUnsupported }

// Settle refuses.
func (*Dir) Settle() ([]string, error) { return nil, ErrUnsupported }

// Mounted refuses.
func (*Dir) Mounted() (bool, error) { return false, ErrUnsupported }

// ReadBeside refuses.
func (*Dir) ReadBeside(string, int64) ([]byte, error) { return nil, ErrUnsupported }

// WriteBeside refuses.
func (*Dir) WriteBeside(string, []byte) error { return ErrUnsupported }
