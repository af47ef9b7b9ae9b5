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
	// Ends is the digest of the restriction that the statement takes out of force, and Why the
	// reason of the doubt that it is about. [Journal.Resolve] sets them; they are "" for a
	// statement about a request.
	Ends string `json:"ends,omitempty"`
	Why  string `json:"why,omitempty"`
	// Metadata is that of the restriction which records the statement, see [Restriction]. It may be
	// nil.
	Metadata json.RawMessage `json:"-"`
}

// Doubt is one thing that an operator can resolve: a request whose outcome is not recorded, an
// attempt without a result, a restriction without an end ([Record.Doubts]), or a restriction that
// is in force and can be contested ([Record.Contestable]). Reason is one of the Reason constants.
type Doubt struct {
	Reason        string  `json:"reason"`
	Method        string  `json:"method"`
	URLDigest     string  `json:"url_digest"`
	Nonce         *string `json:"nonce"`
	Attempt       *string `json:"attempt"`
	AttemptDigest *string `json:"attempt_digest"`
	// Restriction is the digest of the restriction that is contested, nil for every other doubt.
	Restriction *string `json:"restriction,omitempty"`
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

// contestable is how long, in seconds, a wait must be for an operator to contest it. A shorter one
// can be meant, and passes by itself.
const contestable = 24 * 60 * 60

// Contestable lists the restrictions that hold the journal back at now and that an operator can end
// before their time: those whose answer was received at a time that has not come yet, so that the
// clock was wrong then or is wrong now ([ReasonRegression]), and after them those that ask for a
// wait of more than a day, such as an epoch given as seconds ([ReasonNoEnd]). Nothing ends them but
// [Journal.Resolve].
func (r *Record) Contestable(now time.Time) []Doubt {
	var clocks, waits []Doubt
	second := now.Unix()
	for _, e := range r.counted() {
		d := Doubt{Method: e.Method, URLDigest: e.URLDigest, Restriction: new(e.Digest)}
		switch t := e.Timing; {
		case t.ReceivedAtUTC == nil:
		case *t.ReceivedAtUTC > second:
			d.Reason = ReasonRegression
			clocks = append(clocks, d)
		case t.NotBeforeUTC != nil && *t.NotBeforeUTC > second && e.long():
			d.Reason = ReasonNoEnd
			waits = append(waits, d)
		}
	}
	return append(clocks, waits...)
}

func (r Restriction) long() bool {
	t := r.Timing
	return t.NotBeforeUTC != nil && *t.NotBeforeUTC-*t.ReceivedAtUTC > contestable
}

// counted are the restrictions that are in force: those that no operator has ended.
func (r *Record) counted() []Restriction {
	ended := map[string]bool{}
	for _, e := range r.restrictions {
		if e.Review != nil {
			ended[e.Review.Ends] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(r.restrictions), func(e Restriction) bool { return ended[e.Digest] })
}

// Earliest is the earliest end that a statement about d can have when the operator reviewed it at
// that time: [ReviewDelay] later, and never before the wait that a server asked for has passed
// since, if all that is in doubt is when it began.
func (r *Record) Earliest(d Doubt, reviewed time.Time) time.Time {
	end := reviewed.Unix() + ReviewDelay
	if e, ok := r.Restriction(deref(d.Restriction)); ok && d.Reason == ReasonRegression {
		end = max(end, e.restarted(reviewed.Unix()))
	}
	return time.Unix(end, 0).UTC()
}

// restarted is the end of a restriction whose answer came at reviewed at the latest, although its
// record says otherwise. A date needs no receipt and stays; an end that is the receipt with a
// fallback of a second or two does not.
func (r Restriction) restarted(reviewed int64) int64 {
	t := r.Timing
	switch {
	case t.ServerDelaySeconds != nil:
		return min(reviewed, lastSecond-*t.ServerDelaySeconds) + *t.ServerDelaySeconds
	case t.NotBeforeUTC == nil || *t.NotBeforeUTC >= *t.ReceivedAtUTC && *t.NotBeforeUTC <= *t.ReceivedAtUTC+2:
		return reviewed
	}
	return *t.NotBeforeUTC
}

// Resolve appends an operator's statement about one doubt as a restriction with a review, and
// removes the marker that it finishes. The journal stays blocked until notBefore, which must not be
// before [Record.Earliest]; reviewed, the time of the operator's review, must not be after now, nor
// before the receipt of any restriction that is in force. It frees the journal, never the attempt:
// an interrupted attempt never gets a result. What a statement ends stays in the journal.
func (j *Journal) Resolve(now, reviewed, notBefore time.Time, d Doubt, statement Review) (Restriction, error) {
	if j.latched != nil {
		return Restriction{}, j.latched
	}
	r := j.record
	refuse := func(field, why string) (Restriction, error) {
		return Restriction{}, j.layout.fault(CodeInvalid, "", field, "%s", why)
	}
	switch {
	case !slices.ContainsFunc(append(r.Doubts(), r.Contestable(now)...), d.is):
		return refuse("", "that request no longer needs resolving")
	case r.Full():
		return Restriction{}, j.layout.full()
	case reviewed.After(now):
		return refuse("reviewed", "is in the future")
	case d.Reason != ReasonRegression && slices.ContainsFunc(r.counted(), func(e Restriction) bool {
		return e.Timing.ReceivedAtUTC != nil && reviewed.Unix() < *e.Timing.ReceivedAtUTC
	}):
		return refuse("reviewed", "is before the last restriction: correct the clock, or end that restriction first")
	}
	statement.Ends, statement.Why = deref(d.Restriction), ""
	if d.Restriction != nil {
		statement.Why = d.Reason
	}
	received, end := reviewed.Unix(), ceil(notBefore)
	e, err := j.write(r.nextRestriction(), stored{
		Version: version, PlanDigest: r.planDigest, Previous: r.last(), Method: d.Method, URLDigest: d.URLDigest,
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
		eq(d.Attempt, o.Attempt) && eq(d.AttemptDigest, o.AttemptDigest) && eq(d.Restriction, o.Restriction)
}

// reviewFault checks a restriction of origin operator-review.
func (b stored) reviewFault() (field, why string) {
	t := b.Timing
	switch {
	case !slices.Contains([]string{OutcomeApplied, OutcomeNotApplied, OutcomeUnknown}, b.Review.Outcome):
		return "review.outcome", "must be applied, not-applied or unknown"
	case !strictjson.IsDigest(b.Review.Approval):
		return "review.approval", "is not a digest"
	case b.Review.Ends != "" && (b.Nonce != nil || b.Attempt != nil):
		return "nonce", "must be null, without an attempt: the statement is about a restriction"
	case (b.Review.Ends == "") != (b.Review.Why == ""):
		return "review.why", "belongs to a statement about a restriction"
	case b.RequestID != nil || t.ServerDelaySeconds != nil:
		return "request_id", "must be null, without a delay: there was no response"
	case t.NotBeforeUTC == nil || *t.NotBeforeUTC-*t.ReceivedAtUTC < ReviewDelay:
		return "timing.not_before_utc", "must be at least 600 seconds after the review"
	}
	return "", ""
}
