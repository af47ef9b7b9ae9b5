package recovery

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// MaxAttempts is how many requests one read makes at most.
const MaxAttempts = 2

// DefaultTimeout is the longest that one attempt may take unless the caller asks for another time.
// The budget usually ends earlier.
const DefaultTimeout = 180 * time.Second

// ReadOptions are the options of one read.
type ReadOptions struct {
	// Attempts is how many requests the caller allows; zero and more than MaxAttempts mean
	// MaxAttempts.
	Attempts int
	// Timeout is the longest that one attempt may take; zero means DefaultTimeout.
	Timeout time.Duration
	// CodeOf gives a short stable name of an error for the warning about a second failure; nil
	// gives no name.
	CodeOf func(error) string
}

// Attempt says which attempt the request function makes and how long it may take. The context that
// comes with it ends then.
type Attempt struct {
	Number  int // 1 or 2
	Timeout time.Duration
}

// Read makes one read: one request and, after an answer 429 that may be waited for, one more. do
// makes exactly one request, the same one each time: same URL, same token, redirects off, and it
// has closed the body of a 429, unread, when it returns. What it returns as Outcome counts; a 429
// without an error is a 429.
//
// Errors: that of do, when the first answer was no 429 (nothing is waited for); a [*Failure] with
// the first failure in front after a 429 that did not recover; a [*Stop] when nothing was sent, or
// when a success came at or after the deadline.
func Read[T any](ctx context.Context, s *Sequence, opt ReadOptions, do func(context.Context, Attempt) (T, Outcome, error)) (T, error) {
	var zero T
	value, out, err := attempt(ctx, s, opt, 1, do)
	if err == nil {
		return value, nil
	}
	if s.stop != nil && err == error(s.stop) { //nolint:errorlint // exactly ours, not one that do passed on from elsewhere
		return zero, err
	}
	if cause := s.again(ctx, opt, out); cause != nil {
		if errors.Is(cause, ErrNotThrottled) {
			return zero, err
		}
		return zero, s.failed(opt, err, cause)
	}
	value, out, second := attempt(ctx, s, opt, 2, do)
	if second != nil {
		// The delay is used up, so this cannot wait; but a second 429, or something that must end
		// the sequence, ends it.
		_ = s.Wait(ctx, out)
		return zero, s.failed(opt, err, second)
	}
	return value, nil
}

// again decides about a second attempt and waits for it.
func (s *Sequence) again(ctx context.Context, opt ReadOptions, out Outcome) error {
	throttled := out.PersistErr == nil && out.CloseErr == nil && out.Status == http.StatusTooManyRequests
	if throttled && s.stop == nil && (opt.Attempts == 1 || s.requests == 0) {
		return s.end(&Stop{Code: CodeExhausted})
	}
	return s.Wait(ctx, out)
}

// failed builds the error of a read that was throttled and did not recover, and warns about the
// second failure by its code.
func (s *Sequence) failed(opt ReadOptions, first, cause error) error {
	name := ""
	if stop, ok := errors.AsType[*Stop](cause); ok {
		name = string(stop.Code)
	} else if opt.CodeOf != nil {
		name = opt.CodeOf(cause)
	}
	if name == "" {
		name = "unnamed"
	}
	s.warn("the read was not recovered: " + name)
	return &Failure{First: first, Cause: cause}
}

// attempt makes one request and judges its outcome. The error is a *Stop when nothing was sent or
// the deadline has passed.
func attempt[T any](ctx context.Context, s *Sequence, opt ReadOptions, n int, do func(context.Context, Attempt) (T, Outcome, error)) (T, Outcome, error) {
	var zero T
	s.limitTo(ctx)
	remaining := s.Remaining()
	switch {
	case s.stop != nil:
		return zero, Outcome{}, s.stop
	case remaining == 0:
		return zero, Outcome{}, s.end(&Stop{Code: CodeBudget})
	case s.requests == 0:
		return zero, Outcome{}, s.end(&Stop{Code: CodeExhausted})
	case s.requests > 0:
		s.requests--
	}
	timeout := opt.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	timeout = min(timeout, remaining)
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	value, out, err := do(bounded, Attempt{Number: n, Timeout: timeout})
	s.Note(out.RequestID)
	if err == nil {
		err = out.failure()
	}
	if err == nil && s.Remaining() == 0 {
		return zero, out, s.end(&Stop{Code: CodeBudget})
	}
	if err != nil {
		return zero, out, err
	}
	return value, out, nil
}

// failure is the error of an outcome that its transport did not call one.
func (o Outcome) failure() error {
	switch {
	case o.PersistErr != nil:
		return o.PersistErr
	case o.Status == http.StatusTooManyRequests:
		return statusError(o)
	}
	return nil
}
