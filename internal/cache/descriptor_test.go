//go:build linux

package cache

import (
	"context"
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that cannot be opened for want of a descriptor is an error of that moment: it is neither
// fetched again nor forgotten.
func TestNoDescriptorLeft(t *testing.T) {
	f := openFiles(t, t.TempDir(), 1<<20)
	if err := f.Put("a", func(w io.Writer) error { _, err := w.Write([]byte("body")); return err }); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	fetches := 0
	_, _, err := f.Open("a")
	body, _, fetchErr := f.Fetch(t.Context(), "a", func(context.Context) (*Body, error) { fetches++; return nil, io.EOF })
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EMFILE) || !errors.Is(fetchErr, unix.EMFILE) || body != nil || fetches != 0 {
		t.Errorf("%v; %v, %v after %d fetches", err, body, fetchErr, fetches)
	}
	file, size, err := f.Open("a")
	if err != nil || size != 4 {
		t.Fatalf("it is forgotten: %d bytes, %v", size, err)
	}
	file.Close()
}
