package recovery

import (
	"fmt"
	"time"
)

// Code names why a sequence stopped. It is stable, safe to print, and a target of errors.Is.
type Code string

// Error is the code itself.
func (c Code) Error() string { return string(c) }

// The codes, in the order in which they are checked.
const (
	// CodePersistence: a local record could not be written; nothing may be sent whose outcome could
	// not be recorded.
	CodePersistence Code = "read-recovery-persistence-failed"
	// CodeClose: the body of the 429 could not be closed, so the connection is in an unknown state.
	CodeClose Code = "read-recovery-response-close-failed"
	// CodeExhausted: the one delay is used up, or no request is left for a second attempt.
	CodeExhausted Code = "read-recovery-exhausted"
	// CodeDelay: the server asked for more than MaxDelay, or for a wait that cannot be represented.
	CodeDelay Code = "read-recovery-delay-exceeded"
	// CodeBudget: the deadline has come, or would come before the wait is over.
	CodeBudget Code = "read-recovery-budget-exhausted"
	// CodeWait: the sleep ended early.
	CodeWait Code = "read-recovery-wait-incomplete"
)

// Stop ends a sequence: every later read of it fails with the same Stop, without sending.
type Stop struct {
	Code Code
	// Delay is the wait that the server asked for, exact; zero when none was read. Unrepresentable
	// says that there is no number.
	Delay           time.Duration
	Unrepresentable bool
	// Remaining is what was left of the budget when the sequence stopped; never negative.
	Remaining time.Duration
	// Err is the cause, if there is one: the persistence failure, the close failure, the sleeper's
	// error.
	Err error
}

// Error gives the code and the numbers that explain it.
func (s *Stop) Error() string {
	text := string(s.Code)
	switch {
	case s.Code == CodeDelay && s.Unrepresentable:
		text += ": the server asked for a wait that cannot be represented"
	case s.Code == CodeDelay:
		text += fmt.Sprintf(": the server asked for %s, more than %s", s.Delay, MaxDelay)
	case s.Code == CodeBudget && s.Delay > 0:
		text += fmt.Sprintf(": the server asked for %s and %s are left", s.Delay, s.Remaining)
	}
	if s.Err != nil {
		text += ": " + s.Err.Error()
	}
	return text
}

// Unwrap gives the cause.
func (s *Stop) Unwrap() error { return s.Err }

// Is reports whether target is the stop's [Code].
func (s *Stop) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == s.Code
}

// Failure is the error of a read that was answered 429 and could not be recovered. The first
// failure is what happened; the rest says why the second attempt failed or was not made. errors.As
// finds what is in First before it looks at the cause.
type Failure struct {
	// First is the error of the 429.
	First error
	// Cause is the error of the second attempt, or the Stop that prevented one.
	Cause error
}

// Error is the first failure's text and, behind it, the cause's.
func (f *Failure) Error() string { return f.First.Error() + " (then " + f.Cause.Error() + ")" }

// Unwrap gives the first failure, then the cause.
func (f *Failure) Unwrap() []error { return []error{f.First, f.Cause} }

// StatusError is an unsuccessful answer. It holds nothing of the body.
type StatusError struct {
	Status int
	// RequestID is the server's identifier, sanitised; "" when there was none.
	RequestID string
}

// Error gives status and identifier.
func (e *StatusError) Error() string {
	if e.RequestID == "" {
		return fmt.Sprintf("answered with HTTP status %d", e.Status)
	}
	return fmt.Sprintf("answered with HTTP status %d, request %s", e.Status, e.RequestID)
}
