package record

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// BackoffVersion is what a run declares whose restrictions are recorded (S100).
const BackoffVersion = "1.0"

// ReasonLegacy says that a 429 was recorded without its restriction, in a journal from before they
// were (S113).
const ReasonLegacy = "throttled-without-timing"

// The origins of a restriction: how its timing came to be known. An operator's statement has one of
// its own.
const (
	OriginHeaders     = "response-headers"  // from the header fields of the answer
	OriginNativeError = "native-http-error" // from an error that a client library built from them
	OriginTyped       = "typed-metadata"    // from the canonical pair alone
	OriginUnavailable = "unavailable"       // there is none: the journal is unresolved
)

// RetryAfter is the canonical pair of a Retry-After field; see [retryafter.Canonical] for the kinds
// and values.
type RetryAfter struct {
	Kind  string `json:"kind"`
	Value int64  `json:"value"`
}

func (p RetryAfter) metadata() json.RawMessage {
	data, err := strictjson.Canonical(p)
	if err != nil {
		panic("record: a canonical pair has no canonical form: " + err.Error())
	}
	return data
}

// RetryAfterOf is the pair of a recorded restriction.
func RetryAfterOf(r journal.Restriction) (p RetryAfter) {
	_ = json.Unmarshal(r.Metadata, &p) // checked when the journal was loaded
	return p
}

// ReviewMetadata is the pair of an operator's statement: no server said anything.
func ReviewMetadata() json.RawMessage { return RetryAfter{Kind: "missing"}.metadata() }

// FromHeaders makes a restriction of a parsed header field. A missing or malformed field stands for
// one second (S16); a delay that cannot be known leaves the journal unresolved, and is never zero.
func FromHeaders(report retryafter.Report, requestID string) journal.Restriction {
	r := journal.FromReport(report, requestID)
	c := report.Canonical()
	r.Origin, r.Metadata = OriginHeaders, RetryAfter{c.Kind, c.Value}.metadata()
	return r
}

// FromTyped makes a restriction of a canonical pair whose header field is no longer known (S112):
// seconds and dates are resolved against the time of recording; everything else is unavailable.
func FromTyped(pair retryafter.Canonical, recorded time.Time, requestID string) journal.Restriction {
	origin := OriginTyped
	report := retryafter.Report{Received: recorded}
	switch pair.Kind {
	case "seconds":
		report.Kind, report.Seconds = retryafter.KindSeconds, pair.Value
	case "date", "date-rfc850":
		report.Kind, report.Date = retryafter.KindDate, time.Unix(pair.Value, 0).UTC()
	default:
		origin = OriginUnavailable
	}
	r := journal.FromReport(report, requestID)
	if r.Timing.ReceivedAtUTC == nil {
		origin = OriginUnavailable
	}
	if origin == OriginUnavailable {
		r.Timing.NotBeforeUTC, r.Timing.ServerDelaySeconds = nil, nil
	}
	r.Origin, r.Metadata = origin, RetryAfter{pair.Kind, pair.Value}.metadata()
	return r
}

// checkRestriction compares the timing with what its origin, kind and receipt give when they are
// worked out again.
func checkRestriction(r journal.Restriction) error {
	var p RetryAfter
	if err := strictjson.Exact(r.Metadata, &p); err != nil {
		return inside("metadata", err)
	}
	field, why := p.fault(r)
	if why != "" {
		return fault(field, "%s", why)
	}
	return nil
}

func (p RetryAfter) fault(r journal.Restriction) (field, why string) {
	t := r.Timing
	if r.Review != nil {
		if p != (RetryAfter{Kind: "missing"}) {
			return "metadata", "must be missing: there was no response"
		}
		return "", ""
	}
	switch r.Origin {
	case OriginUnavailable:
		if t.NotBeforeUTC != nil || t.ServerDelaySeconds != nil {
			return "timing", "must not have an end when the origin is unavailable"
		}
		return p.kindFault(t, true)
	case OriginTyped:
		if !slices.Contains([]string{"seconds", "date", "date-rfc850"}, p.Kind) {
			return "origin", "typed-metadata needs seconds or a date"
		}
	case OriginHeaders, OriginNativeError:
	default:
		return "origin", "is not a known origin"
	}
	return p.kindFault(t, t.ReceivedAtUTC == nil)
}

// lastSecond and firstSecond bound the years 1 to 9999 (S19).
const (
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

// kindFault checks pair and timing against each other; blank says that there must be no end.
func (p RetryAfter) kindFault(t journal.RetryAfterTiming, blank bool) (field, why string) {
	least, most := int64(0), int64(0)
	switch p.Kind {
	case "seconds":
		most = 30
	case "date", "date-rfc850":
		least, most = firstSecond, lastSecond
	case "missing", "invalid", "overlong":
	default:
		return "metadata.kind", "is not a known kind"
	}
	if p.Value < least || p.Value > most {
		return "metadata.value", "is out of the range of its kind"
	}
	if blank {
		return "", ""
	}
	delay := int64(1) // of a missing or invalid field
	named := p.Kind == "seconds"
	switch p.Kind {
	case "date", "date-rfc850":
		if t.NotBeforeUTC == nil || *t.NotBeforeUTC != p.Value || t.ServerDelaySeconds != nil {
			return "timing", "does not follow from the date"
		}
		return "", ""
	case "seconds":
		delay = p.Value
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
		return "timing.server_delay_seconds", "does not follow from the kind"
	}
	return ends(*t.ReceivedAtUTC, delay, t.NotBeforeUTC)
}

// ends checks an end that is a receipt plus a delay. The receipt was rounded down and the end up,
// so the end may lie one second further on: the fraction of the receipt is not in the record. No
// end at all is right only where the end is beyond the year 9999.
func ends(received, delay int64, notBefore *int64) (field, why string) {
	least := lastSecond - received // the largest delay that still has an end
	switch {
	case notBefore == nil && delay >= least:
		return "", ""
	case notBefore == nil, delay > least, *notBefore-received < delay, *notBefore-received > delay+1:
		return "timing.not_before_utc", "does not follow from kind and receipt"
	}
	return "", ""
}
