package journal_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// A layout as a tool that uploads files would have it: a run, an acknowledgement, attempts and
// their results.

type founding struct {
	Plan string `json:"plan"`
}

type ack struct {
	Status    int    `json:"status"`
	RequestID string `json:"request_id"`
}

type attempt struct {
	PlanDigest string `json:"plan_digest"`
	Number     int    `json:"number"`
}

type result struct {
	Upload        string  `json:"upload"`
	Status        *int    `json:"status"`
	RequestID     *string `json:"request_id"`
	Nonce         string  `json:"nonce"`
	ThrottleEvent *string `json:"throttle_event"`
}

const (
	sourceURL = "https://search.example/sources('s')"
	listURL   = sourceURL + "/files"
)

var layout = &journal.Layout{
	Kind:   "file-upload-journal",
	Prefix: "file-upload",
	Types: []journal.Type{
		{Name: "run"},
		{Name: "source-ack", Required: true, Facts: decodes[ack](func(journal.Entry, ack) (journal.Facts, error) { return journal.Facts{}, nil })},
		{Name: "attempt", Max: 200, Facts: decodes(attemptFacts)},
		{Name: "retry-attempt", Max: 200, Facts: decodes(attemptFacts)},
		{Name: "result", Max: 200, Facts: decodes(resultFacts("attempt"))},
		{Name: "retry-result", Max: 200, Facts: decodes(resultFacts("retry-attempt"))},
	},
	PlanDigest: func(e journal.Entry) (string, error) {
		var f founding
		if err := e.Decode(&f); err != nil {
			return "", err
		}
		return strictjson.Digest(f.Plan)
	},
	Restriction: checkRestriction,
	Check: func(r *journal.Record) error {
		for _, t := range []string{"attempt", "retry-attempt"} {
			for _, e := range r.Entries(t) {
				var a attempt
				if err := e.Decode(&a); err != nil {
					return err
				}
				if a.PlanDigest != planDigest() || a.Number != e.Number {
					return &journal.Error{Entry: e.Name, Reason: "is bound to something else"}
				}
			}
		}
		return nil
	},
}

func decodes[T any](f func(journal.Entry, T) (journal.Facts, error)) func(journal.Entry) (journal.Facts, error) {
	return func(e journal.Entry) (journal.Facts, error) {
		var v T
		if err := e.Decode(&v); err != nil {
			return journal.Facts{}, err
		}
		return f(e, v)
	}
}

func attemptFacts(journal.Entry, attempt) (journal.Facts, error) {
	return journal.Facts{Open: true, URL: listURL}, nil
}

func resultFacts(of string) func(journal.Entry, result) (journal.Facts, error) {
	return func(e journal.Entry, r result) (journal.Facts, error) {
		f := journal.Facts{Closes: journal.Numbered(of, e.Number), Nonce: r.Nonce, RestrictionField: "throttle_event"}
		throttled := r.Status != nil && *r.Status == 429
		if throttled != (r.ThrottleEvent != nil) {
			return f, &journal.Error{Field: "throttle_event", Reason: "belongs to a throttled answer"}
		}
		if r.ThrottleEvent != nil {
			f.Restriction = *r.ThrottleEvent
		}
		if r.RequestID != nil {
			f.RequestID = *r.RequestID
		}
		return f, nil
	}
}

// What this program keeps in a restriction: the delay once more.
type kept struct {
	Delay *int64 `json:"delay"`
}

const fromHeader = "response-headers"

func checkRestriction(r journal.Restriction) error {
	var k kept
	if err := json.Unmarshal(r.Metadata, &k); err != nil {
		return &journal.Error{Field: "metadata", Reason: err.Error()}
	}
	switch d := r.Timing.ServerDelaySeconds; {
	case r.Review != nil:
		return nil
	case r.Origin != fromHeader:
		return &journal.Error{Field: "origin", Reason: "is not known"}
	case string(r.Metadata) != string(metadata(d)):
		return &journal.Error{Field: "metadata.delay", Reason: "is another"}
	}
	return nil
}

func metadata(delay *int64) json.RawMessage {
	data, err := strictjson.Canonical(kept{delay})
	if err != nil {
		panic(err)
	}
	return data
}

func header(received time.Time, values ...string) journal.Restriction {
	r := journal.FromReport(retryafter.Parse(values, received), "id")
	r.Origin, r.Metadata = fromHeader, metadata(r.Timing.ServerDelaySeconds)
	return r
}

func codeOf(err error) string {
	if e, ok := errors.AsType[*journal.Error](err); ok {
		return e.FullCode()
	}
	return ""
}

const pendingName = "pending-request.json"

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

const plan = "three files"

func planDigest() string {
	d, err := strictjson.Digest(plan)
	if err != nil {
		panic(err)
	}
	return d
}

// state is a run in progress: what the calls of a script share.
type state struct {
	dir     string
	opt     journal.Options
	j       *journal.Journal
	x       *journal.Exchange
	event   journal.Restriction
	entries map[string]string // acknowledged: name to digest
	// "yes" acknowledged as written, "no" acknowledged as removed, "" unknown
	marker string
}

type call struct {
	name string
	do   func(s *state) error
}

// file is the calls that upload one file, with a status (0: no answer).
func file(n, status int, at time.Time) []call {
	name := func(t string) string { return journal.Numbered(t, n) }
	calls := []call{
		{"attempt", func(s *state) error { return s.append(name("attempt"), attempt{planDigest(), n}) }},
		{"begin POST", func(s *state) error {
			return s.begin(at, journal.Request{Method: "POST", URL: listURL, Attempt: name("attempt")})
		}},
	}
	r := result{Upload: "accepted", Status: &status, RequestID: new("id")}
	finish := func(s *state) error { r.Nonce = s.x.Nonce(); return s.append(name("result"), r) }
	switch status {
	case 429:
		r.Upload = "rejected"
		return append(calls,
			call{"throttled", func(s *state) error { return s.throttled(at, "60") }},
			call{"result", func(s *state) error { r.ThrottleEvent = &s.event.Digest; return finish(s) }})
	case 0:
		r = result{Upload: "unverified"}
	}
	return append(calls, call{"result", finish}, call{"done", (*state).done})
}

// script is a three-file run that meets a 429 on the second file, goes on after the minute, meets
// another on a read, and loses the answer to the third file.
func script() []call {
	later, muchLater := noon.Add(time.Minute), noon.Add(3*time.Minute)
	get := func(at time.Time) call {
		return call{"begin GET", func(s *state) error { return s.begin(at, journal.Request{Method: "GET", URL: listURL}) }}
	}
	done := call{"done", (*state).done}
	return slices.Concat(
		[]call{
			{"create", func(s *state) (err error) {
				s.j, err = journal.Create(s.dir, layout, founding{plan}, s.opt)
				if err == nil {
					e, _ := s.j.Record().Entry("run.json")
					s.entries["run.json"] = e.Digest
				}
				return err
			}},
			{"begin PUT", func(s *state) error { return s.begin(noon, journal.Request{Method: "PUT", URL: sourceURL}) }},
			done,
			{"ack", func(s *state) error { return s.append("source-ack.json", ack{201, "ack-id"}) }},
			get(noon), done,
		},
		file(0, 201, noon),
		file(1, 429, noon),
		[]call{
			get(later),
			{"throttled", func(s *state) error { return s.throttled(later, "45") }},
			get(muchLater), done,
		},
		file(2, 0, muchLater),
	)
}

func (s *state) append(name string, payload any) error {
	e, err := s.j.Append(name, payload)
	if err == nil {
		s.entries[name] = e.Digest
	}
	return err
}

func (s *state) begin(at time.Time, q journal.Request) (err error) {
	s.marker = ""
	if s.x, err = s.j.Begin(at, q); err == nil {
		s.marker = "yes"
	}
	return err
}

func (s *state) throttled(at time.Time, field string) (err error) {
	s.marker = ""
	s.event, err = s.x.Restrict(header(at, field))
	if s.event.Name != "" {
		s.entries[s.event.Name] = s.event.Digest
	}
	if err == nil {
		s.marker = "no"
	}
	return err
}

func (s *state) done() error {
	s.marker = ""
	err := s.x.Done()
	if err == nil {
		s.marker = "no"
	}
	return err
}

// start prepares a run in a folder that does not exist yet.
func start(dir string, opt journal.Options) *state {
	return &state{dir: dir, opt: opt, entries: map[string]string{}}
}

// play makes calls until one fails, closes the journal, and gives the number of completed calls.
func (s *state) play(calls []call) (int, error) {
	defer s.close()
	for i, c := range calls {
		if err := c.do(s); err != nil {
			return i, err
		}
	}
	return len(calls), nil
}

func (s *state) close() {
	if s.j != nil {
		_ = s.j.Close()
		s.j = nil
	}
}

// unsynced leaves every sync out: where nobody cuts the power, waiting for the disk is most of the
// time.
var unsynced = journal.Options{Around: func(step, _ string, call func() error) error {
	if strings.HasPrefix(step, "fsync") {
		return nil
	}
	return call()
}}

// verdict is what the next run says at a given time, in one word.
func verdict(r *journal.Record, err error, now time.Time) string {
	if err != nil {
		return codeOf(err)
	}
	s := r.Status(now, "")
	if s.State == journal.Unresolved {
		return "unresolved: " + s.Reason
	}
	return string(s.State)
}

// reviewTime is a moment at which the second restriction of the script still holds.
var reviewTime = noon.Add(62 * time.Second)

func read(dir string) string {
	r, err := journal.Read(dir, layout)
	return verdict(r, err, reviewTime)
}

// prefixes gives the verdict after each number of completed calls.
func prefixes(t *testing.T) []string {
	t.Helper()
	calls := script()
	var all []string
	for n := range len(calls) + 1 {
		s := start(journaltest.Dir(t)+"/j", unsynced)
		if _, err := s.play(calls[:n]); err != nil {
			t.Fatalf("%d calls: %v", n, err)
		}
		all = append(all, read(s.dir))
	}
	return all
}

// complete makes a whole journal in a new folder.
func complete(t testing.TB) string {
	t.Helper()
	s := start(journaltest.Dir(t)+"/j", unsynced)
	if n, err := s.play(script()); err != nil {
		t.Fatalf("call %d: %v", n, err)
	}
	return s.dir
}

// The crash table of section 9, row by row, as the verdict after each completed call.
func TestCrashTable(t *testing.T) {
	calls := script()
	want := map[int]string{
		// nothing there
		0: "private-directory-invalid",
		// run; pending PUT; PUT answered
		1: "file-upload-provenance-missing", 2: "file-upload-provenance-missing", 3: "file-upload-provenance-missing",
		4: "clear",                       // source-ack: resume everything
		5: "unresolved: pending-request", // although only a read was cut off
		6: "clear",
		7: "unresolved: attempt-without-result",
		8: "unresolved: pending-request", // pending before POST
		// the result carries the nonce: the exchange is finished before its marker is gone
		9: "clear", 10: "clear",
		11: "unresolved: attempt-without-result",
		12: "unresolved: pending-request",
		// the restriction ends the attempt, then the result; its minute is over at reviewTime
		13: "elapsed", 14: "elapsed",
		15: "unresolved: pending-request",
		16: "waiting",
		17: "unresolved: pending-request",
		18: "waiting",
		19: "unresolved: attempt-without-result",
		20: "unresolved: pending-request",
		21: "waiting", 22: "waiting", // the result of a timeout: status null
	}
	got := prefixes(t)
	if len(got) != len(calls)+1 || len(want) != len(got) {
		t.Fatalf("%d verdicts for %d calls", len(got), len(calls))
	}
	for n, v := range got {
		if v != want[n] {
			t.Errorf("after %d calls (last: %s): %q, want %q", n, append([]call{{name: "nothing"}}, calls...)[n].name, v, want[n])
		}
	}
}
