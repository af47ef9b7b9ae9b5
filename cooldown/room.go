package cooldown

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// meet makes room for an authority that was not asked about before, and takes in what other
// processes know before anything is sent. It returns nil when there is no room.
func (t *Table) meet(ctx context.Context, now time.Time, a Authority) *state {
	var known Shared
	if t.store != nil {
		var err error
		known, err = t.store.Load(ctx, a) // an error is nothing known
		if err != nil && ctx.Err() != nil {
			return new(opened(0, new(counts))) // for the next request to ask
		}
	}
	s, transition := t.admit(now, a, func(s state) (state, Transition) { return s.merged(now, known) })
	t.tell(now, transition)
	return s
}

// admit is change for an authority that may be unknown, and for which there may be no room; then it
// returns nil.
func (t *Table) admit(now time.Time, a Authority, f func(state) (state, Transition)) (*state, Transition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.view.Load()
	s := all.get(a)
	if s == nil {
		s = new(opened(0, new(counts)))
		for all.size >= t.limit {
			victim, ok := leastMissed(now, all)
			if !ok {
				return nil, Transition{}
			}
			all = all.without(victim)
		}
	}
	next, transition := f(*s)
	t.view.Store(all.with(a, &next))
	s.withdraw(&next)
	if transition.Kind != TransitionNone {
		transition.Authority = a
	}
	return &next, transition
}

// leastMissed finds the authority that may be forgotten: an open one, or else the one whose
// deadline passed longest ago, if that is MaxDelay or more and nobody probes it.
func leastMissed(now time.Time, all *view) (victim Authority, ok bool) {
	oldest := now.Add(-MaxDelay)
	for a, s := range all.all() {
		switch {
		case !s.cooling:
			return a, true
		case !s.deadline.After(oldest) && !s.probing(now):
			victim, oldest, ok = a, s.deadline, true
		}
	}
	return victim, ok
}

// full is the refusal of an authority for which there is no room: until the first of the others may
// be probed.
func (t *Table) full(now time.Time, a Authority) *Refusal {
	wait := MaxDelay
	for _, s := range t.view.Load().all() {
		wait = min(wait, s.remaining(now))
	}
	return &Refusal{Authority: a, Wait: max(wait, ProbeWait), TableFull: true}
}

// Phase is the state of an authority.
type Phase uint8

// The phases.
const (
	// PhaseOpen: ordinary traffic.
	PhaseOpen Phase = iota
	// PhaseCooling: the deadline is ahead.
	PhaseCooling
	// PhaseProbing: one request is finding out whether the authority has recovered.
	PhaseProbing
	// PhaseDue: the deadline has passed, and no request has probed yet.
	PhaseDue
)

// String is "open", "cooling", "probing" or "due".
func (p Phase) String() string {
	switch p {
	case PhaseCooling:
		return "cooling"
	case PhaseProbing:
		return "probing"
	case PhaseDue:
		return "due"
	case PhaseOpen:
	}
	return "open"
}

// State is what a table knows of one authority at one moment.
type State struct {
	Authority Authority
	Phase     Phase
	// Remaining is the time to the deadline; 0 when it has passed and while open.
	Remaining time.Duration
	// Ceiling is the fallback ceiling; Fallback while open.
	Ceiling time.Duration
	// Refused counts the refusals since the table met the authority.
	Refused uint64
}

func (s *state) report(now time.Time, a Authority) State {
	if s == nil {
		return State{Authority: a, Ceiling: Fallback}
	}
	r := State{Authority: a, Ceiling: Fallback, Refused: s.counts.refused.Load()}
	if !s.cooling {
		return r
	}
	r.Phase, r.Remaining, r.Ceiling = PhaseCooling, s.remaining(now), s.ceiling
	switch {
	case s.probing(now):
		r.Phase = PhaseProbing
	case r.Remaining == 0:
		r.Phase = PhaseDue
	}
	return r
}

// Look reports the state of one authority. Looking changes nothing: it takes no probe slot, and an
// authority that was never asked about reads as open and stays unknown.
func (t *Table) Look(now time.Time, a Authority) State {
	return t.view.Load().get(a).report(now, a)
}

// Snapshot reports all authorities that were asked about, ordered by host and port. Like Look, it
// changes nothing.
func (t *Table) Snapshot(now time.Time) []State {
	all := t.view.Load()
	states := make([]State, 0, all.size)
	for a, s := range all.all() {
		states = append(states, s.report(now, a))
	}
	slices.SortFunc(states, func(x, y State) int {
		return cmp.Or(cmp.Compare(x.Authority.Host, y.Authority.Host), cmp.Compare(x.Authority.Port, y.Authority.Port))
	})
	return states
}

// Unsettled is the number of permits that are neither settled nor lost, counted in Strict mode
// only. A test ends with it at 0.
func (t *Table) Unsettled() int { return int(t.unsettled.Load()) }
