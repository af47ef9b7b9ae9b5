package retryafter_test

import (
	"bufio"
	"encoding/json"
	"math"
	"net/http"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// headerVector is one header with what it says.
type headerVector struct {
	ID           string              `json:"id"`
	Headers      map[string][]string `json:"headers"`
	ReceivedAt   time.Time           `json:"received_at"`
	Kind         string              `json:"kind"`
	Form         string              `json:"form"`
	DelaySeconds *int64              `json:"delay_seconds"`
	Note         string              `json:"note"`
}

// R104, S1, rw-044: Retry-After, retry-after-ms and x-ms-retry-after-ms, alone and together: the
// later one counts, never an earlier request.
func TestHeaderVectors(t *testing.T) {
	file, err := os.Open("testdata/milliseconds-vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, count := bufio.NewScanner(file), 0
	for lines.Scan() {
		var v headerVector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		count++
		r := retryafter.ParseHeader(v.Headers, v.ReceivedAt)
		got, ok := r.DelaySeconds()
		if r.Kind.String() != v.Kind || r.Form.String() != v.Form || ok != (v.DelaySeconds != nil) || ok && got != *v.DelaySeconds {
			t.Errorf("%s (%s): %v %v %d %v %v", v.ID, v.Note, r.Kind, r.Form, got, ok, r.Notes.Strings())
		}
		if !r.Received.Equal(v.ReceivedAt) {
			t.Errorf("%s: received at %v", v.ID, r.Received)
		}
	}
	if lines.Err() != nil || count != 47 {
		t.Errorf("%d vectors, %v", count, lines.Err())
	}
}

// ParseHeader leaves its argument alone, and an http.Header is one.
func TestParseHeaderKeepsItsArgument(t *testing.T) {
	lines := make([]string, 1, 4)
	lines[0] = "1000"
	header := http.Header{"Retry-After-Ms": lines, "RETRY-AFTER-MS": {"2000"}}
	if r := retryafter.ParseHeader(header, noon); !r.Notes.Has(retryafter.NoteDuplicate) {
		t.Errorf("%+v", r)
	}
	if lines[:2][1] != "" || len(header) != 2 {
		t.Error("the header was written to")
	}
}

// R104: whatever the fields hold, what is reported asks for no less than any of them that asks for
// something, and it is one of their reports.
func TestLaterNeverShortens(t *testing.T) {
	value := rapid.OneOf(
		rapid.StringMatching(`[0-9]{1,22}`), rapid.StringMatching(`0{120,140}[0-9]{0,3}`), rapid.Just("soon"),
		rapid.Just("Tue, 01 Dec 2026 12:02:00 GMT"), rapid.Just("Mon, 01 Jan 0001 00:00:00 GMT"), rapid.Just("Monday, 29-Feb-27 12:00:00 GMT"),
	)
	endless := func(r retryafter.Report) bool {
		return r.Notes.Has(retryafter.NoteOversized) || r.Notes.Has(retryafter.NoteUnrepresentable)
	}
	wait := func(r retryafter.Report) time.Duration {
		d, ok := r.Delay()
		switch {
		case endless(r):
			return math.MaxInt64
		case ok:
			return d
		case r.Kind == retryafter.KindInvalid:
			return time.Second
		}
		return 0
	}
	rapid.Check(t, func(t *rapid.T) {
		header := http.Header{}
		parts := map[string]retryafter.Report{}
		for name, parse := range map[string]func([]string, time.Time) retryafter.Report{
			"Retry-After": retryafter.Parse, "Retry-After-Ms": retryafter.ParseMilliseconds, "X-Ms-Retry-After-Ms": retryafter.ParseMilliseconds,
		} {
			if lines := rapid.SliceOfN(value, 0, 2).Draw(t, name); len(lines) > 0 {
				header[name] = lines
			}
			parts[name] = parse(header[name], noon)
		}
		got, own := retryafter.ParseHeader(header, noon), false
		for name, part := range parts {
			own = own || part == got
			if wait(got) < wait(part) && !(got.Kind == retryafter.KindMissing && wait(part) <= time.Second) {
				t.Fatalf("%s asks for %v, the report for %v: %v", name, wait(part), wait(got), header)
			}
		}
		if !own {
			t.Fatalf("%+v is the report of none of the fields %v", got, header)
		}
	})
}
