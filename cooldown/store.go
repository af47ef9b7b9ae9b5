package cooldown

import (
	"context"
	"strconv"
	"time"
)

// Store shares the state of authorities between processes. A Table without one keeps to its own
// process; with one, callers see no difference but the effect.
//
// A table calls its store only when something happens: when it meets an authority for the first
// time, when a throttling answer arrives, when a probe slot is wanted and when a probe ends. Asking
// about an open authority never does. What others do in between has to be pushed into the table
// with Table.Observe, by a subscription or a poll of the store's own.
//
// Contract of an implementation:
//
//   - Methods are called concurrently, without any lock held, and in the middle of a request: they
//     must bound their own time, and return when the context is done.
//   - The context is the one that the permit was asked for with. Load and Acquire may be cut short
//     by its end. Throttled and Settle get its values but not its end: what an answer said, and
//     that a lease is over, is told even when the request was cancelled.
//   - The store's clock alone decides there. Durations go in and come out; clocks of processes are
//     never compared.
//   - Every change is one atomic step. Deadlines and ceilings only rise until a recovery; reading
//     never writes.
//   - At most one lease is live per authority. A token that is not the live lease's changes nothing
//     but the deadline.
//   - Generation rises with every entry, lease and recovery, and never goes back, not even when the
//     store has lost its memory (the server's clock in microseconds, or the previous value plus one
//     if that is more, will do).
//   - Whatever it keeps expires by itself, some time after it has stopped mattering.
//   - An error means that nothing is known. The table then goes on with its local state; whether
//     and how often to say so is the store's business, as it is the store that sees every error.
type Store interface {
	// Load reads what is known of an authority; the zero Shared is nothing.
	Load(ctx context.Context, a Authority) (Shared, error)
	// Throttled records a throttling answer, and returns the state after it.
	Throttled(ctx context.Context, a Authority, r ThrottleRecord) (Shared, error)
	// Acquire asks for the probe slot, and returns the state after it. When it is not granted, the
	// state says why: the deadline is ahead (Remaining), another holds the slot (Probing), or the
	// authority is open with a Generation above lease.Seen while lease.Seen is not 0. In all other
	// cases it is granted, also when the store knows nothing of the authority or only that it is
	// open: the process that asks knows of a cooldown that the store was not told of.
	Acquire(ctx context.Context, a Authority, lease Lease) (s Shared, granted bool, err error)
	// Settle ends the lease with this token, and returns the state after it: the authority has
	// recovered, or the slot is merely free again.
	Settle(ctx context.Context, a Authority, token string, recovered bool) (Shared, error)
}

// Shared is what a store knows about an authority, by its own clock at the moment of its answer.
type Shared struct {
	// Generation numbers this state; 0 means that nothing is known, and the other fields mean
	// nothing.
	Generation uint64
	// Cooling is false for an authority that has recovered.
	Cooling bool
	// Remaining is the time to the deadline, 0 when it has passed.
	Remaining time.Duration
	// Ceiling is the fallback ceiling.
	Ceiling time.Duration
	// Probing is the time for which another process still holds the probe slot, 0 when it is free.
	Probing time.Duration
}

// ThrottleRecord is a throttling answer as a store records it.
type ThrottleRecord struct {
	// Delay is the time to the deadline that the answer sets; the store keeps the later one.
	Delay time.Duration
	// Ceiling is the fallback ceiling after the answer; the store keeps the higher one.
	Ceiling time.Duration
	// Token is that of the probe that was answered, whose lease ends with it; empty for ordinary
	// requests.
	Token string
}

// Lease asks for the probe slot of an authority.
type Lease struct {
	// Token names the holder; no two leases have the same.
	Token string
	// Duration is how long the lease lives unless it is settled.
	Duration time.Duration
	// Seen is the generation that the process knows of its own cooldown, 0 when the store was not
	// told of it.
	Seen uint64
}

// recheck is how long a process takes another's probe for granted before it asks the store again.
const recheck = ProbeWait

// merged takes in what other processes know: the later deadline and the higher ceiling apply, and a
// recovery that came after what this process has seen ends the cooldown here too, unless this
// process has a probe of its own under way. News that are older than what is known change nothing.
func (s state) merged(now time.Time, sh Shared) (state, Transition) {
	switch {
	case sh.Generation == 0, sh.Generation < s.generation:
		return s, Transition{}
	case !sh.Cooling:
		return s.mergedOpen(sh)
	case !s.cooling && sh.Generation == s.generation:
		// from before the recovery that this process has seen
		return s, Transition{}
	}
	s, t := s.informed(now, sh.Remaining, sh.Ceiling)
	s.generation = sh.Generation
	if sh.Probing > 0 && s.lease == 0 {
		s.elsewhere, s.leaseUntil = true, now.Add(min(sh.Probing, recheck))
	}
	return s, t
}

// informed takes in a cooldown that was met elsewhere: the later deadline and the higher ceiling
// apply.
func (s state) informed(now time.Time, remaining, ceiling time.Duration) (state, Transition) {
	t := Transition{Shared: true}
	deadline := now.Add(min(max(0, remaining), MaxDelay))
	switch {
	case !s.cooling:
		t.Kind = TransitionEntered
		s.cooling, s.ceiling, s.valid = true, Fallback, nil
		s.until(now, deadline)
	case deadline.After(s.deadline):
		t.Kind = TransitionExtended
		s.valid = nil
		s.until(now, deadline)
	}
	s.ceiling = min(max(s.ceiling, ceiling), MaxDelay)
	if t.Kind == TransitionNone {
		return s, Transition{}
	}
	t.Delay, t.Ceiling = s.remaining(now), s.ceiling
	return s, t
}

// mergedOpen takes in that the authority is open for others.
func (s state) mergedOpen(sh Shared) (state, Transition) {
	switch {
	case !s.cooling:
		s.generation = sh.Generation
		return s, Transition{}
	case s.generation == 0 || s.generation == sh.Generation || s.lease != 0:
		// they do not know of this cooldown, or its probe decides
		return s, Transition{}
	}
	s.generation = sh.Generation
	return s.recovered(), Transition{Kind: TransitionRecovered, Ceiling: Fallback, Shared: true}
}

// Observe takes in news from the store about an authority, such as a subscription brings.
// Authorities that this process has not asked about are left alone: their first Ask loads what is
// known.
func (t *Table) Observe(now time.Time, a Authority, news Shared) {
	if t.view.Load().get(a) != nil {
		t.tell(now, t.merge(now, a, news))
	}
}

func (t *Table) merge(now time.Time, a Authority, news Shared) Transition {
	return t.change(a, func(s state) (state, Transition) { return s.merged(now, news) })
}

func (t *Table) tell(now time.Time, transition Transition) {
	t.remember(now, &transition)
	if transition.Kind != TransitionNone {
		t.onShared(transition)
	}
}

// token names a lease among those of all processes.
func (t *Table) token(lease uint64) string { return t.owner + "-" + strconv.FormatUint(lease, 10) }

// confirm asks the store for the probe slot that is already taken in this process. Without an
// answer the local decision stands.
func (t *Table) confirm(ctx context.Context, now time.Time, a Authority, lease, seen uint64) (Permit, *Refusal) {
	known, granted, err := t.store.Acquire(ctx, a, Lease{Token: t.token(lease), Duration: t.probeLease, Seen: seen})
	if err != nil {
		return t.permit(ctx, a, lease), nil
	}
	var after state
	t.tell(now, t.change(a, func(s state) (state, Transition) {
		if !granted && s.lease == lease {
			s = s.settled()
		}
		next, transition := s.merged(now, known)
		after = next
		return next, transition
	}))
	switch {
	case granted:
		return t.permit(ctx, a, lease), nil
	case !after.cooling:
		return t.permit(ctx, a, 0), nil
	}
	t.refused(a)
	if refusal := after.refusal(now, a); refusal != nil {
		return Permit{}, refusal
	}
	return Permit{}, &Refusal{Authority: a, Wait: ProbeWait, Probing: true}
}

// settle tells the store how a probe of this table ended. If it cannot be told, the lease runs out
// by itself.
func (t *Table) settle(now time.Time, p Permit, recovered bool) {
	if t.store == nil {
		return
	}
	if known, err := t.store.Settle(context.WithoutCancel(p.ctx), p.authority, t.token(p.lease), recovered); err == nil {
		t.tell(now, t.merge(now, p.authority, known))
	}
}
