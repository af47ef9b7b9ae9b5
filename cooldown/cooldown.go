// Package cooldown decides whether a request may be sent to a throttled authority now, who probes
// it after the deadline, and how long all others wait.
//
// A [Table] holds one small state per authority (host and port). [Table.Ask] answers with a
// [Permit] or a [Refusal]; a permit is settled exactly once, with [Permit.Finish] when status and
// header fields have arrived, or with [Permit.Release] when they never did. Nothing here reads a
// clock, sleeps, logs or opens a connection: time is an argument, and a decision is a value.
//
//	permit, refusal := table.Ask(request.Context(), time.Now(), authority)
//	if refusal != nil {
//		return refusal // an error that says how long to wait
//	}
//	response, err := send()
//	if err != nil {
//		permit.Release(time.Now())
//		return err
//	}
//	permit.Finish(time.Now(), response.StatusCode, retryafter.ParseHeader(response.Header, time.Now()))
//
// The rules, in short. A 429 starts a cooldown, and so does a 503 with a usable hint; nothing else
// does. A usable hint (Retry-After, well formed and greater than zero) is kept as given up to
// MaxDelay. Without one the delay is drawn between Fallback and a ceiling that begins at Fallback
// and doubles with every failed probe up to MaxDelay. After the deadline exactly one caller gets a
// probe permit; the others are refused for ProbeWait. The probe's answer opens the authority again
// or starts the next cooldown.
//
// Times should carry a monotonic reading, as those of time.Now do: deadlines are then immune to
// steps of the wall clock.
//
// A table forgets with its process what it knows, unless it is given a Memory; a Store shares it
// between machines.
//
// Package cooldownhttp wraps all this in an http.RoundTripper.
//
// # Stability
//
// The names here stay as they are within a major version. The numbers of the rules may be tuned in
// a minor one, and new options may be added; a wait is never made shorter than the server asked
// for, up to MaxDelay.
package cooldown

import (
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// The fixed numbers of the cooldown. They are constants on purpose: there is nothing to configure.
const (
	// Fallback is the shortest delay without a usable hint, and where the ceiling begins.
	Fallback = 60 * time.Second
	// MaxDelay bounds every delay, hinted or not.
	MaxDelay = 600 * time.Second
	// ProbeWait is how long callers must wait while a probe is in flight.
	ProbeWait = time.Second
	// DefaultProbeLease is how long a probe may go without a response before another request takes
	// its place.
	DefaultProbeLease = 2 * time.Minute
	// DefaultMaxAuthorities bounds a table.
	DefaultMaxAuthorities = 1024
)

// The two statuses that can start a cooldown (RFC 6585 section 4, RFC 9110 section 15.6.4).
const (
	statusTooManyRequests    = 429
	statusServiceUnavailable = 503
)

// Throttles reports whether a response with this status and this Retry-After throttles: a 429
// always does, a 503 only with a usable hint, anything else never.
func Throttles(status int, header retryafter.Report) bool {
	switch status {
	case statusTooManyRequests:
		return true
	case statusServiceUnavailable:
		_, usable := hint(header)
		return usable
	}
	return false
}

// hint is the delay that a header asks for, within MaxDelay, when it is well formed and greater
// than zero; a fraction of a second counts.
func hint(header retryafter.Report) (time.Duration, bool) {
	delay, ok := header.Delay()
	return min(delay, MaxDelay), ok && delay > 0
}

// The sources of a delay, as in Transition.Hint.
const (
	HintSeconds  = "seconds"
	HintDate     = "date"
	HintFallback = "fallback"
)

// TransitionKind says how the state of an authority changed.
type TransitionKind uint8

// The kinds of transitions.
const (
	// TransitionNone: nothing changed.
	TransitionNone TransitionKind = iota
	// TransitionEntered: a cooldown began, for the first time or because a probe failed.
	TransitionEntered
	// TransitionExtended: a throttling answer to an older request extended the deadline of the
	// current cooldown.
	TransitionExtended
	// TransitionRecovered: a probe was answered, and ordinary traffic resumes.
	TransitionRecovered
)

// String names the kind: "none", "entered", "extended" or "recovered".
func (k TransitionKind) String() string {
	switch k {
	case TransitionEntered:
		return "entered"
	case TransitionExtended:
		return "extended"
	case TransitionRecovered:
		return "recovered"
	case TransitionNone:
	}
	return "none"
}

// Transition is what one answer changed. The zero value is no change.
type Transition struct {
	Kind      TransitionKind
	Authority Authority
	// Status is the HTTP status that caused it; 0 when the change was learned from other processes.
	Status int
	// Delay is the time from now to the deadline; 0 on recovery.
	Delay time.Duration
	// Hint is where the delay came from: HintSeconds, HintDate or HintFallback. Empty on recovery
	// and when learned from other processes.
	Hint string
	// Ceiling is the fallback ceiling after the change.
	Ceiling time.Duration
	// Probe reports that the answer was a probe's: an entry with Probe set is a failed probe.
	Probe bool
	// Shared reports that the change was learned from other processes through the Store.
	Shared bool

	kept chan struct{} // closed when the Memory has it
}
