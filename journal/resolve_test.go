package journal_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

// crashed plays the script up to a number of calls and opens what is left, as the next run does.
func crashed(t *testing.T, calls int) *journal.Journal {
	t.Helper()
	s := start(journaltest.Dir(t)+"/j", unsynced)
	if _, err := s.play(script()[:calls]); err != nil {
		t.Fatal(err)
	}
	return reopen(t, s.dir)
}

func reopen(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, layout, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

var (
	tomorrow = noon.Add(24 * time.Hour)
	approved = journal.Review{Outcome: journal.OutcomeUnknown, Approval: strictjson.DigestBytes([]byte("envelope"))}
)

const quiet = journal.ReviewDelay * time.Second

// S151, row "pending of any GET": only an operator's record frees the journal; then it is quiet for
// ten minutes. S116: no clock and no later request did. tc-085: there is an explicit, recorded way
// out, and it works without deleting anything.
func TestResolvePending(t *testing.T) {
	j := crashed(t, 5)
	doubts := j.Record().Doubts()
	if len(doubts) != 1 || doubts[0].Reason != journal.ReasonPending || doubts[0].Method != "GET" || doubts[0].Nonce == nil || doubts[0].Attempt != nil {
		t.Fatalf("%+v", doubts)
	}
	if s := j.Record().Status(noon.Add(100000*time.Hour), ""); s.State != journal.Unresolved {
		t.Fatalf("time settled it: %+v", s)
	}
	e, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), doubts[0], approved)
	if err != nil {
		t.Fatal(err)
	}
	if j.Record().Pending() || len(j.Record().Doubts()) != 0 {
		t.Error("the marker is still there")
	}
	dir := j.Dir()
	j.Close()
	r, err := journal.Read(dir, layout)
	if err != nil {
		t.Fatal(err)
	}
	ev, ok := r.Restriction(e.Digest)
	if !ok || ev.Origin != "operator-review" || ev.Review == nil || ev.Review.Outcome != journal.OutcomeUnknown || ev.Nonce != *doubts[0].Nonce {
		t.Errorf("%+v", ev)
	}
	if s := r.Status(tomorrow.Add(quiet-1), ""); s.State != journal.Waiting || *s.SecondsRemaining != 1 {
		t.Errorf("just before: %+v", s)
	}
	if s := r.Status(tomorrow.Add(quiet), ""); s.State != journal.Elapsed {
		t.Errorf("after: %+v", s)
	}
}

// S151: an interrupted upload. The record frees the journal; the attempt has no result for ever,
// and none can be written later.
func TestResolveUpload(t *testing.T) {
	for name, calls := range map[string]int{"attempt only": 7, "attempt and marker": 8} {
		t.Run(name, func(t *testing.T) {
			j := crashed(t, calls)
			doubts := j.Record().Doubts()
			if len(doubts) != 1 || doubts[0].Method != "POST" || doubts[0].Attempt == nil || *doubts[0].Attempt != "attempt-0000.json" ||
				doubts[0].URLDigest != strictjson.DigestBytes([]byte(listURL)) || (doubts[0].Nonce != nil) != (calls == 8) {
				t.Fatalf("%+v", doubts)
			}
			if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), doubts[0], approved); err != nil {
				t.Fatal(err)
			}
			j = func() *journal.Journal { j.Close(); return reopen(t, j.Dir()) }()
			if s := j.Record().Status(tomorrow.Add(quiet), ""); s.State != journal.Elapsed {
				t.Errorf("%+v", s)
			}
			if got := j.Record().Unfinished(); len(got) != 1 {
				t.Errorf("the attempt counts as finished: %v", got)
			}
			status := 201
			if _, err := j.Append("result-0000.json", result{"accepted", &status, nil, "", nil}); codeOf(err) != invalid {
				t.Errorf("a result was invented: %v", err)
			}
			// The other files go on.
			if _, err := j.Append("attempt-0001.json", attempt{planDigest(), 1}); err != nil {
				t.Error(err)
			}
			x, err := j.Begin(tomorrow.Add(quiet), journal.Request{Method: "POST", URL: listURL, Attempt: "attempt-0001.json"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := j.Append("result-0001.json", result{"accepted", &status, nil, x.Nonce(), nil}); err != nil {
				t.Error(err)
			}
			if err := x.Done(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A restriction without an end can be given one by an operator, and by nobody else.
func TestResolveEndlessRestriction(t *testing.T) {
	j := begun(t)
	restrict(t, j, noon, header(noon, "99999999999999999999"))
	doubts := j.Record().Doubts()
	if len(doubts) != 1 || doubts[0].Reason != journal.ReasonNoEnd {
		t.Fatalf("%+v", doubts)
	}
	if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), doubts[0], approved); err != nil {
		t.Fatal(err)
	}
	j.Close()
	r, err := journal.Read(j.Dir(), layout)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Status(tomorrow.Add(quiet), ""); s.State != journal.Elapsed || len(r.Doubts()) != 0 {
		t.Errorf("%+v %v", s, r.Doubts())
	}
}

// S151: what a resolve must not accept. Nothing is written then.
func TestResolveRefuses(t *testing.T) {
	j := crashed(t, 5)
	d := j.Record().Doubts()[0]
	other := d
	other.Nonce = new("00000000000000000000000000000000")
	for name, tt := range map[string]struct {
		now, reviewed, end time.Time
		d                  journal.Doubt
		r                  journal.Review
	}{
		"too early an end":       {tomorrow, tomorrow, tomorrow.Add(quiet - 1*time.Second), d, approved},
		"a fraction too early":   {tomorrow, tomorrow.Add(-time.Nanosecond), tomorrow.Add(quiet - 2*time.Second), d, approved},
		"reviewed in the future": {tomorrow, tomorrow.Add(time.Second), tomorrow.Add(2 * quiet), d, approved},
		"another request":        {tomorrow, tomorrow, tomorrow.Add(quiet), other, approved},
		"no outcome":             {tomorrow, tomorrow, tomorrow.Add(quiet), d, journal.Review{Approval: approved.Approval}},
		"an invented outcome":    {tomorrow, tomorrow, tomorrow.Add(quiet), d, journal.Review{Outcome: "fine", Approval: approved.Approval}},
		"no approval":            {tomorrow, tomorrow, tomorrow.Add(quiet), d, journal.Review{Outcome: journal.OutcomeApplied}},
	} {
		if _, err := j.Resolve(tt.now, tt.reviewed, tt.end, tt.d, tt.r); codeOf(err) != invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(j.Record().Restrictions()) != 0 || !j.Record().Pending() || j.Failed() != nil {
		t.Error("something was written")
	}
	// A journal without a doubt has nothing to resolve; an old answer cannot be used twice.
	if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), d, approved); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), d, approved); codeOf(err) != invalid {
		t.Errorf("twice: %v", err)
	}
	// Not before the receipt of an earlier restriction either.
	k := begun(t)
	restrict(t, k, tomorrow, header(tomorrow, "99999999999999999999"))
	if _, err := k.Resolve(tomorrow, noon, tomorrow.Add(quiet), k.Record().Doubts()[0], approved); codeOf(err) != invalid {
		t.Errorf("reviewed before it happened: %v", err)
	}
}

// S151: a kill or a failing disk inside a resolve leaves the doubt or its settlement, never half of
// it.
func TestResolveFailsAtEveryStep(t *testing.T) {
	for k := range 30 {
		for _, landed := range []bool{false, true} {
			s := start(journaltest.Dir(t)+"/j", unsynced)
			if _, err := s.play(script()[:8]); err != nil {
				t.Fatal(err)
			}
			n := -100 // Open has a step of its own
			j, err := journal.Open(s.dir, layout, journal.Options{Around: func(_, _ string, call func() error) error {
				if n++; n != k {
					return call()
				}
				if landed {
					return errors.Join(call(), errDisk)
				}
				return errDisk
			}})
			if err != nil {
				t.Fatal(err)
			}
			n = -1
			_, err = j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), j.Record().Doubts()[0], approved)
			reached := n >= k
			j.Close()
			r, rerr := journal.Read(s.dir, layout)
			v := verdict(r, rerr, tomorrow)
			if v != "unresolved: pending-request" && v != "waiting" || reached != (err != nil) || err == nil && v != "waiting" {
				t.Errorf("step %d landed=%v: %q after %v", k, landed, v, err)
			}
			if !reached {
				return
			}
		}
	}
	t.Error("a resolve has more steps than expected")
}

// A restriction of another origin carries no review, and a review is nothing but a review.
func TestReviewIsClosed(t *testing.T) {
	j := crashed(t, 5)
	e, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), j.Record().Doubts()[0], approved)
	if err != nil {
		t.Fatal(err)
	}
	payload := func(name string) (raw map[string]json.RawMessage) {
		t.Helper()
		var w struct{ Payload json.RawMessage }
		if err := errors.Join(json.Unmarshal(contents(t, j.Dir())[name], &w), json.Unmarshal(w.Payload, &raw)); err != nil {
			t.Fatal(err)
		}
		return raw
	}
	if raw := payload(e.Name); len(raw) != 13 || e.Review == nil || e.Review.Outcome != approved.Outcome || e.Review.Approval != approved.Approval {
		t.Errorf("%d members, %+v", len(raw), e.Review)
	}
	restrict(t, j, tomorrow.Add(quiet), header(tomorrow.Add(quiet), "5"))
	if raw := payload("backoff-0001.json"); len(raw) != 12 || raw["review"] != nil {
		t.Errorf("%d members", len(raw))
	}
}
