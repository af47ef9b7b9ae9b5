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
	OutcomeCancelled   = "cancelled"    // the caller cancelled
)

// Outcome puts the attempt into one of the eight classes.
func (a Attempt) Outcome() string {
	switch {
	case a.gone != "":
		return a.gone
	case a.Err != nil:
		return failure(a.Err)
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

// OutcomeOf is the outcome of an exchange that ended with err under ctx, for readers of a
// response's body: cancelled, timeout or connection. A context counts as a timeout when its cause
// says Timeout, as that of a deadline does.
func OutcomeOf(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return goneOf(ctx)
	}
	return failure(err)
}

// goneOf is the outcome when a context has ended, or empty. It is the first to ask, since its cause
// may be an error of the caller's own.
func goneOf(ctx context.Context) string {
	switch {
	case ctx.Err() == nil:
		return ""
	case timedOut(context.Cause(ctx)):
		return OutcomeTimeout
	}
	return OutcomeCancelled
}

func failure(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return OutcomeCancelled
	case timedOut(err):
		return OutcomeTimeout
	}
	return OutcomeConnection
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
