package journal

import (
	"encoding/json"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/requestid"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// RetryAfterTiming is when a throttled answer came and when its restriction ends, in whole Unix
// seconds UTC.
type RetryAfterTiming struct {
	// ReceivedAtUTC is when the answer was received, rounded down; nil when the clock was not
	// usable.
	ReceivedAtUTC *int64 `json:"received_at_utc"`
	// NotBeforeUTC is the first second at which a request may be sent again, rounded up; nil when
	// it is unknown, which leaves the journal unresolved.
	NotBeforeUTC *int64 `json:"not_before_utc"`
	// ServerDelaySeconds is the number of seconds that the server named, if it named one.
	ServerDelaySeconds *int64 `json:"server_delay_seconds"`
}

// Restriction is what a throttled answer said: send nothing before this time. The first four fields
// are the caller's; the others are set on a recorded one.
type Restriction struct {
	// RequestID is the server's identifier; it is sanitised when it is recorded. "" means that
	// there was none.
	RequestID string
	Timing    RetryAfterTiming
	// Origin and Metadata, a JSON object, are recorded unchanged beside the times; see
	// [Layout].Restriction. Metadata may be nil. The origin "operator-review" is taken.
	Origin   string
	Metadata json.RawMessage

	// Name is the file, Number its place in the chain and Digest the digest of its payload.
	Name   string
	Number int
	Digest string
	// Method and URLDigest are those of the request; Attempt is the open entry that it carried out,
	// or "".
	Method    string
	URLDigest string
	Attempt   string
	// Nonce is that of the marker which the restriction finished, "" where an operator's review had
	// none to finish.
	Nonce string
	// Review is set when an operator stated the end, see [Journal.Resolve].
	Review *Review

	previous, attemptDigest *string
}

// FromReport makes a restriction of a parsed header field. A missing or malformed field stands for
// one second; a delay that cannot be known leaves the journal unresolved, and is never zero.
func FromReport(report retryafter.Report, requestID string) Restriction {
	t := report.Timing()
	r := Restriction{RequestID: requestID}
	if t.ReceivedKnown {
		r.Timing = RetryAfterTiming{&t.ReceivedUnix, t.NotBeforeUnix, t.ServerDelaySeconds}
	}
	return r
}

// originReview marks an operator's statement.
const originReview = "operator-review"

// stored is the payload of a restriction (spec section 14).
type stored struct {
	Version       string           `json:"version"`
	PlanDigest    string           `json:"plan_digest"`
	Previous      *string          `json:"previous"`
	Method        string           `json:"method"`
	URLDigest     string           `json:"url_digest"`
	Attempt       *string          `json:"attempt"`
	AttemptDigest *string          `json:"attempt_digest"`
	RequestID     *string          `json:"request_id"`
	Nonce         *string          `json:"nonce"`
	Metadata      json.RawMessage  `json:"metadata"`
	Timing        RetryAfterTiming `json:"timing"`
	Origin        string           `json:"origin"`
	// Review is present only with originReview.
	Review *Review `json:"review,omitempty"`
}

// restriction is the public form of an entry that holds a sound b.
func (b stored) restriction(e Entry) Restriction {
	return Restriction{
		RequestID: deref(b.RequestID), Timing: b.Timing, Origin: b.Origin, Metadata: b.Metadata, Name: e.Name, Number: e.Number,
		Digest: e.Digest, Method: b.Method, URLDigest: b.URLDigest, Attempt: deref(b.Attempt), Nonce: deref(b.Nonce),
		Review: b.Review, previous: b.Previous, attemptDigest: b.AttemptDigest,
	}
}

// marker is the payload of the pending marker (spec section 14).
type marker struct {
	Version    string `json:"version"`
	PlanDigest string `json:"plan_digest"`
	Nonce      string `json:"nonce"`
	Method     string `json:"method"`
	URLDigest  string `json:"url_digest"`
}

func recordable(method string) bool {
	return slices.Contains([]string{"GET", "HEAD", "POST", "PUT"}, method)
}

func (p marker) fault(l *Layout, planDigest string) *Error {
	bad := func(field, why string) *Error { return l.fault(CodeInvalid, pendingName, field, "%s", why) }
	switch {
	case p.Version != version:
		return bad("version", `must be "1.0"`)
	case p.PlanDigest != planDigest:
		return bad("plan_digest", "is not the digest of this journal's plan")
	case !strictjson.IsHex(p.Nonce, 32):
		return bad("nonce", "must be 32 lower-case hex digits")
	case !recordable(p.Method):
		return bad("method", "must be GET, HEAD, POST or PUT")
	case !strictjson.IsDigest(p.URLDigest):
		return bad("url_digest", "is not a digest")
	}
	return nil
}

// fault reports what is wrong with a restriction by itself; its place in the journal is checked
// elsewhere.
func (b stored) fault(l *Layout, e Entry, planDigest string) *Error {
	bad := func(field, why string) *Error { return l.fault(CodeInvalid, e.Name, field, "%s", why) }
	switch {
	case b.Version != version:
		return bad("version", `must be "1.0"`)
	case b.PlanDigest != planDigest:
		return bad("plan_digest", "is not the digest of this journal's plan")
	case !recordable(b.Method):
		return bad("method", "must be GET, HEAD, POST or PUT")
	case !strictjson.IsDigest(b.URLDigest):
		return bad("url_digest", "is not a digest")
	case (b.Attempt == nil) != (b.AttemptDigest == nil):
		return bad("attempt", "attempt and attempt_digest go together")
	case b.Attempt != nil && b.Method != "POST":
		return bad("attempt", "only a POST has an attempt")
	case b.RequestID != nil && !requestid.Safe(*b.RequestID) && *b.RequestID != requestid.Withheld:
		return bad("request_id", "is not a safe identifier")
	case b.Nonce == nil && (b.Review == nil || b.Attempt == nil && b.Review.Ends == ""):
		return bad("nonce", "is missing")
	case b.Nonce != nil && !strictjson.IsHex(*b.Nonce, 32):
		return bad("nonce", "must be 32 lower-case hex digits")
	case len(b.Metadata) == 0 || b.Metadata[0] != '{':
		return bad("metadata", "must be an object")
	}
	if field, why := b.receiptFault(); why != "" {
		return bad(field, why)
	}
	if l.Restriction != nil {
		if err := l.Restriction(b.restriction(e)); err != nil {
			return l.foreign(e.Name, err)
		}
	}
	if field, why := b.delayFault(); why != "" {
		return bad(field, why)
	}
	return nil
}

// lastSecond and firstSecond bound the years 1 to 9999.
const (
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

// receiptFault is about the times by themselves.
func (b stored) receiptFault() (field, why string) {
	t := b.Timing
	for _, p := range []*int64{t.ReceivedAtUTC, t.NotBeforeUTC} {
		if p != nil && (*p < firstSecond || *p > lastSecond) {
			return "timing", "is outside the years 1 to 9999"
		}
	}
	if (b.Review != nil) != (b.Origin == originReview) {
		return "review", "is allowed with operator-review only"
	}
	if t.ReceivedAtUTC == nil && (t.NotBeforeUTC != nil || t.ServerDelaySeconds != nil) {
		return "timing", "has an end but no receipt"
	}
	if b.Review != nil {
		return b.reviewFault()
	}
	return "", ""
}

// delayFault works the end out again from the receipt and the delay that the server named.
//
// The receipt was rounded down and the end up, so the end may lie one second further on: the
// fraction of the receipt is not in the record. No end at all is right only where the end is beyond
// the year 9999.
func (b stored) delayFault() (field, why string) {
	if b.Timing.ServerDelaySeconds == nil {
		return "", ""
	}
	received, delay, notBefore := *b.Timing.ReceivedAtUTC, *b.Timing.ServerDelaySeconds, b.Timing.NotBeforeUTC
	least := lastSecond - received // the largest delay that still has an end
	switch {
	case delay < 0:
		return "timing.server_delay_seconds", "must not be negative"
	case notBefore == nil && delay >= least:
	case notBefore == nil, delay > least, *notBefore-received < delay, *notBefore-received > delay+1:
		return "timing.not_before_utc", "does not follow from receipt and delay"
	}
	return "", ""
}
