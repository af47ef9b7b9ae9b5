package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/ecluse-gate/ecluse/internal/gate"
)

// refusal is an error as a client hears it.
type refusal struct {
	status     int
	retryAfter int64 // whole seconds; 0 means no field
	message    string
	// what it is about, when that is a cooldown: marked with Cache-Status
	cooldown *gate.Unavailable
}

// refuse is the one table from error to HTTP status. What it does not know is a fault of ours, and
// its text stays inside.
func refuse(err error) refusal {
	if e, ok := errors.AsType[*gate.Unavailable](err); ok {
		r := refusal{status: http.StatusServiceUnavailable, retryAfter: e.RetryAfter(), message: e.Error()}
		if e.Cooldown {
			r.cooldown = e
		}
		return r
	}
	r := refusal{message: err.Error()}
	if e, ok := errors.AsType[*refusedError](err); ok {
		return refusal{status: e.status, message: e.message}
	}
	if e, ok := errors.AsType[*gate.Denied](err); ok && e.Verdict.Temporary {
		return refusal{status: http.StatusServiceUnavailable, retryAfter: 1, message: e.Error() + "; try again in 1 second"}
	}
	switch {
	case is[*gate.Denied](err), is[*gate.Forbidden](err):
		r.status = http.StatusForbidden
	case is[*gate.NotFound](err):
		r.status = http.StatusNotFound
	case is[*gate.BadUpstream](err):
		r.status = http.StatusBadGateway
	case errors.Is(err, context.Canceled):
		r.status, r.message = statusClientGone, "the client disconnected"
	default:
		r.status, r.message = http.StatusInternalServerError, "internal error; see the gate's log"
	}
	return r
}

// statusClientGone is what the metrics call a request whose client left before the answer; nobody
// receives it.
const statusClientGone = 499

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// WriteError answers with an error as the mounts do, in JSON, for handlers outside of them.
func WriteError(w http.ResponseWriter, err error) {
	answer := refuse(err)
	answer.header(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.status)
	_, _ = w.Write(ErrorBody(answer.message))
}

// ErrorBody is an error outside of the mounts: a JSON object with the reason in "error".
func ErrorBody(message string) []byte {
	body, _ := json.Marshal(map[string]string{"error": message}) // strings cannot fail
	return body
}

// header sets the fields of a refusal.
func (r refusal) header(h http.Header) {
	h.Set("Cache-Control", "no-store")
	if r.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(r.retryAfter, 10))
	}
	if r.cooldown != nil {
		h.Set("Cache-Status", cacheStatus(r.cooldown, false))
	}
}

// cacheStatus marks an answer that is about a cooldown (RFC 9211): whether a retained copy serves
// it or a request for it was forwarded, and what cools (R101). A canonical authority has no
// character that a string of a structured field would escape (RFC 8941).
func cacheStatus(e *gate.Unavailable, hit bool) string {
	how := "hit=?0"
	switch {
	case hit:
		how = "hit"
	case e.Forwarded:
		how = "fwd=miss"
	case e.Collapsed:
		how = "fwd=miss; collapsed"
	}
	return "ecluse; " + how + `; authority="` + e.Authority + `"; part=` + e.Part + "; detail=cooldown"
}
