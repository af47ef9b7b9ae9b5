package gate

import (
	"errors"
	"fmt"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
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
	return fmt.Sprintf("the private registry refused this credential (%d); nothing was asked of the public one", e.Status)
}

// Unavailable says that the answer is not to be had now and will be later.
type Unavailable struct {
	// Wait is how long until asking again makes sense.
	Wait time.Duration
	// Cooldown tells that a public authority's cooldown is the cause; Forwarded that this very request met the throttled answer.
	Cooldown, Forwarded bool
	// Probing tells that another request is just finding out whether the cooldown is over.
	Probing bool
	// Authority is set when the request was refused without being sent.
	Authority string
	Reason    string
}

// Error implements error.
func (e *Unavailable) Error() string { return e.Reason }

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

// paused is what a request hears that met a throttled answer.
func paused(wait time.Duration) *Unavailable {
	return &Unavailable{
		Wait: wait, Cooldown: true, Forwarded: true,
		Reason: "the public registry asked for a pause; nothing is sent to it until that is over",
	}
}

const transientWait = time.Second // what R92 advertises where nobody named a delay

// fromPublic types what a public read ended with, for a client: a refusal, no answer, or an answer that cannot be used.
func fromPublic(err error) error {
	if r, ok := errors.AsType[*cooldown.Refusal](err); ok {
		u := &Unavailable{Wait: r.Wait, Cooldown: true, Probing: r.Probing, Authority: r.Authority.String()}
		u.Reason = "the public registry asked for a pause; nothing is sent to it until that is over"
		if r.Probing {
			u.Reason = "the public registry is just being asked whether its pause is over"
		}
		return u
	}
	if errors.Is(err, integrity.ErrMismatch) {
		return &BadUpstream{Reason: err.Error(), Mismatch: true}
	}
	if errors.Is(err, upstream.ErrForbiddenAddress) { // waiting does not help
		return &BadUpstream{Reason: "the public registry was not asked: its name leads to an internal network; if that is meant, name it in egress.allowInternal"}
	}
	if b, ok := errors.AsType[*upstream.Busy](err); ok {
		return &Unavailable{Wait: b.Wait, Reason: "too many requests are waiting for the public registry"}
	}
	if f, ok := errors.AsType[*upstream.Failure](err); ok {
		return &Unavailable{Wait: transientWait, Reason: "the public registry did not answer (" + f.Outcome + ")"}
	}
	if errors.Is(err, registry.ErrMalformed) || errors.Is(err, registry.ErrTooLarge) {
		return &BadUpstream{Reason: "the public registry's document cannot be used: " + err.Error()}
	}
	return err
}

// worse keeps the error that a client must hear when two reads failed: what passes last, with the longest wait (R44).
func longest(a, b *Unavailable) *Unavailable {
	if a == nil || b != nil && b.Wait > a.Wait {
		return b
	}
	return a
}
