//go:build linux

package cache

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that cannot be opened for want of a descriptor is fetched past the disk; it is not
// forgotten. The store says so once, and again when it works.
func TestNoDescriptorLeft(t *testing.T) {
	f, report := reported(t, FilesOptions{Path: t.TempDir(), MaxBytes: 1 << 20, Proof: proofOf})
	content := []byte("body")
	keep(t, f, content)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	var opens atomic.Int32
	_, _, err := f.Open(nameOf(content))
	for range 3 {
		for _, c := range [][]byte{content, bytes.Repeat([]byte("another"), 50_000)} {
			if got, err := fetched(t, f, nameOf(c), from(c, nil, &opens, nil)); err != nil || !bytes.Equal(got, c) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EMFILE) || opens.Load() != 6 {
		t.Errorf("%v; %d fetches", err, opens.Load())
	}
	report.says(t, 1, 1, 0)
	file, size, err := f.Open(nameOf(content))
	if err != nil || size != 4 {
		t.Fatalf("it is forgotten: %d bytes, %v", size, err)
	}
	file.Close()
	keep(t, f, []byte("one more"))
	report.says(t, 1, 0, 0)
}
