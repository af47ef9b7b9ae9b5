package journal

import (
	"slices"
	"time"
)

// State says whether the journal's restrictions allow a request.
type State string

// The states.
const (
	Clear      State = "clear"      // nothing was ever restricted
	Waiting    State = "waiting"    // a restriction has not ended
	Elapsed    State = "elapsed"    // every restriction has ended
	Unresolved State = "unresolved" // it cannot be known; time does not change that
)

// The reasons of Unresolved, besides those of a layout's [Facts].
const (
	// ReasonPending: a request was sent, or was about to be, and its outcome is not recorded
	ReasonPending = "pending-request"
	// ReasonNoResult: an attempt was recorded, and its outcome is not
	ReasonNoResult = "attempt-without-result"
	// ReasonMoved: the journal goes on elsewhere, or this may be an older copy of it
	ReasonMoved = "journal-moved"
	// ReasonNoEnd: a server named a delay that cannot be represented, or none is known
	ReasonNoEnd = "restriction-without-end"
	// ReasonClock: now is outside the years 1 to 9999
	ReasonClock = "clock-invalid"
	// ReasonRegression: the clock is before the receipt of an answer: it was set back
	ReasonRegression = "clock-before-last-receipt"
)

// Status is the restriction status of a journal at one moment. Its JSON form has no member that
// does not apply.
type Status struct {
	State State `json:"status"`
	// NotBeforeUTC is set when waiting or elapsed: Unix seconds at which the last restriction ends
	// or ended.
	NotBeforeUTC *int64 `json:"not_before_utc,omitempty"`
	// SecondsRemaining is set with it: whole seconds, rounded up; 0 when elapsed.
	SecondsRemaining *int64 `json:"seconds_remaining,omitempty"`
	// Reason is set when unresolved.
	Reason string `json:"reason,omitempty"`
}

// May reports whether a request may be sent.
func (s Status) May() bool { return s.State == Clear || s.State == Elapsed }

// Status works out the restriction status at now. executing names an open entry whose request is
// being made right now and which therefore has no result yet; "" if there is none. It reads nothing
// and changes nothing.
func (r *Record) Status(now time.Time, executing string) Status {
	unresolved := func(reason string) Status { return Status{State: Unresolved, Reason: reason} }
	ofEntry := r.unresolvedEntry()
	switch { // in the order of S108
	case r.Displaced():
		return r.moved()
	case r.Pending():
		return unresolved(ReasonPending)
	case ofEntry != "":
		return unresolved(ofEntry)
	case r.openWithoutEnd(executing):
		return unresolved(ReasonNoResult)
	case r.restrictionWithoutEnd():
		return unresolved(ReasonNoEnd)
	case len(r.restrictions) == 0:
		return Status{State: Clear}
	case now.IsZero() || now.UTC().Year() < 1 || now.UTC().Year() > 9999:
		return unresolved(ReasonClock)
	}
	second := now.Unix() // rounds down, as the receipts were
	var end int64 = firstSecond
	for _, e := range r.counted() {
		if t := e.Timing; t.ReceivedAtUTC != nil && second < *t.ReceivedAtUTC {
			return unresolved(ReasonRegression)
		}
		if e.Timing.NotBeforeUTC != nil {
			end = max(end, *e.Timing.NotBeforeUTC)
		}
	}
	if second < end {
		return Status{State: Waiting, NotBeforeUTC: &end, SecondsRemaining: new(end - second)}
	}
	return Status{State: Elapsed, NotBeforeUTC: &end, SecondsRemaining: new(int64)}
}

func (r *Record) moved() Status { return Status{State: Unresolved, Reason: ReasonMoved} }

// unresolvedEntry is the reason of the first entry that leaves the journal unresolved, or "".
func (r *Record) unresolvedEntry() string {
	first, reason := "", ""
	for name, f := range r.facts {
		if f.Unresolved != "" && (first == "" || name < first) {
			first, reason = name, f.Unresolved
		}
	}
	return reason
}

// openWithoutEnd reports whether an attempt has neither a result nor a restriction that names it. A
// restriction ends it: the caller writes the missing result from there.
func (r *Record) openWithoutEnd(executing string) bool {
	return slices.ContainsFunc(r.Unfinished(), func(name string) bool {
		_, ended := r.RestrictionOf(name)
		return !ended && name != executing
	})
}

// restrictionWithoutEnd reports whether a restriction has no end and no operator has stated one for
// it.
func (r *Record) restrictionWithoutEnd() bool {
	return slices.ContainsFunc(r.restrictions, func(e Restriction) bool { return e.Timing.NotBeforeUTC == nil && !r.reviewed(e) })
}

// reviewed reports whether a later operator-review names the same exchange.
func (r *Record) reviewed(e Restriction) bool {
	return slices.ContainsFunc(r.restrictions, func(o Restriction) bool {
		return o.Number > e.Number && o.Review != nil && o.Nonce != "" && o.Nonce == e.Nonce
	})
}
