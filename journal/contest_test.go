package journal_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// rw-043: an epoch given as seconds is kept as it was said, until an operator states that it cannot
// be meant; then the statement's own ten minutes count. What was said stays, beside the statement.
func TestEndWhatCannotBeMeant(t *testing.T) {
	j := begun(t)
	epoch := retryafter.FormatSeconds(time.Duration(tomorrow.Unix()) * time.Second)
	restrict(t, j, noon, header(noon, epoch))
	if s := j.Record().Status(tomorrow, ""); s.State != journal.Waiting || *s.NotBeforeUTC < noon.Unix()+tomorrow.Unix() {
		t.Fatalf("%+v", s)
	}
	if len(j.Record().Doubts()) != 0 {
		t.Error("a wait is no doubt")
	}
	doubts := j.Record().Contestable(tomorrow)
	first := j.Record().Restrictions()[0]
	if len(doubts) != 1 || doubts[0].Reason != journal.ReasonNoEnd || *doubts[0].Restriction != first.Digest || doubts[0].Nonce != nil {
		t.Fatalf("%+v", doubts)
	}
	if got := j.Record().Earliest(doubts[0], tomorrow); !got.Equal(tomorrow.Add(quiet)) {
		t.Errorf("earliest %v", got)
	}
	if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet-time.Second), doubts[0], approved); codeOf(err) != invalid {
		t.Errorf("too early: %v", err)
	}
	e, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), doubts[0], approved)
	if err != nil {
		t.Fatal(err)
	}
	if e.Review.Ends != first.Digest || e.Review.Why != journal.ReasonNoEnd || e.Nonce != "" || e.Attempt != "" {
		t.Errorf("%+v", e.Review)
	}
	if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), doubts[0], approved); codeOf(err) != invalid {
		t.Errorf("twice: %v", err)
	}
	j.Close()
	r, err := journal.Read(j.Dir(), layout)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Status(tomorrow.Add(quiet-1), ""); s.State != journal.Waiting || *s.SecondsRemaining != 1 {
		t.Errorf("%+v", s)
	}
	if s := r.Status(tomorrow.Add(quiet), ""); s.State != journal.Elapsed || len(r.Contestable(tomorrow)) != 0 {
		t.Errorf("%+v", s)
	}
	if kept := r.Restrictions(); len(kept) != 2 || *kept[0].Timing.ServerDelaySeconds != tomorrow.Unix() {
		t.Errorf("the evidence is gone: %+v", kept)
	}
}

// A wait of up to a day can be meant, and no statement ends it; nor one that has passed.
func TestNotContestable(t *testing.T) {
	for field, want := range map[string]int{"60": 0, "86400": 0, "86401": 1, "99999999999999999999": 0} {
		j := begun(t)
		restrict(t, j, noon, header(noon, field))
		if got := j.Record().Contestable(noon); len(got) != want {
			t.Errorf("%s: %+v", field, got)
		}
		if got := j.Record().Contestable(noon.Add(48 * time.Hour)); len(got) != 0 {
			t.Errorf("%s, when it has passed: %+v", field, got)
		}
		forged := journal.Doubt{Reason: journal.ReasonNoEnd, Method: "GET", URLDigest: strictjson.DigestBytes([]byte(listURL)), Restriction: &j.Record().Restrictions()[0].Digest}
		if _, err := j.Resolve(noon, noon, noon.Add(quiet), forged, approved); want == 0 && codeOf(err) != invalid {
			t.Errorf("%s: ended: %v", field, err)
		}
	}
}

// An answer that was received under a clock that was years ahead: once the clock is right, a
// statement for each frees the journal, and the wait that the server asked for counts from the
// review: it is not shortened.
func TestEndClockFault(t *testing.T) {
	future := noon.AddDate(57, 0, 0)
	for name, tt := range map[string]struct {
		field string
		wait  time.Duration // from the review, beyond which it may be free
	}{
		"seconds":        {"7200", 2 * time.Hour},
		"short":          {"5", quiet},
		"none":           {"soon", quiet},
		"a date":         {retryafter.FormatDate(tomorrow.Add(time.Hour)), time.Hour},
		"a date nearby":  {retryafter.FormatDate(tomorrow.Add(time.Minute)), quiet},
		"a bogus date":   {retryafter.FormatDate(future.Add(time.Hour)), future.Add(time.Hour).Sub(tomorrow)},
		"an epoch":       {"1796126460", 1796126460 * time.Second},
		"beyond the end": {"99999999999999999999", quiet},
	} {
		t.Run(name, func(t *testing.T) {
			j := begun(t)
			restrict(t, j, future, header(future, tt.field))
			if s := j.Record().Status(tomorrow, ""); s.State != journal.Unresolved {
				t.Fatalf("%+v", s)
			}
			doubts := j.Record().Contestable(tomorrow)
			if len(doubts) != 1 || doubts[0].Reason != journal.ReasonRegression {
				t.Fatalf("%+v", doubts)
			}
			end := j.Record().Earliest(doubts[0], tomorrow)
			if got := end.Sub(tomorrow); got != tt.wait {
				t.Errorf("earliest after %v, want %v", got, tt.wait)
			}
			if _, err := j.Resolve(tomorrow, tomorrow, end.Add(-time.Second), doubts[0], approved); codeOf(err) != invalid {
				t.Errorf("too early: %v", err)
			}
			// nothing else can be stated before the clock is settled
			for _, d := range j.Record().Doubts() {
				if _, err := j.Resolve(tomorrow, tomorrow, end, d, approved); codeOf(err) != invalid {
					t.Errorf("%s: %v", d.Reason, err)
				}
			}
			if _, err := j.Resolve(tomorrow, tomorrow, end, doubts[0], approved); err != nil {
				t.Fatal(err)
			}
			for _, d := range j.Record().Doubts() {
				if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), d, approved); err != nil {
					t.Errorf("%s: %v", d.Reason, err)
				}
			}
			if s := j.Record().Status(end.Add(-time.Second), ""); s.State != journal.Waiting {
				t.Errorf("%+v", s)
			}
			if s := j.Record().Status(end, ""); s.State != journal.Elapsed {
				t.Errorf("%+v", s)
			}
			// A wait that cannot be meant either is a statement of its own, about the first one.
			if more := j.Record().Contestable(tomorrow); len(more) != 0 {
				if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), more[0], approved); err != nil || tt.wait < 24*time.Hour {
					t.Errorf("%+v: %v", more, err)
				}
			}
			if s := j.Record().Status(tomorrow.Add(2*time.Hour), ""); s.State != journal.Elapsed {
				t.Errorf("%+v", s)
			}
			j.Close()
			if r, err := journal.Read(j.Dir(), layout); err != nil || r.Status(tomorrow.Add(2*time.Hour), "").State != journal.Elapsed {
				t.Error(err)
			}
		})
	}
}

// Several answers under a wrong clock, and a request that was cut off: each is stated by itself, in
// that order.
func TestEndSeveralClockFaults(t *testing.T) {
	future := noon.AddDate(57, 0, 0)
	j := begun(t)
	restrict(t, j, future, header(future, "5"))
	restrict(t, j, future.Add(time.Hour), header(future.Add(time.Hour), "5"))
	if _, err := j.Begin(future.Add(2*time.Hour), journal.Request{Method: "GET", URL: listURL}); err != nil {
		t.Fatal(err)
	}
	pending := j.Record().Doubts()[0]
	for _, left := range []int{2, 1} {
		if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), pending, approved); codeOf(err) != invalid || !strings.Contains(err.Error(), "clock") {
			t.Errorf("%d left: the request: %v", left, err)
		}
		all := j.Record().Contestable(tomorrow)
		if len(all) != left {
			t.Fatalf("%+v", all)
		}
		if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), all[0], approved); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), pending, approved); err != nil {
		t.Fatal(err)
	}
	if s := j.Record().Status(tomorrow.Add(quiet), ""); s.State != journal.Elapsed {
		t.Errorf("%+v", s)
	}
}

// A kill or a failing disk inside a statement leaves the restriction in force or ended, never
// anything else.
func TestEndWaitFailsAtEveryStep(t *testing.T) {
	for k := range 30 {
		for _, landed := range []bool{false, true} {
			n := -1000
			j := begunWith(t, journal.Options{Around: func(step, name string, call func() error) error {
				if n++; n != k {
					return unsynced.Around(step, name, call)
				}
				if landed {
					return errors.Join(call(), errDisk)
				}
				return errDisk
			}})
			restrict(t, j, noon, header(noon, "1796126460"))
			n = -1
			_, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), j.Record().Contestable(tomorrow)[0], approved)
			reached := n >= k
			j.Close()
			r, rerr := journal.Read(j.Dir(), layout)
			if rerr != nil || reached != (err != nil) {
				t.Fatalf("step %d: %v, %v", k, err, rerr)
			}
			s := r.Status(tomorrow, "")
			ended := *s.NotBeforeUTC == tomorrow.Add(quiet).Unix()
			if s.State != journal.Waiting || err == nil && !ended || !ended && *s.NotBeforeUTC < 1796126460 {
				t.Errorf("step %d landed=%v: %+v after %v", k, landed, s, err)
			}
			if !reached {
				return
			}
		}
	}
	t.Error("a statement has more steps than expected")
}

// Statements that contradict what they end are refused, although every hash is right.
func TestEndContradictions(t *testing.T) {
	j := begun(t)
	restrict(t, j, noon, header(noon, "1796126460"))
	if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), j.Record().Contestable(tomorrow)[0], approved); err != nil {
		t.Fatal(err)
	}
	files := contents(t, j.Dir())
	for name, tt := range map[string]struct {
		edit  func(b *book, p, review map[string]any)
		field string
	}{
		"sound":              {func(*book, map[string]any, map[string]any) {}, ""},
		"of nothing":         {func(_ *book, _, r map[string]any) { r["ends"] = planDigest() }, "review.ends"},
		"of another request": {func(_ *book, p, _ map[string]any) { p["method"] = "HEAD" }, "review.ends"},
		"of another address": {func(_ *book, p, _ map[string]any) { p["url_digest"] = planDigest() }, "review.ends"},
		"without a reason":   {func(_ *book, _, r map[string]any) { delete(r, "why") }, "review.why"},
		"for another reason": {func(_ *book, _, r map[string]any) { r["why"] = "clock-before-last-receipt" }, "review.why"},
		"for an unknown one": {func(_ *book, _, r map[string]any) { r["why"] = "impatience" }, "review.why"},
		"a reason alone":     {func(_ *book, _, r map[string]any) { delete(r, "ends") }, "nonce"},
		"with a nonce":       {func(_ *book, p, _ map[string]any) { p["nonce"] = strings.Repeat("1", 32) }, "nonce"},
		"too early an end": {func(_ *book, p, _ map[string]any) {
			p["timing"].(map[string]any)["not_before_utc"] = tomorrow.Unix() + 599
		}, "timing.not_before_utc"},
		"of a wait of a day":  {func(b *book, _, r map[string]any) { b.shorten(r, 86400) }, "review.why"},
		"of a wait of longer": {func(b *book, _, r map[string]any) { b.shorten(r, 86402) }, ""},
		"ended twice":         {func(b *book, _, _ map[string]any) { b.copy("backoff-0001.json", "backoff-0002.json") }, "review.ends"},
	} {
		b := &book{t, map[string]map[string]any{}}
		for name, data := range files {
			b.payloads[name] = parse(t, data)["payload"].(map[string]any)
		}
		p := b.payloads["backoff-0001.json"]
		tt.edit(b, p, p["review"].(map[string]any))
		_, faults, err := journal.Files(b.seal()).Inspect(layout)
		if err != nil {
			t.Fatal(err)
		}
		found := tt.field == "" && len(faults) == 0
		for _, f := range faults {
			found = found || f.Field == tt.field && f.FullCode() == invalid
		}
		if !found {
			t.Errorf("%s: no fault at %q but %v", name, tt.field, faults)
		}
	}
}

// shorten gives the first restriction another delay.
func (b *book) shorten(review map[string]any, delay int64) {
	b.payloads["backoff-0000.json"]["metadata"] = map[string]any{"delay": delay}
	b.payloads["backoff-0000.json"]["timing"] = timing(noon.Unix(), noon.Unix()+delay, delay)
	review["ends"] = b.event(0)
}
