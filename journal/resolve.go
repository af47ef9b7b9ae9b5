package journal

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

// ReviewDelay is how long, in seconds, a journal stays blocked after an operator's review.
const ReviewDelay = 600

// The outcomes that an operator can state for an interrupted request.
const (
	OutcomeApplied    = "applied"     // the server did it
	OutcomeNotApplied = "not-applied" // the server did not do it
	OutcomeUnknown    = "unknown"     // it could not be found out
)

// Review is an operator's statement inside a restriction.
type Review struct {
	// Outcome is one of the Outcome constants.
	Outcome string `json:"outcome"`
	// Approval is the digest of what the operator approved.
	Approval string `json:"approval"`
	// Metadata is that of the restriction which records the statement, see [Restriction]. It may be
	// nil.
	Metadata json.RawMessage `json:"-"`
}

// Doubt is one thing that keeps a journal unresolved and that an operator can resolve: a request
// whose outcome is not recorded, an attempt without a result, or a restriction without an end.
// Reason is one of the Reason constants.
type Doubt struct {
	Reason        string  `json:"reason"`
	Method        string  `json:"method"`
	URLDigest     string  `json:"url_digest"`
	Nonce         *string `json:"nonce"`
	Attempt       *string `json:"attempt"`
	AttemptDigest *string `json:"attempt_digest"`
}

// Doubts lists what an operator would have to resolve, the marker first.
func (r *Record) Doubts() []Doubt {
	var all []Doubt
	open := slices.DeleteFunc(r.Unfinished(), func(name string) bool { _, ended := r.RestrictionOf(name); return ended })
	if p := r.pending; r.Pending() {
		d := Doubt{Reason: ReasonPending, Method: p.Method, URLDigest: p.URLDigest, Nonce: &p.Nonce}
		// A POST that was pending while an attempt was open is that attempt's, unless the attempt
		// went elsewhere.
		if p.Method == "POST" && len(open) > 0 && r.mayBe(open[len(open)-1], p.URLDigest) {
			d.Attempt, d.AttemptDigest = r.reference(open[len(open)-1])
			open = open[:len(open)-1]
		}
		all = append(all, d)
	}
	for _, name := range open {
		d := Doubt{Reason: ReasonNoResult, Method: "POST"}
		if url := r.facts[name].URL; url != "" {
			d.URLDigest = urlDigest(url)
		}
		d.Attempt, d.AttemptDigest = r.reference(name)
		all = append(all, d)
	}
	for _, e := range r.restrictions {
		if e.Timing.NotBeforeUTC == nil && !r.reviewed(e) {
			all = append(all, Doubt{Reason: ReasonNoEnd, Method: e.Method, URLDigest: e.URLDigest, Nonce: &e.Nonce})
		}
	}
	return all
}

func (r *Record) mayBe(attempt, digest string) bool {
	known := r.facts[attempt].URL
	return known == "" || urlDigest(known) == digest
}

func (r *Record) reference(name string) (*string, *string) {
	e := r.entries[name]
	return &e.Name, &e.Digest
}

// Resolve appends an operator's statement about one doubt as a restriction with a review, and
// removes the marker that it finishes. The journal stays blocked until notBefore, which must be at
// least [ReviewDelay] after reviewed, the time of the operator's review; reviewed must not be after
// now, nor before the receipt of any restriction. It frees the journal, never the attempt: an
// interrupted attempt never gets a result.
func (j *Journal) Resolve(now, reviewed, notBefore time.Time, d Doubt, statement Review) (Restriction, error) {
	if j.latched != nil {
		return Restriction{}, j.latched
	}
	known := slices.ContainsFunc(j.record.Doubts(), func(k Doubt) bool { return k.is(d) })
	refuse := func(field, why string) (Restriction, error) {
		return Restriction{}, j.layout.fault(CodeInvalid, "", field, "%s", why)
	}
	switch {
	case !known:
		return refuse("", "that request no longer needs resolving")
	case len(j.record.restrictions) >= MaxRestrictions:
		return Restriction{}, j.layout.full()
	case reviewed.After(now):
		return refuse("reviewed", "is in the future")
	case slices.ContainsFunc(j.record.restrictions, func(e Restriction) bool {
		return e.Timing.ReceivedAtUTC != nil && reviewed.Unix() < *e.Timing.ReceivedAtUTC
	}):
		return refuse("reviewed", "is before the last restriction")
	}
	received, end := reviewed.Unix(), ceil(notBefore)
	e, err := j.write(j.record.nextRestriction(), stored{
		Version: version, PlanDigest: j.record.planDigest, Previous: j.record.last(), Method: d.Method, URLDigest: d.URLDigest,
		Attempt: d.Attempt, AttemptDigest: d.AttemptDigest, Nonce: d.Nonce, Metadata: object(statement.Metadata),
		Timing: RetryAfterTiming{ReceivedAtUTC: &received, NotBeforeUTC: &end}, Origin: originReview, Review: &statement,
	})
	if err != nil {
		return Restriction{}, err
	}
	recorded, _ := j.record.Restriction(e.Digest)
	return recorded, j.tidy()
}

func ceil(t time.Time) int64 {
	if t.Nanosecond() == 0 {
		return t.Unix()
	}
	return t.Unix() + 1
}

func (d Doubt) is(o Doubt) bool {
	eq := func(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return d.Reason == o.Reason && d.Method == o.Method && d.URLDigest == o.URLDigest && eq(d.Nonce, o.Nonce) &&
		eq(d.Attempt, o.Attempt) && eq(d.AttemptDigest, o.AttemptDigest)
}

// reviewFault checks a restriction of origin operator-review.
func (b stored) reviewFault() (field, why string) {
	t := b.Timing
	switch {
	case !slices.Contains([]string{OutcomeApplied, OutcomeNotApplied, OutcomeUnknown}, b.Review.Outcome):
		return "review.outcome", "must be applied, not-applied or unknown"
	case !strictjson.IsDigest(b.Review.Approval):
		return "review.approval", "is not a digest"
	case b.RequestID != nil || t.ServerDelaySeconds != nil:
		return "request_id", "must be null, without a delay: there was no response"
	case t.NotBeforeUTC == nil || *t.NotBeforeUTC-*t.ReceivedAtUTC < ReviewDelay:
		return "timing.not_before_utc", "must be at least 600 seconds after the review"
	}
	return "", ""
}
