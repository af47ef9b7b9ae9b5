package flight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// R46: many callers, one fetch, one outcome.
func TestGroupCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Group[string, int]
		var fetches atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				v, err := f.Do(t.Context(), "k", func(context.Context) (int, error) {
					fetches.Add(1)
					time.Sleep(time.Minute)
					return 7, nil
				})
				if v != 7 || err != nil {
					t.Errorf("Do = %d, %v", v, err)
				}
			})
		}
		wg.Wait()
		if n := fetches.Load(); n != 1 {
			t.Errorf("%d fetches", n)
		}
	})
}

// R69: the caller that began a fetch may go; the others still get the result.
func TestGroupOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Group[string, int]
		first, cancel := context.WithCancel(t.Context())
		fetch := func(ctx context.Context) (int, error) {
			select {
			case <-time.After(time.Minute):
				return 1, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := f.Do(first, "k", fetch); !errors.Is(err, context.Canceled) {
				t.Errorf("first caller: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if v, err := f.Do(t.Context(), "k", fetch); v != 1 || err != nil {
				t.Errorf("second caller: %d, %v", v, err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
	})
}

// R69: a fetch that nobody waits for is cancelled, and the next caller begins its own.
func TestGroupIsCancelledWithItsLastWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Group[string, int]
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := make(chan struct{})
		go f.Do(ctx, "k", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			close(cancelled)
			time.Sleep(time.Hour) // slow to die
			return 0, ctx.Err()
		})
		synctest.Wait()
		cancel()
		<-cancelled
		synctest.Wait()
		v, err := f.Do(t.Context(), "k", func(context.Context) (int, error) { return 2, nil })
		if v != 2 || err != nil {
			t.Errorf("next caller: %d, %v", v, err)
		}
		time.Sleep(2 * time.Hour) // let the dying fetch end inside the bubble
	})
}

func TestGroupTurnsAPanicIntoAnError(t *testing.T) {
	var f Group[string, int]
	_, err := f.Do(t.Context(), "k", func(context.Context) (int, error) { panic("bad document") })
	if err == nil || !strings.Contains(err.Error(), "bad document") {
		t.Errorf("err = %v", err)
	}
	if v, err := f.Do(t.Context(), "k", func(context.Context) (int, error) { return 3, nil }); v != 3 || err != nil {
		t.Errorf("after the panic: %d, %v", v, err)
	}
}

// Nothing grows with traffic: a key is forgotten with its last waiter, whether the fetch succeeds,
// fails, or is left by all (R46, R69).
func TestGroupForgetsItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Group[string, int]
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
