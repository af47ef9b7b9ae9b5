package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/ecluse-gate/ecluse/internal/gate"
)

// refusal is an error as a client hears it.
type refusal struct {
	status     int
	retryAfter int64 // whole seconds; 0 means no field
	message    string
	cooldown   bool // about a cooldown: marked with Cache-Status
	forwarded  bool
}

// refuse is the one table from error to HTTP status. What it does not know is a fault of ours, and its text stays inside.
func refuse(err error) refusal {
	if e, ok := errors.AsType[*gate.Unavailable](err); ok {
		wait := wholeSeconds(e.Wait)
		return refusal{
			status: http.StatusServiceUnavailable, retryAfter: wait, message: e.Error() + "; ask again in " + seconds(wait),
			cooldown: e.Cooldown, forwarded: e.Forwarded,
		}
	}
	r := refusal{message: err.Error()}
	if e, ok := errors.AsType[*gate.Denied](err); ok && e.Verdict.Temporary {
		return refusal{status: http.StatusServiceUnavailable, retryAfter: 1, message: e.Error() + "; ask again in 1 second"}
	}
	switch {
	case is[*gate.Denied](err), is[*gate.Forbidden](err):
		r.status = http.StatusForbidden
	case is[*gate.NotFound](err):
		r.status = http.StatusNotFound
	case is[*gate.BadUpstream](err):
		r.status = http.StatusBadGateway
	case errors.Is(err, context.Canceled):
		r.status, r.message = statusClientGone, "the client has gone"
	default:
		r.status, r.message = http.StatusInternalServerError, "an internal fault; the log of the gate says more"
	}
	return r
}

// statusClientGone is what the metrics call a request whose client left before the answer; nobody receives it.
const statusClientGone = 499

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// wholeSeconds rounds a wait up: never 0, at least 1 (R35). The longest waits do not wrap round.
func wholeSeconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return max(1, n)
}

func seconds(n int64) string {
	if n == 1 {
		return "1 second"
	}
	return strconv.FormatInt(n, 10) + " seconds"
}

// header sets the fields of a refusal.
func (r refusal) header(h http.Header) {
	h.Set("Cache-Control", "no-store")
	if r.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(r.retryAfter, 10))
	}
	if r.cooldown {
		h.Set("Cache-Status", cacheStatus(r.forwarded, false))
	}
}

// cacheStatus marks an answer that is about a cooldown (RFC 9211): whether this request was forwarded, and whether a retained copy
// serves it.
func cacheStatus(forwarded, hit bool) string {
	switch {
	case hit:
		return "ecluse; hit; detail=cooldown"
	case forwarded:
		return "ecluse; fwd=miss; detail=cooldown"
	}
	return "ecluse; hit=?0; detail=cooldown"
}
