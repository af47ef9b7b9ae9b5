package journal

import (
	"slices"
	"time"
)

// ReviewDelay is how long, in seconds, a journal that an operator frees must stay quiet after the interrupted request (S151).
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
}

// Doubt is one thing that keeps a journal unresolved and that an operator can settle: a request whose end is not recorded, an attempt
// without a result, or a restriction without an end.
type Doubt struct {
	Reason        string  `json:"reason"`
	Method        string  `json:"method"`
	URLDigest     string  `json:"url_digest"`
	Nonce         *string `json:"nonce"`
	Attempt       *string `json:"attempt"`
	AttemptDigest *string `json:"attempt_digest"`
}

// Doubts lists what an operator would have to settle, the marker first.
func (r *Record) Doubts() []Doubt {
	var all []Doubt
	open := slices.DeleteFunc(r.Unfinished(), func(name string) bool { _, ended := r.EventOf(name); return ended })
	if p := r.Pending(); p != nil {
		d := Doubt{Reason: ReasonPending, Method: p.Method, URLDigest: p.URLDigest, Nonce: &p.Nonce}
		// A POST that was pending while an attempt was open is that attempt's, unless the attempt went elsewhere.
		if p.Method == "POST" && len(open) > 0 && r.mayBe(open[len(open)-1], p.URLDigest) {
			d.Attempt, d.AttemptDigest = r.reference(open[len(open)-1])
			open = open[:len(open)-1]
		}
		all = append(all, d)
	}
	for _, name := range open {
		d := Doubt{Reason: ReasonNoResult, Method: "POST", URLDigest: r.facts[name].URLDigest}
		d.Attempt, d.AttemptDigest = r.reference(name)
		all = append(all, d)
	}
	for _, e := range r.events {
		if e.Timing.NotBeforeUTC == nil && !r.reviewed(e) {
			all = append(all, Doubt{Reason: ReasonNoEnd, Method: e.Method, URLDigest: e.URLDigest, Nonce: e.Nonce})
		}
	}
	return all
}

func (r *Record) mayBe(attempt, urlDigest string) bool {
	known := r.facts[attempt].URLDigest
	return known == "" || known == urlDigest
}

func (r *Record) reference(name string) (*string, *string) {
	e := r.entries[name]
	return &e.Name, &e.Digest
}

// Resolve appends an operator's statement about one doubt as a restriction with origin operator-review, and removes the marker that it
// finishes. The journal stays quiet until notBefore, which must be at least [ReviewDelay] after reviewed, the time at which the operator
// looked; reviewed must not be after now, nor before the receipt of any restriction. It frees the journal, never the attempt: an interrupted
// attempt has no result for ever.
func (j *Journal) Resolve(now, reviewed, notBefore time.Time, d Doubt, statement Review) (Entry, error) {
	if j.latched != nil {
		return Entry{}, j.latched
	}
	known := slices.ContainsFunc(j.record.Doubts(), func(k Doubt) bool { return k.is(d) })
	refuse := func(field, why string) (Entry, error) {
		return Entry{}, j.layout.fault(CodeInvalid, "", field, "%s", why)
	}
	switch {
	case !known:
		return refuse("", "the journal has no such open question any more")
	case len(j.record.events) >= MaxEvents:
		return Entry{}, j.layout.fault(CodeLimit, "", "", "the journal holds %d restrictions, the most that it may hold", MaxEvents)
	case reviewed.After(now):
		return refuse("reviewed", "lies in the future")
	case slices.ContainsFunc(j.record.events, func(e Event) bool {
		return e.Timing.ReceivedAtUTC != nil && reviewed.Unix() < *e.Timing.ReceivedAtUTC
	}):
		return refuse("reviewed", "lies before the last restriction")
	}
	received, end := reviewed.Unix(), ceil(notBefore)
	e, err := j.write(Numbered(EventType, len(j.record.events)), Backoff{
		Version: EventVersion, PlanDigest: j.record.founding.PlanDigest, Previous: j.record.last(), Method: d.Method, URLDigest: d.URLDigest,
		Attempt: d.Attempt, AttemptDigest: d.AttemptDigest, Nonce: d.Nonce, Metadata: RetryAfter{Kind: "missing"},
		Timing: RetryAfterTiming{ReceivedAtUTC: &received, NotBeforeUTC: &end}, Origin: OriginReview, Review: &statement,
	})
	if err != nil {
		return Entry{}, err
	}
	return e, j.tidy()
}

func ceil(t time.Time) int64 {
	if t.Nanosecond() == 0 {
		return t.Unix()
	}
	return t.Unix() + 1
}

func (d Doubt) is(o Doubt) bool {
	eq := func(a, b *string) bool { return a == nil && b == nil || same(a, b) }
	return d.Reason == o.Reason && d.Method == o.Method && d.URLDigest == o.URLDigest && eq(d.Nonce, o.Nonce) &&
		eq(d.Attempt, o.Attempt) && eq(d.AttemptDigest, o.AttemptDigest)
}

// reviewFault checks a restriction of origin operator-review.
func (b Backoff) reviewFault() (field, why string) {
	t := b.Timing
	switch {
	case !slices.Contains([]string{OutcomeApplied, OutcomeNotApplied, OutcomeUnknown}, b.Review.Outcome):
		return "review.outcome", "must be applied, not-applied or unknown"
	case !IsDigest(b.Review.Approval):
		return "review.approval", "is not a digest"
	case b.Metadata != RetryAfter{Kind: "missing"} || b.RequestID != nil || t.ServerDelaySeconds != nil:
		return "metadata", "must be missing: no server said anything"
	case t.NotBeforeUTC == nil || *t.NotBeforeUTC-*t.ReceivedAtUTC < ReviewDelay:
		return "timing.not_before_utc", "must be at least 600 seconds after the review"
	}
	return "", ""
}
