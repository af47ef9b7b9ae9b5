package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// begun makes a journal with run and acknowledgement, open for writing.
func begun(t *testing.T) *journal.Journal { return begunWith(t, unsynced) }

func begunWith(t *testing.T, opt journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Create(journaltest.Dir(t), layout, founding{plan}, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	if _, err := j.Append("source-ack.json", ack{201, "ack-id"}); err != nil {
		t.Fatal(err)
	}
	return j
}

// restrict lets a GET be answered 429.
func restrict(t *testing.T, j *journal.Journal, at time.Time, r journal.Restriction) {
	t.Helper()
	x, err := j.Begin(at, journal.Request{Method: "GET", URL: listURL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Restrict(r); err != nil {
		t.Fatal(err)
	}
}

// S16 to S19, S106 to S112, section 14: what one restriction does to the status, moment by moment.
func TestStatusTable(t *testing.T) {
	const quarter = 250 * time.Millisecond
	date := func(d time.Duration) string { return retryafter.FormatDate(noon.Add(d)) }
	for name, tt := range map[string]struct {
		r      journal.Restriction
		after  time.Duration // since noon, when the answer was received
		state  journal.State
		rest   int64
		reason string
	}{
		"60 s, at once":       {header(noon, "60"), 0, journal.Waiting, 60, ""},
		"60 s, after 59.75 s": {header(noon, "60"), time.Minute - quarter, journal.Waiting, 1, ""},
		// S110
		"60 s, exactly":              {header(noon, "60"), time.Minute, journal.Elapsed, 0, ""},
		"60 s, long after":           {header(noon, "60"), time.Hour, journal.Elapsed, 0, ""},
		"60 s, clock set back":       {header(noon, "60"), -time.Second, journal.Unresolved, 0, journal.ReasonRegression},
		"60 s, clock set back a bit": {header(noon, "60"), -quarter, journal.Unresolved, 0, journal.ReasonRegression},
		// never shortened
		"received at .75, 60 s":    {header(noon.Add(3*quarter), "60"), time.Minute + quarter, journal.Waiting, 1, ""},
		"received at .75, 60.75 s": {header(noon.Add(3*quarter), "60"), time.Minute + 3*quarter, journal.Waiting, 1, ""},
		"received at .75, 61 s":    {header(noon.Add(3*quarter), "60"), time.Minute + 4*quarter, journal.Elapsed, 0, ""},
		// S87
		"one year": {header(noon, "31536000"), 24 * time.Hour, journal.Waiting, 31536000 - 86400, ""},
		// tc-001
		"beyond a Duration":    {header(noon, "18446744074"), time.Hour, journal.Waiting, 18446744074 - 3600, ""},
		"beyond the year 9999": {header(noon, "9223372036854775807"), time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd},
		"beyond int64":         {header(noon, "99999999999999999999"), time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd},
		"date":                 {header(noon, date(90*time.Second)), time.Minute, journal.Waiting, 30, ""},
		// S15
		"past date":               {header(noon, date(-time.Hour)), 0, journal.Elapsed, 0, ""},
		"zero":                    {header(noon, "0"), 0, journal.Elapsed, 0, ""},
		"missing, at once":        {header(noon), 0, journal.Waiting, 1, ""}, // S16
		"missing, a second later": {header(noon), time.Second, journal.Elapsed, 0, ""},
		"invalid":                 {header(noon, "soon"), 0, journal.Waiting, 1, ""},
		"two fields":              {header(noon, "1", "60"), 0, journal.Waiting, 1, ""},
		// S19
		"receipt clock unusable":   {header(time.Time{}, "60"), time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd},
		"now unusable":             {header(noon, "60"), math.MinInt64, journal.Unresolved, 0, journal.ReasonClock},
		"now beyond the year 9999": {header(noon, "60"), math.MaxInt64, journal.Unresolved, 0, journal.ReasonClock},
		// tc-023
		"rfc850, this century, 60 s":   {header(noon, "Tuesday, 01-Dec-26 12:01:00 GMT"), 0, journal.Waiting, 60, ""},
		"oversized 5 s stays unknown":  {header(noon, string(make([]byte, 200))), time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd},
		"seconds up to the last year":  {header(noon, "251606174399"), time.Hour, journal.Waiting, 251606174399 - 3600, ""},
		"one second beyond the last":   {header(noon, "251606174400"), time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd},
		"the last, but received at .5": {header(noon.Add(2*quarter), "251606174399"), time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd},
	} {
		t.Run(name, func(t *testing.T) {
			j := begun(t)
			restrict(t, j, noon, tt.r)
			dir := j.Record()
			now := noon.Add(tt.after)
			if odd, ok := map[time.Duration]time.Time{math.MinInt64: {}, math.MaxInt64: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}[tt.after]; ok {
				now = odd
			}
			s := dir.Status(now, "")
			if s.State != tt.state || s.Reason != tt.reason {
				t.Fatalf("got %+v, want %s %q", s, tt.state, tt.reason)
			}
			timed := s.State == journal.Waiting || s.State == journal.Elapsed
			if (s.NotBeforeUTC != nil) != timed || (s.SecondsRemaining != nil) != timed { // S109
				t.Errorf("members: %+v", s)
			}
			if timed && *s.SecondsRemaining != tt.rest {
				t.Errorf("%d seconds remain, want %d", *s.SecondsRemaining, tt.rest)
			}
			// S106, S107, S110: whether a request may begin follows from this and from nothing
			// else.
			wantCode := map[journal.State]string{journal.Waiting: "file-upload-backoff-waiting", journal.Unresolved: "file-upload-backoff-unresolved"}[s.State]
			if err := dir.Gate(now); codeOf(err) != wantCode {
				t.Errorf("gate: %v", err)
			}
			before := len(dir.Restrictions())
			x, err := j.Begin(now, journal.Request{Method: "GET", URL: listURL})
			if codeOf(err) != wantCode || len(dir.Restrictions()) != before {
				t.Errorf("begin: %v", err)
			}
			if wantCode != "" && dir.Pending() {
				t.Error("a refused request left a marker")
			}
			_ = x
		})
	}
}

// S109: nothing but these members, whatever the state.
func TestStatusJSON(t *testing.T) {
	j := begun(t)
	check := func(now time.Time, want string) {
		t.Helper()
		got, err := json.Marshal(j.Record().Status(now, ""))
		if err != nil || string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	check(noon, `{"status":"clear"}`)
	restrict(t, j, noon, header(noon, "60"))
	check(noon, `{"status":"waiting","not_before_utc":1796126460,"seconds_remaining":60}`)
	check(noon.Add(time.Hour), `{"status":"elapsed","not_before_utc":1796126460,"seconds_remaining":0}`)
	check(noon.Add(-time.Hour), `{"status":"unresolved","reason":"clock-before-last-receipt"}`)
}

// S111: the restriction is the journal's, not that of a URL: the latest end of all counts, also
// when a later answer named an earlier one. tc-029, tc-030, tc-031: nothing shortens it.
func TestLatestEndCounts(t *testing.T) {
	j := begun(t)
	restrict(t, j, noon, header(noon, "0"))
	restrict(t, j, noon, header(noon, "10"))
	at := noon.Add(10 * time.Second)
	restrict(t, j, at, header(at, "300"))
	if _, err := j.Begin(at.Add(299*time.Second), journal.Request{Method: "GET", URL: "https://other.example/"}); codeOf(err) != "file-upload-backoff-waiting" {
		t.Errorf("another URL: %v", err)
	}
	s := j.Record().Status(at, "")
	if *s.NotBeforeUTC != noon.Unix()+310 {
		t.Errorf("got %+v", s)
	}
	at = at.Add(300 * time.Second)
	restrict(t, j, at, header(at, retryafter.FormatDate(noon)))
	if s := j.Record().Status(at, ""); *s.NotBeforeUTC != noon.Unix()+310 || s.State != journal.Elapsed {
		t.Errorf("a past date moved the end: %+v", s)
	}
}

// S108: the order of the reasons. Each is found although all later ones hold as well.
func TestStatusOrder(t *testing.T) {
	j := begun(t)
	early := noon.Add(-time.Hour)
	restrict(t, j, noon, header(noon, "99999999999999999999"))
	if s := j.Record().Status(early, ""); s.Reason != journal.ReasonNoEnd {
		t.Errorf("no end before the clock: %+v", s)
	}
	if _, err := j.Append("attempt-0000.json", attempt{planDigest(), 0}); err != nil {
		t.Fatal(err)
	}
	if s := j.Record().Status(early, ""); s.Reason != journal.ReasonNoResult {
		t.Errorf("no result before no end: %+v", s)
	}
	if s := j.Record().Status(early, "attempt-0000.json"); s.Reason != journal.ReasonNoEnd {
		t.Errorf("the attempt that is being made does not count: %+v", s)
	}
}

// What a layout says of an entry leaves the journal unresolved, after the pending request and
// before everything else.
func TestUnresolvedEntry(t *testing.T) {
	l := *layout
	l.Types = slices.Concat(l.Types, []journal.Type{{Name: "note", Max: 2, Facts: func(e journal.Entry) (journal.Facts, error) {
		return journal.Facts{Unresolved: fmt.Sprint("because-of-", e.Number)}, nil
	}}})
	j, err := journal.Create(journaltest.Dir(t), &l, founding{plan}, unsynced)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := j.Append("source-ack.json", ack{201, "ack-id"}); err != nil {
		t.Fatal(err)
	}
	restrict(t, j, noon, header(noon, "99999999999999999999"))
	for _, name := range []string{"note-0001.json", "note-0000.json", "attempt-0000.json"} {
		var payload any = struct{}{}
		if name == "attempt-0000.json" {
			payload = attempt{planDigest(), 0}
		}
		if _, err := j.Append(name, payload); err != nil {
			t.Fatal(err)
		}
	}
	if s := j.Record().Status(noon.Add(10000*time.Hour), ""); s.State != journal.Unresolved || s.Reason != "because-of-0" {
		t.Errorf("got %+v", s)
	}
	_, err = j.Begin(noon.Add(time.Hour), journal.Request{Method: "GET", URL: listURL})
	if e, ok := errors.AsType[*journal.Error](err); !ok || !errors.Is(err, journal.CodeUnresolved) || e.Status.Reason != "because-of-0" {
		t.Errorf("begin: %v", err)
	}
}

// The layout has its say on what a restriction keeps, before it is written.
func TestRestrictionRefused(t *testing.T) {
	j := begun(t)
	x, err := j.Begin(noon, journal.Request{Method: "GET", URL: listURL})
	if err != nil {
		t.Fatal(err)
	}
	r := header(noon, "60")
	r.Origin = "hearsay"
	_, err = x.Restrict(r)
	if e, ok := errors.AsType[*journal.Error](err); !ok || !errors.Is(err, journal.CodeInvalid) || e.Field != "origin" || e.Entry != "backoff-0000.json" {
		t.Errorf("got %v", err)
	}
	if j.Failed() == nil || len(j.Record().Restrictions()) != 0 {
		t.Error("a restriction that could not be recorded lets the next request begin")
	}
}
