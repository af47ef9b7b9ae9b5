package record

import (
	"github.com/ecluse-gate/ecluse/journal"
)

// The results of looking for a file on the server.
const (
	Confirmed = "confirmed" // an acknowledgement or an exact readback proves it
	Pending   = "pending"   // accepted, and not proved yet
	Failed    = "failed"
)

// State is where one file is, as far as records tell.
type State struct {
	// Upload is one of NotAttempted, Accepted, Rejected, Unverified, Reused.
	Upload string
	// Verification is Confirmed, Pending, Failed or "".
	Verification string
	// Attempts is how often the file was sent: 0, 1 or 2.
	Attempts int
	// Status and RequestID are those of the last answer; nil when there was none.
	Status    *int
	RequestID *string
	// FileID is the id that the last acknowledgement or proof gave, "" without one.
	FileID string
}

// Throttled reports whether the last answer was a 429.
func (s State) Throttled() bool { return s.Status != nil && *s.Status == 429 }

// States works out the state of each file from a verified record: the same function for the run
// that writes it and for every later one. A retry attempt resets any earlier proof.
func States(r *journal.Record, files int) []State {
	all := make([]State, files)
	for i := range all {
		all[i] = StateOf(r, i)
	}
	return all
}

// StateOf is the state of one file; see States.
func StateOf(r *journal.Record, number int) State {
	s := State{Upload: NotAttempted}
	for _, pair := range [][2]string{{TypeAttempt, TypeResult}, {TypeRetryAttempt, TypeRetryResult}} {
		if _, ok := r.Entry(journal.Numbered(pair[0], number)); !ok {
			return s
		}
		s = State{Upload: Unverified, Attempts: s.Attempts + 1}
		if e, ok := r.Entry(journal.Numbered(pair[1], number)); ok {
			var result Result
			if e.Decode(&result) == nil { // checked when the journal was loaded
				s.Apply(result)
			}
		}
	}
	return s
}

// Apply takes over what a result says.
func (s *State) Apply(r Result) {
	s.Upload, s.Status, s.RequestID, s.FileID = r.Upload, r.Status, r.RequestID, deref(r.FileID)
	switch {
	case r.FileProof != nil:
		s.Verification = Confirmed
	case r.Upload == Accepted:
		s.Verification = Pending
	case r.Upload == Rejected:
		s.Verification = Failed
	}
}

// Complete writes the results that a killed run had received but not recorded: the restriction
// names the attempt, and the result follows from it (crash table). It reports how many it wrote.
func Complete(j *journal.Journal) (int, error) {
	done := 0
	for _, name := range j.Record().Unfinished() {
		e, ok := j.Record().RestrictionOf(name)
		attempt, _ := j.Record().Entry(name)
		if !ok || e.Review != nil {
			continue // an attempt that an operator has looked at has no result for ever
		}
		if _, err := j.Append(ResultName(attempt), Throttled(e)); err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

// ResultName is the name of the result of an attempt.
func ResultName(attempt journal.Entry) string {
	if attempt.Type == TypeRetryAttempt {
		return journal.Numbered(TypeRetryResult, attempt.Number)
	}
	return journal.Numbered(TypeResult, attempt.Number)
}

// Throttled is the result that a recorded restriction stands for.
func Throttled(r journal.Restriction) Result {
	result := Result{Upload: Rejected, Status: new(429), Nonce: &r.Nonce, ThrottleEvent: &r.Digest}
	if r.RequestID != "" {
		result.RequestID = &r.RequestID
	}
	return result
}
