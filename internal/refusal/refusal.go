// Package refusal holds what a client hears instead of the answer that it asked for, and types once
// what an exchange with an upstream ended with. How a refusal is written is up to whoever answers.
package refusal

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// NotFound says that something is really absent: each upstream that was asked said so itself.
type NotFound struct{ What string }

// Error implements error.
func (e *NotFound) Error() string { return e.What + " is not in the registry" }

// Denied says that no rule admits what was asked for.
type Denied struct {
	What string
	// Verdict is the reason; for a listing, that of its newest version.
	Verdict policy.Verdict
}

// Error implements error.
func (e *Denied) Error() string {
	return fmt.Sprintf("%s is not admitted by rule %q: %s", e.What, e.Verdict.Rule, e.Verdict.Reason)
}

// Forbidden says that the private upstream refused the caller's credential or its lack (R41).
type Forbidden struct{ Status int }

// Error implements error.
func (e *Forbidden) Error() string {
	return fmt.Sprintf("the private registry rejected this credential (%d); the public one was not asked", e.Status)
}

// Unavailable says that the answer is not to be had now and will be later.
type Unavailable struct {
	// Wait is how long until asking again makes sense.
	Wait time.Duration
	// Cooldown tells that a public authority's cooldown is the cause. Forwarded tells that this
	// very request met the throttled answer, Collapsed that it waited for another one that did.
	Cooldown, Forwarded, Collapsed bool
	// Probing tells that another request is finding out whether the cooldown is over.
	Probing bool
	// Crowded tells that nothing was sent because too many others wait for the same authority.
	Crowded bool
	// Authority is the "host:port" that cools, and Part what of the ecosystem's public side it is:
	// registry, index or files. Both are set for a cooldown alone.
	Authority, Part string
	Reason          string

	// by the one caller of a shared read whose request the throttled answer is for
	taken *atomic.Bool
}

// Error implements error. It names the wait.
func (e *Unavailable) Error() string {
	n := e.RetryAfter()
	if n == 1 {
		return e.Reason + "; try again in 1 second"
	}
	return fmt.Sprintf("%s; try again in %d seconds", e.Reason, n)
}

// RetryAfter is the wait in whole seconds, rounded up: never 0, at least 1 (R35). The longest waits
// do not wrap round.
func (e *Unavailable) RetryAfter() int64 { return max(1, retryafter.Seconds(e.Wait)) }

// Longest is the one of two that a client must hear: the one with the longer wait (R44). Either may
// be nil.
func Longest(a, b *Unavailable) *Unavailable {
	if a == nil || b != nil && b.Wait > a.Wait {
		return b
	}
	return a
}

// BadUpstream says that an upstream answered with something that cannot be used.
type BadUpstream struct {
	Reason string
	// Status is the answer's, when that is what cannot be used; else 0.
	Status int
	// Mismatch tells that a file is not the one that the listing names.
	Mismatch bool
}

// Error implements error.
func (e *BadUpstream) Error() string { return e.Reason }

// Mismatch says that a file is not the one that the listing names. Asking again would not help.
type Mismatch struct{ File string }

// Error implements error.
func (e *Mismatch) Error() string {
	return e.File + " does not have the digest in the listing"
}

// Refused says that the public upstream answered a file with a status that will not change by
// asking again (C50).
type Refused struct{ Status int }

// Error implements error.
func (e *Refused) Error() string {
	return fmt.Sprintf("the public registry answered the file request with status %d", e.Status)
}
