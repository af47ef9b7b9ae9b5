package journal_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable/durabletest"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// begun makes a journal with run and acknowledgement, open for writing.
func begun(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Create(durabletest.Dir(t), layout, founding{plan, journal.EventVersion}, unsynced)
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
	if _, err := x.Throttled(r); err != nil {
		t.Fatal(err)
	}
}

func header(received time.Time, values ...string) journal.Restriction {
	return journal.FromHeaders(retryafter.Parse(values, received), "id")
}

// S16 to S19, S106 to S112, section 14: what one restriction does to the status, moment by moment.
func TestStatusTable(t *testing.T) {
	const quarter = 250 * time.Millisecond
	typed := func(kind string, value int64) journal.Restriction {
		return journal.FromTyped(retryafter.Canonical{Kind: kind, Value: value}, noon, "id")
	}
	date := func(d time.Duration) string { return retryafter.FormatDate(noon.Add(d)) }
	for name, tt := range map[string]struct {
		r      journal.Restriction
		after  time.Duration // since noon, when the answer was received
		state  journal.State
		rest   int64
		reason string
	}{
		"60 s, at once":                {header(noon, "60"), 0, journal.Waiting, 60, ""},
		"60 s, after 59.75 s":          {header(noon, "60"), time.Minute - quarter, journal.Waiting, 1, ""},
		"60 s, exactly":                {header(noon, "60"), time.Minute, journal.Elapsed, 0, ""}, // S110
		"60 s, long after":             {header(noon, "60"), time.Hour, journal.Elapsed, 0, ""},
		"60 s, clock set back":         {header(noon, "60"), -time.Second, journal.Unresolved, 0, journal.ReasonRegression},
		"60 s, clock set back a bit":   {header(noon, "60"), -quarter, journal.Unresolved, 0, journal.ReasonRegression},
		"received at .75, 60 s":        {header(noon.Add(3*quarter), "60"), time.Minute + quarter, journal.Waiting, 1, ""}, // never shortened
		"received at .75, 60.75 s":     {header(noon.Add(3*quarter), "60"), time.Minute + 3*quarter, journal.Waiting, 1, ""},
		"received at .75, 61 s":        {header(noon.Add(3*quarter), "60"), time.Minute + 4*quarter, journal.Elapsed, 0, ""},
		"one year":                     {header(noon, "31536000"), 24 * time.Hour, journal.Waiting, 31536000 - 86400, ""}, // S87
		"beyond a Duration":            {header(noon, "18446744074"), time.Hour, journal.Waiting, 18446744074 - 3600, ""}, // tc-001
		"beyond the year 9999":         {header(noon, "9223372036854775807"), time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd},
		"beyond int64":                 {header(noon, "99999999999999999999"), time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd},
		"date":                         {header(noon, date(90*time.Second)), time.Minute, journal.Waiting, 30, ""},
		"past date":                    {header(noon, date(-time.Hour)), 0, journal.Elapsed, 0, ""}, // S15
		"zero":                         {header(noon, "0"), 0, journal.Elapsed, 0, ""},
		"missing, at once":             {header(noon), 0, journal.Waiting, 1, ""}, // S16
		"missing, a second later":      {header(noon), time.Second, journal.Elapsed, 0, ""},
		"invalid":                      {header(noon, "soon"), 0, journal.Waiting, 1, ""},
		"two fields":                   {header(noon, "1", "60"), 0, journal.Waiting, 1, ""},
		"receipt clock unusable":       {header(time.Time{}, "60"), time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd}, // S19
		"typed seconds":                {typed("seconds", 30), 10 * time.Second, journal.Waiting, 20, ""},                  // S112
		"typed date":                   {typed("date", noon.Unix()+50), 10 * time.Second, journal.Waiting, 40, ""},
		"typed old date":               {typed("date-rfc850", noon.Unix()-50), 0, journal.Elapsed, 0, ""},
		"typed missing":                {typed("missing", 0), 1000 * time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd}, // never zero
		"typed invalid":                {typed("invalid", 0), 1000 * time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd},
		"typed overlong":               {typed("overlong", 0), 1000 * time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd},
		"typed, clock unusable":        {journal.FromTyped(retryafter.Canonical{Kind: "seconds", Value: 5}, time.Time{}, ""), time.Hour, journal.Unresolved, 0, journal.ReasonNoEnd},
		"now unusable":                 {header(noon, "60"), math.MinInt64, journal.Unresolved, 0, journal.ReasonClock},
		"now beyond the year 9999":     {header(noon, "60"), math.MaxInt64, journal.Unresolved, 0, journal.ReasonClock},
		"rfc850, this century, 60 s":   {header(noon, "Tuesday, 01-Dec-26 12:01:00 GMT"), 0, journal.Waiting, 60, ""}, // tc-023
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
			// S106, S107, S110: whether a request may begin follows from this and from nothing else.
			wantCode := map[journal.State]string{journal.Waiting: "file-upload-backoff-waiting", journal.Unresolved: "file-upload-backoff-unresolved"}[s.State]
			if err := dir.Gate(now); journal.CodeOf(err) != wantCode {
				t.Errorf("gate: %v", err)
			}
			before := len(dir.Events())
			x, err := j.Begin(now, journal.Request{Method: "GET", URL: listURL})
			if journal.CodeOf(err) != wantCode || len(dir.Events()) != before {
				t.Errorf("begin: %v", err)
			}
			if wantCode != "" && dir.Pending() != nil {
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

// S111: the restriction is the journal's, not that of a URL: the latest end of all counts, also when a later answer named an earlier one.
// tc-029, tc-030, tc-031: nothing shortens it.
func TestLatestEndCounts(t *testing.T) {
	j := begun(t)
	restrict(t, j, noon, header(noon, "0"))
	restrict(t, j, noon, header(noon, "10"))
	at := noon.Add(10 * time.Second)
	restrict(t, j, at, header(at, "300"))
	if _, err := j.Begin(at.Add(299*time.Second), journal.Request{Method: "GET", URL: "https://other.example/"}); journal.CodeOf(err) != "file-upload-backoff-waiting" {
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

// S113: a journal from before restrictions were recorded is usable while it holds no 429; a 429 leaves it unresolved for ever. In a new
// journal such a result is invalid evidence and is not even written.
func TestLegacy(t *testing.T) {
	j, err := journal.Create(durabletest.Dir(t), layout, founding{Plan: plan}, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	upload := func(n, status int) {
		t.Helper()
		for name, payload := range map[string]any{"attempt": attempt{planDigest(), n}} {
			if _, err := j.Append(journal.Numbered(name, n), payload); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := j.Append(journal.Numbered("result", n), result{Upload: "x", Status: &status}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.Append("source-ack.json", ack{201, "id"}); err != nil {
		t.Fatal(err)
	}
	upload(0, 500)
	if s := j.Record().Status(noon, ""); s.State != journal.Clear {
		t.Errorf("without a 429: %+v", s)
	}
	upload(1, 429)
	if s := j.Record().Status(noon.Add(10000*time.Hour), ""); s.Reason != journal.ReasonNoEvent {
		t.Errorf("with a 429: %+v", s)
	}
	modern := begun(t)
	if _, err := modern.Append("attempt-0000.json", attempt{planDigest(), 0}); err != nil {
		t.Fatal(err)
	}
	status := 429
	if _, err := modern.Append("result-0000.json", result{Upload: "rejected", Status: &status}); journal.CodeOf(err) != "file-upload-evidence-invalid" {
		t.Errorf("a 429 without its restriction: %v", err)
	}
	if modern.Failed() != nil {
		t.Error("a refused entry is no failure of the disk")
	}
}

// S100: other versions than 1.0 are invalid.
func TestBackoffVersion(t *testing.T) {
	for _, version := range []string{"1.1", "2.0", "1"} {
		dir := durabletest.Dir(t)
		if _, err := journal.Create(dir, layout, founding{plan, version}, journal.Options{}); journal.CodeOf(err) != "file-upload-evidence-invalid" {
			t.Errorf("%q: %v", version, err)
		}
	}
}
