package cooldown

import (
	"time"
)

// state is one authority's state at one moment. It is immutable: a change makes a new one, so that
// readers need no lock.
type state struct {
	// cooling is false while the authority is open; then only counts and generation mean anything.
	cooling  bool
	deadline time.Time     // nothing is sent before it
	most     time.Duration // what was left of it when it was set: nobody is told more
	ceiling  time.Duration // of the next fallback delay
	// lease names the probe under way in this process, or is 0. It is the owner token: it is never
	// given out twice by one table.
	lease      uint64
	leaseUntil time.Time // when the lease, or the knowledge of a probe elsewhere, runs out
	elsewhere  bool      // another process probes
	generation uint64    // of the shared state that this one has seen; 0 without a store
	// valid is closed when the permits given out in this state are withdrawn; nil while none can be
	// held.
	valid  chan struct{}
	kept   chan struct{} // closed when the Memory has this state; nil when it has nothing to learn
	counts *counts
}

// opened is the state of an authority that nothing is known of, or that has recovered.
func opened(generation uint64, c *counts) state {
	return state{generation: generation, valid: make(chan struct{}), counts: c}
}

// withdraw tells the holders of permits that were given out in this state when they do not hold in
// the next.
func (s *state) withdraw(next *state) {
	if s.valid != nil && next.valid != s.valid {
		close(s.valid)
	}
}

// probing reports whether somebody holds the probe slot. A lease that has run out is nobody's.
func (s *state) probing(now time.Time) bool {
	return (s.lease != 0 || s.elsewhere) && now.Before(s.leaseUntil)
}

// remaining is the time to the deadline, at least 0. A caller's clock reading may be a little older
// than the one with which the deadline was set, and must not advertise more than was asked for.
func (s *state) remaining(now time.Time) time.Duration {
	return min(max(0, s.deadline.Sub(now)), s.most, MaxDelay)
}

// until sets the deadline.
func (s *state) until(now, deadline time.Time) {
	s.deadline, s.most = deadline, deadline.Sub(now)
}

// refusal is the answer to somebody who asks now, or nil when the slot is free or the authority
// open.
func (s *state) refusal(now time.Time, a Authority) *Refusal {
	switch {
	case !s.cooling:
		return nil
	case s.probing(now):
		return &Refusal{Authority: a, Wait: ProbeWait, Probing: true}
	case now.Before(s.deadline):
		return &Refusal{Authority: a, Wait: s.remaining(now)}
	}
	return nil
}

// settled takes the probe slot away from its holder.
func (s state) settled() state {
	s.lease, s.leaseUntil, s.elsewhere, s.valid = 0, time.Time{}, false, nil
	return s
}

// leased gives the free probe slot to a new holder.
func (s state) leased(lease uint64, until time.Time) state {
	s = s.settled()
	s.lease, s.leaseUntil, s.valid = lease, until, make(chan struct{})
	return s
}

// recovered opens the authority.
func (s state) recovered() state {
	return opened(s.generation, s.counts)
}

// answer is a throttling response, as far as the state needs it.
type answer struct {
	status int
	hint   string
	delay  time.Duration // of the hint; 0 for HintFallback
	lease  uint64        // the probe permit that it answers, or 0
}

// throttled takes in a throttling answer. draw gives the fallback delay for a ceiling.
func (s state) throttled(now time.Time, a answer, draw func(ceiling time.Duration) time.Duration) (state, Transition) {
	t := Transition{Kind: TransitionEntered, Status: a.status, Hint: a.hint}
	own := s.cooling && a.lease != 0 && a.lease == s.lease
	switch {
	case !s.cooling:
		s.ceiling = Fallback
	case own: // only a failed probe doubles
		s.ceiling, t.Probe = min(2*s.ceiling, MaxDelay), true
	}
	delay := a.delay
	if a.hint == HintFallback {
		delay = draw(s.ceiling)
	}
	deadline := now.Add(delay)
	switch {
	case !s.cooling:
		s.cooling, s.valid = true, nil
		s.until(now, deadline)
	case own: // an answer to an older request may have asked for more while the probe ran
		s = s.settled()
		s.until(now, later(s.deadline, deadline))
	case deadline.After(s.deadline):
		s.valid, t.Kind = nil, TransitionExtended
		s.until(now, deadline)
	default:
		return s, Transition{}
	}
	t.Delay, t.Ceiling = s.remaining(now), s.ceiling
	return s, t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
