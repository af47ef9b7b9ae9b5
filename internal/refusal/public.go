package refusal

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// TransientWait is what R92 advertises where nobody named a delay.
const TransientWait = time.Second

// Side is a public upstream as clients hear of it.
type Side struct {
	// Authority is "host:port", and Part what of the ecosystem's public side it is: registry, index
	// or files.
	Authority, Part string
}

// Cooled is what a request hears that the cooldown of this side kept from being sent.
func (s Side) Cooled(wait time.Duration) *Unavailable {
	return &Unavailable{
		Wait: wait, Cooldown: true, Authority: s.Authority, Part: s.Part,
		Reason: fmt.Sprintf("the public registry is rate-limiting us; nothing is sent to %s (%s) for now", s.Authority, s.Part),
	}
}

// Unsent types the error with which a read ended before there was an answer.
func (s Side) Unsent(err error) error {
	r, ok := errors.AsType[*cooldown.Refusal](err)
	if !ok {
		return FromPublic(err)
	}
	e := s.Cooled(r.Wait)
	if e.Probing = r.Probing; e.Probing {
		e.Reason = fmt.Sprintf("the public registry is rate-limiting us; a recovery probe is in progress at %s (%s)", e.Authority, e.Part)
	}
	return e
}

// Status types an answer to a metadata read that is not the document (R45, R92); an absence is
// *NotFound. Each caller of a shared read takes its error with Taken.
func (s Side) Status(resp *upstream.Response, what string) error {
	switch code := resp.StatusCode; {
	case resp.Throttled:
		e := s.Cooled(resp.Wait)
		e.Forwarded, e.taken = true, new(atomic.Bool)
		return e
	case code == http.StatusNotFound || code == http.StatusGone:
		return &NotFound{What: what}
	case code == http.StatusRequestTimeout || code >= 500:
		return &Unavailable{Wait: TransientWait, Reason: fmt.Sprintf("the public registry answered with status %d", code)}
	default:
		return &BadUpstream{Status: code, Reason: fmt.Sprintf("the public registry answered a listing request with status %d", code)}
	}
}

// Taken is the error of one caller of a shared read. A throttled answer is one caller's own; the
// others, who sent nothing, were refused because of it (R80).
func Taken(err error) error {
	e, ok := errors.AsType[*Unavailable](err)
	if !ok || e.taken == nil || e.taken.CompareAndSwap(false, true) {
		return err
	}
	other := *e
	other.Forwarded, other.Collapsed = false, true
	return &other
}

// FromPublic types what a public read ended with, for a client: no answer, or an answer that cannot
// be used.
func FromPublic(err error) error {
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
		return &Unavailable{Wait: TransientWait, Reason: "the public registry did not answer (" + f.Outcome + ")"}
	}
	if errors.Is(err, registry.ErrMalformed) || errors.Is(err, registry.ErrTooLarge) {
		return &BadUpstream{Reason: "the public registry sent an unusable document: " + err.Error()}
	}
	return err
}
