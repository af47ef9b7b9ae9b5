package cooldown

import "time"

// Memory keeps the cooldowns of a table beyond its process, for the next one and for others on the
// same machine that are at work at the same time. It only remembers: unlike a Store it gives out no
// probes, and what it forgets opens nothing.
//
// Contract of an implementation:
//
//   - Methods are called concurrently, without any lock held, and in the middle of a request: they
//     must bound their own time.
//   - Time is an argument here too. now carries the wall clock, by which another process can tell
//     how old a cooldown is.
//   - A failure is the memory's own to tell; the table goes on with what it knows.
type Memory interface {
	// Recall hands what the table was not told yet to Table.Restore. It is called by Ask and, with
	// written set, by Recheck and Table.Recall: a request is then about to be written, or a fact to
	// be told, and whatever another process had remembered by now must be found. Without written,
	// which is the busier path, a look that was taken a moment ago will do.
	Recall(now time.Time, t *Table, written bool)
	// Remember is called when a cooldown began, was extended or has ended, and before the answer
	// that did it is handed on. What is to be remembered is what Table.Look says: calls may
	// overtake one another.
	Remember(now time.Time, t *Table, a Authority)
}

// Restore takes in a cooldown that was met before this process began, or by another one: the later
// deadline and the higher ceiling apply, so that nothing that is known is ever shortened. With
// nothing remaining the authority is due for a probe, and its ceiling stands as after an unanswered
// one. The Memory is not called; what changed is returned.
func (t *Table) Restore(now time.Time, a Authority, remaining, ceiling time.Duration) Transition {
	_, transition := t.admit(now, a, func(s state) (state, Transition) { return s.informed(now, remaining, ceiling) })
	return transition
}

// Recall takes in what the Memory knows, and waits until it knows what this table knows. It is for
// those who tell others what Look or Snapshot say. Without a Memory it does nothing.
func (t *Table) Recall(now time.Time) {
	if t.memory == nil {
		return
	}
	t.memory.Recall(now, t, true)
	for _, s := range t.view.Load().all() {
		s.awaitKept()
	}
}

// remember tells the memory that an authority's cooldown is another one than before, and then those
// who wait to tell others of it.
func (t *Table) remember(now time.Time, transition *Transition) {
	if t.memory == nil || transition.Kind == TransitionNone {
		return
	}
	if transition.kept != nil {
		defer close(transition.kept)
	}
	transition.kept = nil
	t.memory.Remember(now, t, transition.Authority)
}

// awaitKept returns when the Memory has the state: nobody may hear of a cooldown that the end of
// the process would make forgotten.
func (s *state) awaitKept() {
	if s != nil && s.kept != nil {
		<-s.kept
	}
}
