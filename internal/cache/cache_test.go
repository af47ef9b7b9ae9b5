package cache

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestStoreForgetsTheLeastUsed(t *testing.T) {
	s := NewStore[string, int](10)
	s.Put("a", 1, 4)
	s.Put("b", 2, 4)
	s.Get("a")
	s.Put("c", 3, 4)
	if _, ok := s.Get("b"); ok {
		t.Error("b is kept although it was used least")
	}
	if v, ok := s.Get("a"); !ok || v != 1 {
		t.Error("a is lost although it was used")
	}
	s.Put("huge", 4, 11)
	if n, cost := s.Size(); n != 2 || cost != 8 {
		t.Errorf("after an oversized value: %d values, cost %d", n, cost)
	}
	s.Grow("c", 5, func(v int) bool { return v == 3 })
	if n, cost := s.Size(); n != 1 || cost != 9 {
		t.Errorf("after growth: %d values, cost %d", n, cost)
	}
	s.Grow("c", 5, func(v int) bool { return v == 99 })
	s.Put("c", 5, 2)
	s.Delete("absent")
	if v, _ := s.Get("c"); v != 5 {
		t.Errorf("c = %d", v)
	}
	if _, cost := s.Size(); cost != 2 {
		t.Errorf("cost = %d after replacement", cost)
	}
}

// A replaced value that alone is too large must not leave the old one behind.
func TestStoreDropsTheOldValueOfAnOversizedOne(t *testing.T) {
	s := NewStore[string, int](10)
	s.Put("a", 1, 4)
	s.Put("a", 2, 40)
	if v, ok := s.Get("a"); ok {
		t.Errorf("a = %d", v)
	}
}

// R46: many callers, one fetch, one outcome.
func TestFlightCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Flight[string, int]
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
func TestFlightOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Flight[string, int]
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
func TestFlightIsCancelledWithItsLastWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Flight[string, int]
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

func TestFlightTurnsAPanicIntoAnError(t *testing.T) {
	var f Flight[string, int]
	_, err := f.Do(t.Context(), "k", func(context.Context) (int, error) { panic("bad document") })
	if err == nil || !strings.Contains(err.Error(), "bad document") {
		t.Errorf("err = %v", err)
	}
	if v, err := f.Do(t.Context(), "k", func(context.Context) (int, error) { return 3, nil }); v != 3 || err != nil {
		t.Errorf("after the panic: %d, %v", v, err)
	}
}
