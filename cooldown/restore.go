package cooldown

import "time"

// Restore takes in what an earlier process knew of an authority: the later deadline and the higher ceiling apply, within
// MaxDelay. A state that is open restores nothing; one whose deadline has passed makes the next request the probe. What
// the store of a fleet knows comes in by Observe instead.
func (t *Table) Restore(now time.Time, s State) {
	if s.Phase == PhaseOpen || t.meet(now, s.Authority) == nil {
		return
	}
	t.change(s.Authority, func(old state) (state, Transition) {
		deadline := now.Add(min(max(0, s.Remaining), MaxDelay))
		if !old.cooling {
			old.cooling, old.ceiling, old.deadline, old.valid = true, Fallback, deadline, nil
		}
		if deadline.After(old.deadline) {
			old.deadline, old.valid = deadline, nil
		}
		old.ceiling = min(max(old.ceiling, s.Ceiling), MaxDelay)
		return old, Transition{}
	})
}
