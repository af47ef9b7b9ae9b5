package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Issue 13: who finds no room waits for it in order, and for so long only.
func TestOrderAndPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(10, 5*time.Second)
		first, err := b.Take(t.Context(), 8)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i, n := range []int64{10, 1, 10} { // the second would fit, and waits all the same
			wg.Go(func() {
				s, err := b.Take(t.Context(), n)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second)
				s.Release()
			})
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Errorf("granted before its turn: %v", order)
		}
		first.Release()
		wg.Wait()
		if !slices.Equal(order, []int{0, 1, 2}) {
			t.Errorf("order %v", order)
		}
		first, _ = b.Take(t.Context(), 10)
		start := time.Now()
		if _, err := b.Take(t.Context(), 1); !errors.Is(err, ErrBusy) || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Take(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		first.Release()
		huge, err := b.Take(t.Context(), 1000) // alone
		if err != nil || b.Used() != 1000 {
			t.Errorf("%v, %d at work", err, b.Used())
		}
		huge.Release()
		if b.Used() != 0 || b.beyond != nil {
			t.Errorf("%d bytes are left", b.Used())
		}
	})
}

// Issue 13: shares that grow while they hold something do not wait for each other for ever, and at
// most one of them goes beyond the bound.
func TestGrowingSharesDoNotLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, largest = 100, 60
		b := New(size, time.Hour)
		var wg sync.WaitGroup
		rng := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			steps := rng.IntN(5)
			wg.Go(func() {
				s, err := b.Take(t.Context(), 10)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Release()
				for range steps {
					time.Sleep(time.Second)
					if err := s.Grow(t.Context(), 10); err != nil {
						t.Error(err)
					}
					if used := b.Used(); used > size+largest {
						t.Errorf("%d bytes at work", used)
					}
				}
				s.Shrink(5)
				time.Sleep(time.Second)
			})
		}
		wg.Wait()
		if b.Used() != 0 || b.beyond != nil || len(b.growing)+len(b.fresh) > 0 {
			t.Errorf("left: %d bytes", b.Used())
		}
	})
}

// A share is given back by the last who holds it; a scope holds until its end and not after it.
func TestScopes(t *testing.T) {
	b := New(10, time.Second)
	var one, two Scope
	s, err := b.Take(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	Keep(With(t.Context(), &one), s)
	Keep(With(t.Context(), &two), s)
	Keep(t.Context(), s) // no scope
	s.Release()
	used := fmt.Sprint(b.Used())
	End(With(t.Context(), &one))
	one.End() // once
	Keep(With(t.Context(), &one), s)
	used += fmt.Sprint(b.Used())
	two.End()
	if used += fmt.Sprint(b.Used()); used != "440" || s.Hold() {
		t.Errorf("used %s", used)
	}
	var none *Budget
	if s, err := none.Take(t.Context(), 1<<40); s != nil || err != nil || s.Grow(t.Context(), 1) != nil || none.Used() != 0 {
		t.Error("no budget bounds something")
	}
	s.Shrink(1)
}
