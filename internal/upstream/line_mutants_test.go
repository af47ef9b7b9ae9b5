package upstream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lined is a line whose authority the test closes and opens, and who stands in it.
type lined struct {
	*line
	t      *testing.T
	shut   bool
	noting sync.Mutex // guards what follows
	places []*place   // that have been given and not been given back
	heard  []string   // who got an answer from the line, and what it was
}

// inLine runs a test of a line in virtual time. No place may be lost in it, and none may be taken
// twice.
func inLine(t *testing.T, b Budget, test func(*lined)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lined{t: t}
		l.line = newLine(func() bool { return l.shut }, b)
		test(l)
		synctest.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		places := 0 // those from before the last restart are not counted
		for _, p := range l.places {
			if p.epoch == l.epoch {
				places++
			}
		}
		if l.underWay != places || l.waiting[0].Len()+l.waiting[1].Len() != 0 {
			t.Errorf("%d are said to be under way, %d are; %d and %d wait",
				l.underWay, places, l.waiting[0].Len(), l.waiting[1].Len())
		}
	})
}

// enter lets somebody in, or into the line.
func (l *lined) enter(ctx context.Context, name string) {
	l.t.Helper()
	go func() {
		p, err := l.line.enter(ctx)
		l.noting.Lock()
		defer l.noting.Unlock()
		switch {
		case err != nil:
			l.heard = append(l.heard, name+" away")
		case p == nil:
			l.heard = append(l.heard, name+" closed")
		default:
			l.places = append(l.places, p)
			l.heard = append(l.heard, name)
		}
	}()
	synctest.Wait()
}

// fill takes all places.
func (l *lined) fill() {
	l.t.Helper()
	for range firstPlaces {
		l.enter(l.t.Context(), "")
	}
	l.heard = nil
}

// leave gives back the oldest place.
func (l *lined) leave(good bool) {
	l.noting.Lock()
	p := l.places[0]
	l.places = l.places[1:]
	l.noting.Unlock()
	p.leave(good)
	synctest.Wait()
}

func (l *lined) want(heard ...string) {
	l.t.Helper()
	if !slices.Equal(l.heard, heard) {
		l.t.Errorf("heard %q, want %q", l.heard, heard)
	}
	l.heard = nil
}

// R97: a restart begins with few places, whatever was learned before it, and what was sent before
// it teaches nothing.
func TestRestartForgetsPlaces(t *testing.T) {
	inLine(t, Budget{}, func(l *lined) {
		l.fill()
		for range 5 {
			l.leave(true)
		}
		if l.line.places != firstPlaces+5 {
			t.Errorf("%d places after 5 good answers", l.line.places)
		}
		l.restart()
		l.leave(true)
		if l.line.places != firstPlaces {
			t.Errorf("%d places after a restart and an old answer", l.line.places)
		}
	})
}

// R97: the places are bounded.
func TestPlacesAreBounded(t *testing.T) {
	inLine(t, Budget{}, func(l *lined) {
		for range 2 * maxPlaces {
			l.enter(l.t.Context(), "")
			l.leave(true)
		}
		if l.line.places != maxPlaces {
			t.Errorf("%d places", l.line.places)
		}
	})
}

// R97: all who wait hear at once that the authority has closed, also when every place is taken and
// the budget is spent; while it is open a restart sends nobody out of the line.
func TestRestartWakesAll(t *testing.T) {
	inLine(t, Budget{Rate: 0.1, Burst: firstPlaces}, func(l *lined) {
		l.fill()
		mirror := Background(l.t.Context())
		l.enter(mirror, "b1")
		l.enter(l.t.Context(), "c1")
		l.enter(mirror, "b2")
		l.enter(l.t.Context(), "c2")
		l.restart()
		synctest.Wait()
		l.want()
		l.shut = true
		l.restart()
		synctest.Wait()
		slices.Sort(l.heard)
		l.want("b1 closed", "b2 closed", "c1 closed", "c2 closed")
	})
}

// R90: whoever the budget would keep for longer than a minute is sent away at once, and told when
// to come; the background counts all who are ahead of it, a client only the clients.
func TestEstimateOfTheBudget(t *testing.T) {
	inLine(t, Budget{Rate: 0.1, Burst: 1}, func(l *lined) {
		ctx, leave := context.WithCancel(Background(l.t.Context()))
		l.enter(ctx, "first")
		for _, name := range []string{"b1", "b2", "b3", "b4", "b5"} {
			l.enter(ctx, name)
		}
		l.want("first") // the fifth waits for 50 s
		if _, err := l.line.enter(ctx); !isBusy(err, time.Minute) {
			t.Errorf("behind five: %v", err)
		}
		client, gone := context.WithCancel(l.t.Context())
		l.enter(client, "c1")
		l.want()
		time.Sleep(5 * time.Second) // half a request
		for range 5 {
			l.enter(client, "")
		}
		l.want()
		if _, err := l.line.enter(client); !isBusy(err, 65*time.Second) {
			t.Errorf("behind six clients: %v", err)
		}
		leave()
		gone()
	})
}

func isBusy(err error, wait time.Duration) bool {
	b, ok := errors.AsType[*Busy](err)
	return ok && b.Wait.Round(time.Millisecond) == wait
}

// R90: a request that waits for a place costs the budget nothing, and nothing waits for a budget
// that is not what is missing.
func TestBudgetIsSpentWithThePlace(t *testing.T) {
	inLine(t, Budget{Rate: 0.05, Burst: firstPlaces + 2}, func(l *lined) {
		l.fill()
		ctx, leave := context.WithCancel(l.t.Context())
		for _, name := range []string{"a", "b", "c", "d"} {
			l.enter(ctx, name)
		}
		l.want()
		if l.refill != nil {
			t.Error("waits for the budget")
		}
		l.leave(false)
		l.leave(false)
		l.want("a", "b")
		l.leave(false)
		l.want()
		refill := l.refill
		if refill == nil {
			t.Fatal("does not wait for the budget")
		}
		l.leave(false)
		if l.refill != refill {
			t.Error("waits for the budget twice")
		}
		leave()
	})
}

// R90: a budget without a burst still lets one request after the other go.
func TestBudgetWithoutABurst(t *testing.T) {
	inLine(t, Budget{Rate: 1}, func(l *lined) {
		begin := time.Now()
		l.enter(l.t.Context(), "a")
		l.enter(l.t.Context(), "b")
		time.Sleep(time.Second)
		synctest.Wait()
		l.want("a", "b")
		if time.Since(begin) != time.Second {
			t.Errorf("after %v", time.Since(begin))
		}
	})
}

// R97: whoever comes when there is room again, but before those in line have been told, lets them
// go first.
func TestNobodyJumpsTheLine(t *testing.T) {
	inLine(t, Budget{Rate: 1, Burst: 1}, func(l *lined) {
		l.enter(l.t.Context(), "first")
		l.enter(l.t.Context(), "a")
		l.refill.Stop() // which is late
		time.Sleep(time.Second)
		ctx, leave := context.WithCancel(l.t.Context())
		l.enter(ctx, "b")
		l.want("first", "a")
		leave()
	})
}

// R97: whoever goes from the line takes no place along, also when he gets it at that moment, and
// that is no good answer.
func TestGoneFromTheLine(t *testing.T) {
	cause := errors.New("gone")
	inLine(t, Budget{}, func(l *lined) {
		l.fill()
		ctx, leave := context.WithCancelCause(l.t.Context())
		l.enter(ctx, "a")
		leave(cause)
		synctest.Wait()
		l.want("a away")
		l.leave(false)
		l.enter(l.t.Context(), "b")
		l.want("b")
		for range 100 { // the turn and the end are there at once, and either may be seen first
			l.enter(l.t.Context(), "waits")
			l.mu.Lock()
			l.line.places += 2 // nobody has been told of
			l.mu.Unlock()
			p, err := l.line.enter(ctx)
			if err != nil && !errors.Is(err, cause) {
				t.Fatal(err)
			}
			if err == nil {
				p.leave(false)
			}
			l.leave(false)
			l.mu.Lock()
			if l.line.places--; l.underWay != len(l.places) || l.line.places != firstPlaces+1 {
				t.Fatalf("%d under way, %d in truth, %d places", l.underWay, len(l.places), l.line.places)
			}
			l.line.places--
			l.mu.Unlock()
		}
	})
}
