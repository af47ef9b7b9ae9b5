package recovery

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/requestid"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// The fixed limits.
const (
	// MaxDelay is the longest wait; exactly as much is allowed.
	MaxDelay = 30 * time.Second
	// MaxBudget is the longest life of a sequence.
	MaxBudget = 60 * time.Second
	// FallbackDelay stands in for a missing or malformed Retry-After.
	FallbackDelay = time.Second
	// MaxIDs is how many request identifiers a sequence keeps.
	MaxIDs = 202
)

// Options are the options of [New]. The zero value is right for production.
type Options struct {
	// Budget shortens MaxBudget; zero and more than MaxBudget mean MaxBudget.
	Budget time.Duration
	// MaxRequests bounds the requests of the whole sequence, second attempts included; zero means
	// no bound.
	MaxRequests int
	// Clock replaces the real clocks.
	Clock Clock
	// Waiting is called just before a wait begins; it must return quickly.
	Waiting func(d time.Duration)
}

// Sequence is a group of reads that share one delay and one deadline. Make it with [New].
type Sequence struct {
	clock    Clock
	waiting  func(time.Duration)
	deadline time.Duration // on clock.Elapsed
	requests int           // still allowed; negative means no bound
	used     bool          // the one delay
	stop     *Stop         // set once, for ever
	ids      []string
	warnings []string
}

// New starts a sequence: its budget begins to run.
func New(opt Options) *Sequence {
	s := &Sequence{clock: opt.Clock.orReal(), waiting: opt.Waiting, requests: opt.MaxRequests}
	if s.requests <= 0 {
		s.requests = -1
	}
	if s.waiting == nil {
		s.waiting = func(time.Duration) {}
	}
	budget := MaxBudget
	if opt.Budget > 0 && opt.Budget < budget {
		budget = opt.Budget
	}
	s.deadline = s.clock.Elapsed() + budget
	return s
}

// Remaining is what is left of the budget, never negative.
func (s *Sequence) Remaining() time.Duration { return max(0, s.deadline-s.clock.Elapsed()) }

// Limit brings the deadline to at most d from now. It never extends it.
func (s *Sequence) Limit(d time.Duration) {
	if now := s.clock.Elapsed(); d < s.deadline-now {
		s.deadline = now + d
	}
}

// limitTo merges the deadline of a context, compared with the sequence's wall clock.
func (s *Sequence) limitTo(ctx context.Context) {
	if at, ok := ctx.Deadline(); ok {
		s.Limit(at.Sub(s.clock.Now()))
	}
}

// Used reports whether the one delay is used up.
func (s *Sequence) Used() bool { return s.used }

// Stopped gives the Stop that ended the sequence, or nil.
func (s *Sequence) Stopped() *Stop { return s.stop }

// Outcome is the result of one request, whether the transport calls it an error or not.
type Outcome struct {
	// Status is the HTTP status, or 0 when there was no answer.
	Status int
	// RequestID is the server's identifier as received; it is sanitised before it is stored.
	RequestID string
	// RetryAfter is the parsed field of a 429, taken before the body was closed.
	RetryAfter retryafter.Report
	// CloseErr is the failure to close the body of a 429.
	CloseErr error
	// PersistErr is the failure to record something locally. It goes before everything else.
	PersistErr error
}

// Wait decides whether an outcome may be waited for and waits. Nil means: the wait is over, make
// one more request. A [*Stop] means: no more requests. Any status but 429 gives [ErrNotThrottled]:
// there is nothing to wait for and the delay is not used up.
//
// After a write that was answered 429 call it before the first read. [Read] calls it by itself.
func (s *Sequence) Wait(ctx context.Context, o Outcome) error {
	if s.stop != nil {
		return s.stop
	}
	s.limitTo(ctx)
	switch {
	case o.PersistErr != nil:
		return s.end(&Stop{Code: CodePersistence, Err: o.PersistErr})
	case o.CloseErr != nil:
		s.warn("the body of a response could not be closed; the read was not retried")
		return s.end(&Stop{Code: CodeClose, Err: o.CloseErr})
	case o.Status != http.StatusTooManyRequests:
		return ErrNotThrottled
	case s.used:
		return s.end(&Stop{Code: CodeExhausted})
	}
	delay, ok := s.delay(o.RetryAfter)
	switch remaining := s.Remaining(); {
	case !ok:
		return s.end(&Stop{Code: CodeDelay, Unrepresentable: true})
	case delay > MaxDelay:
		return s.end(&Stop{Code: CodeDelay, Delay: delay})
	case remaining <= delay:
		return s.end(&Stop{Code: CodeBudget, Delay: delay})
	}
	return s.sleep(ctx, delay, o.RetryAfter)
}

// ErrNotThrottled says that an outcome was no 429: nothing to wait for.
var ErrNotThrottled = errors.New("recovery: only a 429 can be waited for")

// delay works out the wait. False means that there is no number for it: such a wait is endless,
// never zero.
func (s *Sequence) delay(r retryafter.Report) (time.Duration, bool) {
	if r.Notes&(retryafter.NoteUnrepresentable|retryafter.NoteOversized) != 0 {
		return 0, false
	}
	switch r.Kind {
	case retryafter.KindSeconds:
		return r.Delay()
	case retryafter.KindDate:
		return max(0, r.Date.Sub(s.clock.Now())), true // Sub saturates
	default: // missing or invalid
		had := "no"
		if r.Kind == retryafter.KindInvalid {
			had = "an invalid"
		}
		s.warn("the 429 had " + had + " Retry-After; waited one second instead")
		return FallbackDelay, true
	}
}

// sleep uses the delay up, waits, and makes sure that the wait was as long as it had to be.
func (s *Sequence) sleep(ctx context.Context, delay time.Duration, r retryafter.Report) error {
	s.used = true
	s.waiting(delay)
	before := s.clock.Elapsed()
	err := s.clock.Sleep(ctx, delay)
	elapsed := s.clock.Elapsed() - before
	switch {
	case elapsed < delay || err != nil:
		return s.end(&Stop{Code: CodeWait, Delay: delay, Err: err})
	case r.Kind == retryafter.KindDate && s.clock.Now().Before(r.Date):
		// The wall clock was set back, or runs slower than the other one: the instant that the
		// server named has not come.
		return s.end(&Stop{Code: CodeWait, Delay: delay})
	case s.Remaining() == 0:
		return s.end(&Stop{Code: CodeBudget, Delay: delay})
	}
	return nil
}

func (s *Sequence) end(stop *Stop) error {
	stop.Remaining = s.Remaining()
	s.stop = stop
	return stop
}

// Note records a request identifier, sanitised. Identifiers beyond MaxIDs and absent ones are
// ignored.
func (s *Sequence) Note(id string) {
	if id = requestid.Sanitize(id); id != "" && len(s.ids) < MaxIDs {
		s.ids = append(s.ids, id)
	}
}

// NoteFailure is [Sequence.Note] for an error that may have been noted already: the last identifier
// is not recorded twice.
func (s *Sequence) NoteFailure(id string) {
	if id = requestid.Sanitize(id); len(s.ids) == 0 || s.ids[len(s.ids)-1] != id {
		s.Note(id)
	}
}

// IDs gives the identifiers of all answers, failed and successful, in the order of arrival.
func (s *Sequence) IDs() []string { return slices.Clone(s.ids) }

func (s *Sequence) warn(text string) {
	if !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

// Warnings returns what a person should know, each a sentence: fallbacks, cleanup failures, a
// second failure, and one that lists the request identifiers.
func (s *Sequence) Warnings() []string {
	all := slices.Clone(s.warnings)
	if len(s.ids) > 0 {
		all = append(all, "read request ids: "+strings.Join(s.ids, ", "))
	}
	return all
}
