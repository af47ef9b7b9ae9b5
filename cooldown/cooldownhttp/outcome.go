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
		return failure(a.Err)
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

func failure(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.Canceled):
		return OutcomeCancelled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return OutcomeTimeout
	}
	return OutcomeConnection
}
