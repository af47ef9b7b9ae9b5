package journal

import (
	"slices"
	"time"

	"github.com/ecluse-gate/ecluse/internal/requestid"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// RetryAfter is the canonical pair of a Retry-After field; see [retryafter.Canonical] for the kinds and values.
type RetryAfter struct {
	Kind  string `json:"kind"`
	Value int64  `json:"value"`
}

// RetryAfterTiming is the portable timing beside the pair, in whole Unix seconds UTC.
type RetryAfterTiming struct {
	// ReceivedAtUTC is when the answer was received, rounded down; nil when the clock was not usable.
	ReceivedAtUTC *int64 `json:"received_at_utc"`
	// NotBeforeUTC is the first second at which a request may be sent again, rounded up; nil when there is none to be had.
	NotBeforeUTC *int64 `json:"not_before_utc"`
	// ServerDelaySeconds is the number of seconds that the server named, if it named one.
	ServerDelaySeconds *int64 `json:"server_delay_seconds"`
}

// The origins of a restriction: how its timing came to be known.
const (
	OriginHeaders     = "response-headers"  // from the header fields of the answer
	OriginNativeError = "native-http-error" // from an error that a client library built from them
	OriginTyped       = "typed-metadata"    // from the canonical pair alone
	OriginUnavailable = "unavailable"       // there is none: the journal is unresolved
	OriginReview      = "operator-review"   // an operator's statement, see Journal.Resolve
)

// Restriction is what an answer 429 said, ready to be recorded.
type Restriction struct {
	// RequestID is the server's identifier; it is sanitised when it is recorded. "" means that there was none.
	RequestID string
	Metadata  RetryAfter
	Timing    RetryAfterTiming
	Origin    string
}

// FromHeaders makes a restriction from a parsed header field. A missing or malformed field stands for one second (S16); a delay that
// cannot be known leaves the journal unresolved, and is never zero.
func FromHeaders(report retryafter.Report, requestID string) Restriction {
	t := report.Timing()
	c := report.Canonical()
	r := Restriction{RequestID: requestID, Metadata: RetryAfter{c.Kind, c.Value}, Origin: OriginHeaders}
	if t.ReceivedKnown {
		r.Timing = RetryAfterTiming{&t.ReceivedUnix, t.NotBeforeUnix, t.ServerDelaySeconds}
	}
	return r
}

// FromTyped makes a restriction from a canonical pair whose header field is no longer known (S112): seconds and dates are resolved against
// the time of recording; everything else is unavailable.
func FromTyped(pair retryafter.Canonical, recorded time.Time, requestID string) Restriction {
	r := Restriction{RequestID: requestID, Metadata: RetryAfter{pair.Kind, pair.Value}, Origin: OriginTyped}
	report := retryafter.Report{Received: recorded}
	switch pair.Kind {
	case "seconds":
		report.Kind, report.Seconds = retryafter.KindSeconds, pair.Value
	case "date", "date-rfc850":
		report.Kind, report.Date = retryafter.KindDate, time.Unix(pair.Value, 0).UTC()
	default:
		r.Origin = OriginUnavailable
	}
	t := report.Timing()
	if !t.ReceivedKnown {
		r.Origin = OriginUnavailable
		return r
	}
	r.Timing.ReceivedAtUTC = &t.ReceivedUnix
	if r.Origin == OriginTyped {
		r.Timing.NotBeforeUTC, r.Timing.ServerDelaySeconds = t.NotBeforeUnix, t.ServerDelaySeconds
	}
	return r
}

// Backoff is the payload of a restriction (spec section 14).
type Backoff struct {
	Version       string           `json:"version"`
	PlanDigest    string           `json:"plan_digest"`
	Previous      *string          `json:"previous"`
	Method        string           `json:"method"`
	URLDigest     string           `json:"url_digest"`
	Attempt       *string          `json:"attempt"`
	AttemptDigest *string          `json:"attempt_digest"`
	RequestID     *string          `json:"request_id"`
	Nonce         *string          `json:"nonce"`
	Metadata      RetryAfter       `json:"metadata"`
	Timing        RetryAfterTiming `json:"timing"`
	Origin        string           `json:"origin"`
	// Review is present only with OriginReview.
	Review *Review `json:"review,omitempty"`
}

// Event is a recorded restriction.
type Event struct {
	Entry
	Backoff
}

// PendingRequest is the payload of the marker (spec section 14).
type PendingRequest struct {
	Version    string `json:"version"`
	PlanDigest string `json:"plan_digest"`
	Nonce      string `json:"nonce"`
	Method     string `json:"method"`
	URLDigest  string `json:"url_digest"`
}

func recordable(method string) bool {
	return slices.Contains([]string{"GET", "HEAD", "POST", "PUT"}, method)
}

func (p PendingRequest) fault(l *Layout, f Founding) *Error {
	bad := func(field, why string) *Error { return l.fault(CodeInvalid, PendingName, field, "%s", why) }
	switch {
	case p.Version != EventVersion:
		return bad("version", `must be "1.0"`)
	case p.PlanDigest != f.PlanDigest:
		return bad("plan_digest", "is not the digest of this journal's plan")
	case !strictjson.IsHex(p.Nonce, 32):
		return bad("nonce", "must be 32 lower-case hex digits")
	case !recordable(p.Method):
		return bad("method", "must be GET, HEAD, POST or PUT")
	case !IsDigest(p.URLDigest):
		return bad("url_digest", "is not a digest")
	}
	return nil
}

// fault tells what is wrong with a restriction by itself; its place in the journal is checked elsewhere.
func (e Event) fault(l *Layout, f Founding) *Error {
	bad := func(field, why string) *Error { return l.fault(CodeInvalid, e.Name, field, "%s", why) }
	b := e.Backoff
	switch {
	case b.Version != EventVersion:
		return bad("version", `must be "1.0"`)
	case b.PlanDigest != f.PlanDigest:
		return bad("plan_digest", "is not the digest of this journal's plan")
	case !recordable(b.Method):
		return bad("method", "must be GET, HEAD, POST or PUT")
	case !IsDigest(b.URLDigest):
		return bad("url_digest", "is not a digest")
	case (b.Attempt == nil) != (b.AttemptDigest == nil):
		return bad("attempt", "attempt and attempt_digest go together")
	case b.Attempt != nil && b.Method != "POST":
		return bad("attempt", "only a POST has an attempt")
	case b.RequestID != nil && !requestid.Safe(*b.RequestID) && *b.RequestID != requestid.Withheld:
		return bad("request_id", "is not a safe identifier")
	case b.Nonce == nil && (b.Origin != OriginReview || b.Attempt == nil):
		return bad("nonce", "is missing")
	case b.Nonce != nil && !strictjson.IsHex(*b.Nonce, 32):
		return bad("nonce", "must be 32 lower-case hex digits")
	}
	if field, why := b.timingFault(); why != "" {
		return bad(field, why)
	}
	return nil
}

// lastSecond and firstSecond bound the years 1 to 9999 (S19).
const (
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

// timingFault compares the timing with what its kind and receipt give when they are worked out again.
func (b Backoff) timingFault() (field, why string) {
	t := b.Timing
	for _, p := range []*int64{t.ReceivedAtUTC, t.NotBeforeUTC} {
		if p != nil && (*p < firstSecond || *p > lastSecond) {
			return "timing", "is outside the years 1 to 9999"
		}
	}
	if (b.Review != nil) != (b.Origin == OriginReview) {
		return "review", "belongs to operator-review and to nothing else"
	}
	if t.ReceivedAtUTC == nil && (t.NotBeforeUTC != nil || t.ServerDelaySeconds != nil) {
		return "timing", "has an end but no receipt"
	}
	switch b.Origin {
	case OriginReview:
		return b.reviewFault()
	case OriginUnavailable:
		if t.NotBeforeUTC != nil || t.ServerDelaySeconds != nil {
			return "timing", "must not have an end when the origin is unavailable"
		}
		return b.kindFault(true)
	case OriginTyped:
		if !slices.Contains([]string{"seconds", "date", "date-rfc850"}, b.Metadata.Kind) {
			return "origin", "typed-metadata needs seconds or a date"
		}
	case OriginHeaders, OriginNativeError:
	default:
		return "origin", "is not a known origin"
	}
	return b.kindFault(t.ReceivedAtUTC == nil)
}

// kindFault checks pair and timing against each other; blank says that there must be no end.
func (b Backoff) kindFault(blank bool) (field, why string) {
	m, t := b.Metadata, b.Timing
	least, most := int64(0), int64(0)
	switch m.Kind {
	case "seconds":
		most = 30
	case "date", "date-rfc850":
		least, most = firstSecond, lastSecond
	case "missing", "invalid", "overlong":
	default:
		return "metadata.kind", "is not a known kind"
	}
	if m.Value < least || m.Value > most {
		return "metadata.value", "is out of the range of its kind"
	}
	if blank {
		return "", ""
	}
	delay := int64(1) // of a missing or invalid field
	named := m.Kind == "seconds"
	switch m.Kind {
	case "date", "date-rfc850":
		if t.NotBeforeUTC == nil || *t.NotBeforeUTC != m.Value || t.ServerDelaySeconds != nil {
			return "timing", "is not what the date gives"
		}
		return "", ""
	case "seconds":
		delay = m.Value
	case "overlong":
		if t.NotBeforeUTC == nil && t.ServerDelaySeconds == nil {
			return "", ""
		}
		if t.ServerDelaySeconds == nil || *t.ServerDelaySeconds <= 30 {
			return "timing.server_delay_seconds", "must be more than 30"
		}
		delay, named = *t.ServerDelaySeconds, true
	}
	if unknown := named && t.NotBeforeUTC == nil; !unknown && (t.ServerDelaySeconds != nil) != named ||
		t.ServerDelaySeconds != nil && *t.ServerDelaySeconds != delay {
		return "timing.server_delay_seconds", "is not what the kind gives"
	}
	return ends(*t.ReceivedAtUTC, delay, t.NotBeforeUTC)
}

// ends checks an end that is a receipt plus a delay. The receipt was rounded down and the end up, so the end may lie one second further
// on: the fraction of the receipt is not in the record. No end at all is right only where the end is beyond the year 9999.
func ends(received, delay int64, notBefore *int64) (field, why string) {
	least := lastSecond - received // the largest delay that still has an end
	switch {
	case notBefore == nil && delay >= least:
		return "", ""
	case notBefore == nil, delay > least, *notBefore-received < delay, *notBefore-received > delay+1:
		return "timing.not_before_utc", "is not what kind and receipt give"
	}
	return "", ""
}
