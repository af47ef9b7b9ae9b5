package gate

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
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

// cooled is what a request hears that the cooldown of an upstream kept from being sent.
func (g *Gate) cooled(u *upstream.Public, wait time.Duration) *Unavailable {
	e := &Unavailable{Wait: wait, Cooldown: true, Authority: u.Authority().String(), Part: g.part(u)}
	e.Reason = fmt.Sprintf("the public registry is rate-limiting us; nothing is sent to %s (%s) for now", e.Authority, e.Part)
	return e
}

// met is what the requests hear whose read met the throttled answer; each takes it with taken.
func (g *Gate) met(u *upstream.Public, wait time.Duration) *Unavailable {
	e := g.cooled(u, wait)
	e.Forwarded, e.taken = true, new(atomic.Bool)
	return e
}

// taken is the error of one caller of a shared read. A throttled answer is one caller's own; the
// others, who sent nothing, were refused because of it (R80).
func taken(err error) error {
	e, ok := errors.AsType[*Unavailable](err)
	if !ok || e.taken == nil || e.taken.CompareAndSwap(false, true) {
		return err
	}
	other := *e
	other.Forwarded, other.Collapsed = false, true
	return &other
}

// part is what of the public side an upstream is.
func (g *Gate) part(u *upstream.Public) string {
	switch {
	case u != g.Public:
		return "files"
	case g.Ecosystem.ScanIndex != nil:
		return "index"
	}
	return "registry"
}

// unsent types the error with which a public read ended before there was an answer.
func (g *Gate) unsent(u *upstream.Public, err error) error {
	r, ok := errors.AsType[*cooldown.Refusal](err)
	if !ok {
		return fromPublic(err)
	}
	e := g.cooled(u, r.Wait)
	if e.Probing = r.Probing; e.Probing {
		e.Reason = fmt.Sprintf("the public registry is rate-limiting us; a recovery probe is in progress at %s (%s)", e.Authority, e.Part)
	}
	return e
}

const transientWait = time.Second // what R92 advertises where nobody named a delay

// fromPublic types what a public read ended with, for a client: no answer, or an answer that cannot
// be used.
func fromPublic(err error) error {
	if errors.Is(err, integrity.ErrMismatch) {
		return &BadUpstream{Reason: err.Error(), Mismatch: true}
	}
	if errors.Is(err, upstream.ErrForbiddenAddress) { // waiting does not help
		return &BadUpstream{Reason: "refusing to connect: the registry's host resolves to a private address; to allow it, add it to egress.allowInternal"}
	}
	if b, ok := errors.AsType[*upstream.Busy](err); ok {
		return &Unavailable{Wait: b.Wait, Crowded: true, Reason: "too many requests are waiting for the public registry"}
	}
	if f, ok := errors.AsType[*upstream.Failure](err); ok {
		return &Unavailable{Wait: transientWait, Reason: "the public registry did not answer (" + f.Outcome + ")"}
	}
	if errors.Is(err, registry.ErrMalformed) || errors.Is(err, registry.ErrTooLarge) {
		return &BadUpstream{Reason: "the public registry sent an unusable document: " + err.Error()}
	}
	return err
}

// longest is the one of two that a client must hear: the one with the longer wait (R44).
func longest(a, b *Unavailable) *Unavailable {
	if a == nil || b != nil && b.Wait > a.Wait {
		return b
	}
	return a
}
