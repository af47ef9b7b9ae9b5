package upstream

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How many requests may be under way to one authority (R97). A request is under way until its
// header fields are there; its body takes no place.
const (
	firstPlaces = 16   // to an authority that nothing is known of, or that has just recovered
	maxPlaces   = 1024 // after good answers enough; traffic without trouble does not feel it
)

// Bounds of waiting for a place.
const (
	lineTimeout = time.Minute
	maxInLine   = 4096 // of each authority; beyond it a request is sent away at once
)

// Budget is how many requests an authority is sent at most (R90).
type Budget struct {
	// Rate is in requests per second, Burst how many may go at once after a pause; at least 1.
	Rate  float64
	Burst int
}

// Busy is the answer to a request that was not sent, because too many others wait for the same
// authority.
type Busy struct {
	// Wait is when asking again makes sense.
	Wait time.Duration
}

// Error implements error.
func (e *Busy) Error() string {
	return fmt.Sprintf("too many requests are waiting for the upstream; try again in %v", e.Wait)
}

// line is the order in which requests go to one authority: so many at once, first come first
// served, clients before background work. It is safe for concurrent use.
type line struct {
	// closed reports whether the authority's cooldown keeps requests back; those have no business
	// in the line.
	closed func() bool
	budget *rate.Limiter // nil for none

	mu       sync.Mutex
	places   int // how many may be under way
	underWay int
	waiting  [2]list.List  // of turn: clients, then background
	epoch    int           // counts restarts, so that answers to older requests prove nothing
	refill   *time.Timer   // when the budget has room again, while somebody waits for that
	changed  chan struct{} // closed by the next change of the authority's state
	end      time.Time     // of the cooldown, as it was logged last
}

// turn brings the place of somebody who waits; a nil place says that the authority is closed.
type turn chan *place

func turnOf(e *list.Element) turn { return e.Value.(turn) } //nolint:errcheck // nothing else is in the lists

// place is a request's right to be under way.
type place struct {
	line  *line
	epoch int // of the line when it was given
}

func newLine(closed func() bool, budget Budget) *line {
	l := &line{closed: closed, places: firstPlaces, changed: make(chan struct{})}
	if budget.Rate > 0 {
		l.budget = rate.NewLimiter(rate.Limit(budget.Rate), max(1, budget.Burst))
	}
	return l
}

// enter waits for a place. It returns none, and at once, while the authority is closed: such a
// request is refused, or is the probe, which waits for nobody. The error is the context's, or a
// *Busy.
func (l *line) enter(ctx context.Context) (*place, error) {
	w, p, err := l.join(ctx)
	if w == nil {
		return p, err
	}
	patience := time.NewTimer(lineTimeout)
	defer patience.Stop()
	select {
	case p := <-turnOf(w):
		return p, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-patience.C:
		err = &Busy{Wait: transientPause}
	}
	if p := l.quit(ctx, w); p != nil { // its turn came at the same moment
		p.leave(false)
	}
	return nil, err
}

const transientPause = time.Second

// join takes a place, or stands in line for one. The cooldown is looked at under the lock, so that
// a change comes either before that look or upon a request in line.
func (l *line) join(ctx context.Context) (*list.Element, *place, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed() {
		return nil, nil, nil
	}
	queue := l.queue(ctx)
	ahead := l.waiting[0].Len()
	if IsBackground(ctx) {
		ahead += l.waiting[1].Len()
	}
	if ahead == 0 && l.free(time.Now()) {
		return nil, l.give(), nil
	}
	// others may come first
	if wait := l.estimate(ahead); queue.Len() >= maxInLine || wait > lineTimeout-lineTimeout/20 {
		return nil, nil, &Busy{Wait: max(wait, transientPause)}
	}
	e := queue.PushBack(make(turn, 1))
	l.serve(time.Now())
	return e, nil, nil
}

func (l *line) queue(ctx context.Context) *list.List {
	if IsBackground(ctx) {
		return &l.waiting[1]
	}
	return &l.waiting[0]
}

// estimate is how long the budget alone makes a request wait behind others. The caller holds mu.
func (l *line) estimate(ahead int) time.Duration {
	if l.budget == nil {
		return 0
	}
	missing := float64(ahead+1) - l.budget.TokensAt(time.Now())
	return time.Duration(max(0, missing) / float64(l.budget.Limit()) * float64(time.Second))
}

// free takes from the budget what one request costs, if there is a place for it. The caller holds
// mu.
func (l *line) free(now time.Time) bool {
	return l.underWay < l.places && (l.budget == nil || l.budget.AllowN(now, 1))
}

// give hands out a place. The caller holds mu, and has made sure of free.
func (l *line) give() *place {
	l.underWay++
	return &place{l, l.epoch}
}

// serve gives the free places to those who wait. The caller holds mu.
func (l *line) serve(now time.Time) {
	for i := range l.waiting {
		for queue := &l.waiting[i]; queue.Len() > 0; {
			if !l.free(now) {
				l.waitForBudget(now)
				return
			}
			e := queue.Front()
			queue.Remove(e)
			turnOf(e) <- l.give()
		}
	}
}

// waitForBudget comes back when the budget has room, if that is what is missing. The caller holds
// mu.
func (l *line) waitForBudget(now time.Time) {
	if l.underWay >= l.places || l.refill != nil { // whoever leaves serves again
		return
	}
	r := l.budget.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	r.CancelAt(now)
	l.refill = time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refill = nil
		l.serve(time.Now())
	})
}

// quit takes somebody out of the line, and returns the place that was just given to him.
func (l *line) quit(ctx context.Context, e *list.Element) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case p := <-turnOf(e):
		return p
	default:
		l.queue(ctx).Remove(e)
		return nil
	}
}

// leave gives the place back. A good answer makes room for one more, so that a crowd of them
// doubles what may be under way.
func (p *place) leave(good bool) {
	if p == nil {
		return
	}
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.epoch != l.epoch { // from before the last change, and no longer counted
		return
	}
	l.underWay--
	if good {
		l.places = min(l.places+1, maxPlaces)
	}
	l.serve(time.Now())
}

// restart begins anew, after the authority's state has changed: with few places, and with a look at
// the cooldown for all who wait. What is still under way from before takes none of the places: it
// may hang for long.
func (l *line) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places, l.underWay = firstPlaces, 0
	l.epoch++
	close(l.changed)
	l.changed = make(chan struct{})
	if l.closed() {
		for i := range l.waiting {
			for queue := &l.waiting[i]; queue.Len() > 0; {
				e := queue.Front()
				queue.Remove(e)
				turnOf(e) <- nil
			}
		}
	}
	l.serve(time.Now())
}

// news is closed by the next change of the authority's state.
func (l *line) news() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

type backgroundKey struct{}

// Background marks work that no client waits for: it stands in line behind all that do.
func Background(ctx context.Context) context.Context {
	return context.WithValue(ctx, backgroundKey{}, true)
}

// IsBackground reports whether the work was marked by Background.
func IsBackground(ctx context.Context) bool {
	background, _ := ctx.Value(backgroundKey{}).(bool)
	return background
}

// told notes the end of a cooldown that is logged.
func (l *line) told(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = end
}

// longer reports whether a cooldown ends a second later, or more, than was logged last, and notes
// it. Many answers come together, and each moves the end by a moment.
func (l *line) longer(end time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end.Before(l.end.Add(time.Second)) {
		return false
	}
	l.end = end
	return true
}
