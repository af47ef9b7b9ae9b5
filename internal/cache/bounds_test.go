package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// Nothing grows with traffic: a key is forgotten with its last waiter, whether the fetch succeeds,
// fails, or is left by all (R46, R69).
func TestFlightForgetsItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Flight[string, int]
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 10_000 {
			wg.Go(func() {
				_, _ = f.Do(ctx, fmt.Sprint(i), func(ctx context.Context) (int, error) {
					switch i % 4 {
					case 0:
						return 1, nil
					case 1:
						return 0, errors.New("refused")
					case 2:
						panic("bad document")
					}
					<-ctx.Done()
					return 0, ctx.Err()
				})
			})
		}
		synctest.Wait()
		f.mu.Lock()
		waiting := len(f.calls)
		f.mu.Unlock()
		cancel()
		wg.Wait()
		if waiting != 2500 || len(f.calls) != 0 {
			t.Errorf("%d fetches while they last, %d after", waiting, len(f.calls))
		}
	})
}

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
	waitFor(t, func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.growing) == 0 })
	if n, size := f.Size(); n != 0 || size != 0 || len(names(t, dir)) != 0 {
		t.Errorf("%d files of %d bytes, on disk %v", n, size, names(t, dir))
	}
}
