package refusal

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// PrivateStatus types an answer of the private upstream that is not what was asked for; nil is an
// absence.
func PrivateStatus(resp *http.Response) error {
	switch s := resp.StatusCode; {
	case s == http.StatusNotFound || s == http.StatusGone:
		return nil
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return &Forbidden{Status: s}
	case s == http.StatusTooManyRequests || s == http.StatusRequestTimeout || s >= 500:
		wait := TransientWait
		if d, ok := retryafter.ParseHeader(resp.Header, time.Now()).Delay(); ok {
			wait = max(wait, d)
		}
		return &Unavailable{Wait: wait, Reason: fmt.Sprintf("the private registry answered with status %d", s)}
	default:
		return &BadUpstream{Reason: fmt.Sprintf("the private registry answered with status %d", s)}
	}
}

// FromPrivate types what a private read ended with.
func FromPrivate(err error) error {
	if f, ok := errors.AsType[*upstream.Failure](err); ok {
		return &Unavailable{Wait: TransientWait, Reason: "the private registry did not answer (" + f.Outcome + ")"}
	}
	if errors.Is(err, registry.ErrMalformed) || errors.Is(err, registry.ErrTooLarge) {
		return &BadUpstream{Reason: "the private registry sent an unusable document: " + err.Error()}
	}
	return err
}
