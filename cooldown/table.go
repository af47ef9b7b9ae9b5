package cooldown

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a Table. The zero value is ready for use.
type Options struct {
	// Rand returns a number from 0 up to, but not including, n, which is at least 1. It draws the
	// fallback delays. Nil means the system's random source. It is called with a lock held and must
	// not call the table.
	Rand func(n int64) int64
	// MaxAuthorities bounds the table; 0 means DefaultMaxAuthorities. At the bound, open
	// authorities are evicted for new ones, then those whose deadline passed longest ago, by
	// MaxDelay at least; while there are none, new authorities are refused.
	MaxAuthorities int
	// ProbeLease is how long a probe may go without a response before another request takes its
	// place; 0 means DefaultProbeLease. It should be longer than the time limit of a request, so
	// that it expires only for probes that are lost.
	ProbeLease time.Duration
	// Store shares the state with other processes. Nil keeps it in this one.
	Store Store
	// Memory keeps cooldowns beyond this process. Nil forgets them with it.
	Memory Memory
	// OnShared is called for every transition that came from the Store rather than from an answer
	// to a permit of this table. It may be nil. It is called without a lock held, possibly by
	// several goroutines at once.
	OnShared func(Transition)
	// Strict is for tests: with it every permit is tracked, at the cost of an allocation, and
	// Strict is called for each one that is settled twice (in the goroutine that does it) or never
	// (in the garbage collector's).
	Strict func(Misuse)
}

// Table holds the cooldown state of all authorities of a process. It is safe for concurrent use.
// Make one with New, and share it between everything that talks to the same authorities.
//
// Asking about an open authority is one atomic load and a map look-up, and so is a refusal; only
// changes take a lock. In return each change, and there are few, copies the map.
type Table struct {
	// view is replaced, never changed: readers load it and need nothing else.
	view atomic.Pointer[view]

	// mu serialises the changes of view and guards lastLease. It is never held across a call of the
	// store.
	mu        sync.Mutex
	lastLease uint64

	// The rest is fixed by New, apart from the counter of Strict mode.
	draw       func(ceiling time.Duration) time.Duration
	limit      int
	probeLease time.Duration
	store      Store
	memory     Memory
	owner      string // makes this table's leases differ from those of all others
	onShared   func(Transition)
	strict     func(Misuse)
	unsettled  atomic.Int64
}

// counts are shared by all states of an authority.
type counts struct{ refused atomic.Uint64 }

// New returns an empty table.
func New(o Options) *Table {
	t := &Table{
		limit: o.MaxAuthorities, probeLease: o.ProbeLease, store: o.Store, memory: o.Memory, onShared: o.OnShared, strict: o.Strict, owner: rand.Text(),
	}
	if t.limit <= 0 {
		t.limit = DefaultMaxAuthorities
	}
	if t.probeLease <= 0 {
		t.probeLease = DefaultProbeLease
	}
	if t.onShared == nil {
		t.onShared = func(Transition) {}
	}
	random := o.Rand
	if random == nil {
		random = systemRand
	}
	t.draw = func(ceiling time.Duration) time.Duration {
		span := int64(ceiling - Fallback)
		if span <= 0 {
			return Fallback
		}
		return Fallback + time.Duration(min(max(0, random(span+1)), span))
	}
	t.view.Store(&view{hosts: map[string][]portState{}})
	return t
}

// systemRand draws from the system's source. Its bias towards small numbers, one part in 2^24 at
// most, does not matter to a jitter.
func systemRand(n int64) int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return int64(binary.NativeEndian.Uint64(b[:]) % uint64(n))
}

// Ask decides whether a request may be sent to the authority now. It returns a permit, which must
// be settled, or a refusal, which says how long to wait. Ask never waits; with a Store it takes a
// round trip of the store's when a probe is due or the authority is new, and with a Memory a
// refusal is returned once that has kept the cooldown, so that no caller hears of one that the end
// of the process would lose. The context is the request's: it goes to the Store, and decides
// nothing here.
func (t *Table) Ask(ctx context.Context, now time.Time, a Authority) (Permit, *Refusal) {
	if t.memory != nil {
		t.memory.Recall(now, t, false)
	}
	s := t.view.Load().get(a)
	if s != nil && !s.cooling && t.strict == nil {
		return Permit{table: t, ctx: ctx, authority: a}, nil
	}
	return t.askSlow(ctx, now, a, s)
}

func (t *Table) askSlow(ctx context.Context, now time.Time, a Authority, s *state) (Permit, *Refusal) {
	if s == nil {
		if s = t.meet(ctx, now, a); s == nil {
			return Permit{}, t.full(now, a)
		}
	}
	if !s.cooling {
		return t.permit(ctx, a, 0), nil
	}
	if refusal := s.refusal(now, a); refusal != nil {
		s.counts.refused.Add(1)
		s.awaitKept()
		return Permit{}, refusal
	}
	return t.askProbe(ctx, now, a)
}

func (t *Table) permit(ctx context.Context, a Authority, lease uint64) Permit {
	p := Permit{table: t, ctx: ctx, authority: a, lease: lease}
	if t.strict != nil {
		p.receipt = t.newReceipt(Misuse{Kind: MisuseLost, Authority: a, Probe: p.Probe()})
	}
	return p
}

// askProbe takes the probe slot, if it is still free: look and take are one step under the lock.
func (t *Table) askProbe(ctx context.Context, now time.Time, a Authority) (Permit, *Refusal) {
	var lease, seen uint64
	var refusal *Refusal
	t.change(a, func(s state) (state, Transition) {
		if refusal = s.refusal(now, a); refusal != nil || !s.cooling {
			return s, Transition{}
		}
		t.lastLease++
		lease, seen = t.lastLease, s.generation
		return s.leased(lease, now.Add(t.probeLease)), Transition{}
	})
	switch {
	case refusal != nil:
		t.refused(a)
		t.view.Load().get(a).awaitKept()
		return Permit{}, refusal
	case lease == 0 || t.store == nil:
		return t.permit(ctx, a, lease), nil
	}
	return t.confirm(ctx, now, a, lease, seen)
}

func (t *Table) refused(a Authority) {
	if s := t.view.Load().get(a); s != nil {
		s.counts.refused.Add(1)
	}
}

// change replaces the state of one authority by what f makes of it. f is called with the lock held.
func (t *Table) change(a Authority, f func(state) (state, Transition)) Transition {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.view.Load()
	s := old.get(a)
	if s == nil { // it had to give way in a full table, but what is known now must be kept
		s = new(opened(0, new(counts)))
	}
	next, transition := f(*s)
	if t.memory != nil && transition.Kind != TransitionNone {
		transition.kept = make(chan struct{})
		next.kept = transition.kept
	}
	if next != *s {
		t.view.Store(old.with(a, &next))
	}
	s.withdraw(&next)
	if transition.Kind != TransitionNone {
		transition.Authority = a
	}
	return transition
}

// throttle takes in a throttling answer, and tells the other processes.
func (t *Table) throttle(now time.Time, p Permit, a answer) Transition {
	transition := t.change(p.authority, func(s state) (state, Transition) { return s.throttled(now, a, t.draw) })
	t.remember(now, &transition)
	if t.store == nil || transition.Kind == TransitionNone {
		return transition
	}
	r := ThrottleRecord{Delay: transition.Delay, Ceiling: transition.Ceiling}
	if transition.Probe {
		r.Token = t.token(p.lease)
	}
	known, err := t.store.Throttled(context.WithoutCancel(p.ctx), p.authority, r)
	if err != nil {
		return transition
	}
	more := t.merge(now, p.authority, known)
	t.remember(now, &more)
	if more.Kind == TransitionExtended {
		transition.Delay, transition.Ceiling = more.Delay, more.Ceiling
	}
	return transition
}

// recover takes in an answer to a probe that does not throttle.
func (t *Table) recover(now time.Time, p Permit, status int) Transition {
	transition := t.change(p.authority, func(s state) (state, Transition) {
		if s.lease != p.lease {
			return s, Transition{}
		}
		return s.recovered(), Transition{Kind: TransitionRecovered, Status: status, Ceiling: Fallback, Probe: true}
	})
	if transition.Kind == TransitionRecovered {
		t.remember(now, &transition)
		t.settle(now, p, true)
	}
	return transition
}

// release takes back a probe that was not answered.
func (t *Table) release(now time.Time, p Permit) {
	held := false
	t.change(p.authority, func(s state) (state, Transition) {
		if held = s.lease == p.lease; held {
			s = s.settled()
		}
		return s, Transition{}
	})
	if held {
		t.settle(now, p, false)
	}
}
