package cooldownhttp

import (
	"context"
	"errors"
	"net/http"
)

// The outcomes of an attempt: a bounded set, fit for a metric's label.
const (
	OutcomeSuccess     = "success"      // 1xx and 2xx
	OutcomeNotModified = "not_modified" // 304
	OutcomeClientError = "client_error" // 4xx that do not throttle
	OutcomeThrottled   = "throttled"    // 429, and 503 with a usable hint
	OutcomeServerError = "server_error" // 5xx, and 3xx other than 304: a redirect is no answer
	OutcomeConnection  = "connection"   // no response: refused, reset, TLS, DNS
	OutcomeTimeout     = "timeout"      // no response in time
	OutcomeCancelled   = "cancelled"    // the caller went away
)

// Outcome puts the attempt into one of the eight classes.
func (a Attempt) Outcome() string {
	if a.Err != nil {
		return a.failure()
	}
	switch {
	case a.Throttled:
		return OutcomeThrottled
	case a.Status == http.StatusNotModified:
		return OutcomeNotModified
	case a.Status >= 500, a.Status >= 300 && a.Status < 400:
		return OutcomeServerError
	case a.Status >= 400:
		return OutcomeClientError
	}
	return OutcomeSuccess
}

// failure tells who gave up: the caller, the clock, or the network. The request's context is the first to ask, since its cause may be an
// error of the caller's own.
func (a Attempt) failure() string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(a.gone, context.Canceled), errors.Is(a.Err, context.Canceled):
		return OutcomeCancelled
	case a.gone != nil, errors.Is(a.Err, context.DeadlineExceeded), errors.As(a.Err, &timeout) && timeout.Timeout():
		return OutcomeTimeout
	}
	return OutcomeConnection
}
