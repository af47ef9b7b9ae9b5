package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// C59, and nothing grows with traffic: a file that cannot be had leaves nothing behind, in memory
// or on the disk.
func TestFilesForgetWhatCannotBeHad(t *testing.T) {
	dir := t.TempDir()
	f := openFiles(t, dir, 1<<20)
	for i := range 10_000 {
		if _, _, err := f.Fetch(t.Context(), fmt.Sprint(i), func(context.Context) (*Body, error) { return nil, errors.New("refused") }); err == nil {
			t.Fatal("it is there")
		}
	}
	waitFor(t, func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.active) == 0 })
	if n, size := f.Size(); n != 0 || size != 0 || len(names(t, dir)) != 0 {
		t.Errorf("%d files of %d bytes, on disk %v", n, size, names(t, dir))
	}
}
