// Package review is what a person does with the journal of a File run without the network: look at
// it, have it verified, and settle what only a person can settle (S149-S151). Looking never writes.
package review

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/internal/visible"
	"github.com/ecluse-gate/ecluse/journal"
)

// Report is what a journal says at one moment.
type Report struct {
	Sound  bool    `json:"sound"`
	Faults []Fault `json:"faults"`
	Run    *Run    `json:"run,omitempty"`
	Files  []File  `json:"files"`
	// Restrictions are all that were recorded, in order; Backoff is what they come to.
	Restrictions []Restriction  `json:"restrictions"`
	Backoff      journal.Status `json:"backoff"`
	// Blocks says what stands against going on, and Next what may be done.
	Blocks   []string `json:"blocks"`
	Next     string   `json:"next"`
	Warnings []string `json:"warnings"`
}

// Fault is one thing that is wrong with the journal.
type Fault struct {
	Code   string `json:"code"`
	Entry  string `json:"entry,omitempty"`
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
}

// Run is what the journal is about.
type Run struct {
	Fingerprint string         `json:"fingerprint"`
	Action      string         `json:"action"`
	Source      string         `json:"source"`
	Endpoint    string         `json:"endpoint"`
	Owner       string         `json:"owner"`
	Principal   plan.Principal `json:"principal"`
	// Acknowledged says that the creation of the source is proved here.
	Acknowledged bool `json:"acknowledged"`
}

// File is where one file is, as far as the records tell.
type File struct {
	Ordinal      int    `json:"ordinal"`
	Path         string `json:"path"`
	Upload       string `json:"upload"`
	Verification string `json:"verification,omitempty"`
	Attempts     int    `json:"attempts"`
	Status       *int   `json:"status,omitempty"`
}

// Restriction is one wait that the service asked for.
type Restriction struct {
	Entry            string `json:"entry"`
	Method           string `json:"method"`
	Attempt          string `json:"attempt,omitempty"`
	Kind             string `json:"kind"`
	Origin           string `json:"origin"`
	ReceivedAtUTC    *int64 `json:"received_at_utc"`
	NotBeforeUTC     *int64 `json:"not_before_utc"`
	SecondsRemaining int64  `json:"seconds_remaining"`
}

// Show reads the journal in dir, under a lock that it shares with other readers.
func Show(dir string, now time.Time) (*Report, error) {
	r, faults, err := journal.Inspect(dir, record.NewLayout())
	if err != nil {
		return nil, err
	}
	report := &Report{
		Sound: len(faults) == 0, Faults: []Fault{}, Files: []File{}, Restrictions: []Restriction{}, Blocks: []string{},
		Warnings: append([]string{}, r.Warnings()...),
	}
	for _, f := range faults {
		report.Faults = append(report.Faults, faultOf(f))
	}
	report.describe(r)
	report.restrict(r, now)
	report.advise(r, now)
	return report, nil
}

func faultOf(f *journal.Error) Fault {
	reason := f.Reason
	if reason == "" && f.Err != nil {
		reason = f.Err.Error()
	}
	return Fault{Code: f.FullCode(), Entry: f.Entry, Field: f.Field, Reason: reason}
}

// describe reports what can be told of the run and its files, also when the journal is not sound.
func (p *Report) describe(r *journal.Record) {
	opened, err := record.Open(r)
	if err != nil {
		return
	}
	files := opened.Plan().Files.Records
	_, acknowledged := r.Entry(record.SourceAckName)
	p.Run = &Run{
		Fingerprint: opened.Envelope.Fingerprint(), Action: opened.Plan().Action, Source: opened.Plan().Source.Name, Endpoint: opened.Plan().Endpoint,
		Owner: opened.Plan().Owner, Principal: opened.Run.Context.Principal, Acknowledged: acknowledged,
	}
	for i, s := range record.States(r, len(files)) {
		if s.Upload == record.Unverified && !slices.Contains([]string{record.Confirmed}, s.Verification) {
			s = throttledState(r, i, s)
		}
		p.Files = append(p.Files, File{Ordinal: i, Path: files[i].Path, Upload: s.Upload, Verification: s.Verification, Attempts: s.Attempts, Status: s.Status})
	}
}

// throttledState is the state of a file whose result is missing but follows from a restriction: the
// next run will write it (crash table).
func throttledState(r *journal.Record, number int, s record.State) record.State {
	for _, kind := range []string{record.TypeAttempt, record.TypeRetryAttempt} {
		name := journal.Numbered(kind, number)
		if e, ok := r.RestrictionOf(name); ok && e.Review == nil && slices.Contains(r.Unfinished(), name) {
			s.Apply(record.Throttled(e))
		}
	}
	return s
}

func (p *Report) restrict(r *journal.Record, now time.Time) {
	p.Backoff = r.Status(now, "")
	for _, e := range r.Restrictions() {
		one := Restriction{
			Entry: e.Name, Method: e.Method, Attempt: e.Attempt, Kind: record.RetryAfterOf(e).Kind, Origin: e.Origin, ReceivedAtUTC: e.Timing.ReceivedAtUTC, NotBeforeUTC: e.Timing.NotBeforeUTC,
		}
		if end := e.Timing.NotBeforeUTC; end != nil {
			one.SecondsRemaining = max(0, *end-now.Unix())
		}
		p.Restrictions = append(p.Restrictions, one)
	}
}

// advise says what stands against going on, and what may be done.
func (p *Report) advise(r *journal.Record, now time.Time) {
	if r.Displaced() {
		p.Blocks = append(p.Blocks, bare(r.Gate(now)))
	}
	for _, d := range append(r.Doubts(), r.Contestable(now)...) {
		p.Blocks = append(p.Blocks, doubtText(d))
	}
	switch {
	case slices.ContainsFunc(p.Faults, func(f Fault) bool { return strings.HasSuffix(f.Code, string(journal.CodeMissing)) }):
		p.Blocks = append(p.Blocks, "the journal has no acknowledgement of the creation")
		p.Next = record.Never + "the creation was not acknowledged here. Check the source on the service; if it is there, delete it or choose another name" + record.Another
		return
	case !p.Sound:
		p.Blocks = append(p.Blocks, "the evidence is not valid")
		p.Next = record.Never + "the evidence is not valid. Keep the folder unchanged and have it reviewed, or put the newest copy back" + record.Another
		return
	case p.Backoff.State == journal.Waiting:
		p.Blocks = append(p.Blocks, "the service asked for no requests before "+utc(*p.Backoff.NotBeforeUTC))
	case p.Backoff.Reason == record.ReasonLegacy:
		p.Blocks = append(p.Blocks, "a 429 was recorded without the time to wait")
	}
	var states []record.State
	for i, f := range p.Files {
		s := record.StateOf(r, i)
		s.Upload, s.Verification, s.Status = f.Upload, f.Verification, f.Status
		states = append(states, s)
	}
	p.Next = record.Advise(r, states, false, now)
}

// bare is the text of a journal's error without its code.
func bare(err error) string {
	if j, ok := errors.AsType[*journal.Error](err); ok {
		return j.Reason
	}
	return ""
}

func doubtText(d journal.Doubt) string {
	switch d.Reason {
	case journal.ReasonRegression:
		return "this machine's clock is before an answer that the service gave to a " + d.Method
	case journal.ReasonPending:
		return "a " + d.Method + " was sent or about to be sent, and its outcome is not recorded"
	case journal.ReasonNoResult:
		return "the outcome of " + *d.Attempt + " is not recorded"
	}
	if d.Restriction != nil {
		return "the answer to a " + d.Method + " asks for a wait of more than a day"
	}
	return "a restriction has no known end"
}

func utc(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

// Text is the report for a person.
func (p *Report) Text() string {
	var b strings.Builder
	if r := p.Run; r != nil {
		fmt.Fprintf(&b, "Run       %s source %s at %s, owner %s\nPlan      %s\n", r.Action, visible.Quote(r.Source), visible.Name(r.Endpoint), visible.Name(r.Owner), r.Fingerprint)
		fmt.Fprintf(&b, "Created   %s\n", map[bool]string{true: "acknowledged by the service", false: "not acknowledged"}[r.Acknowledged])
	}
	for _, f := range p.Files {
		state := f.Upload
		if f.Verification != "" {
			state += ", " + f.Verification
		}
		if f.Status != nil {
			state += fmt.Sprintf(" (HTTP %d)", *f.Status)
		}
		fmt.Fprintf(&b, "File %3d  %-32s %s\n", f.Ordinal+1, visible.Name(f.Path), state)
	}
	for _, x := range p.Restrictions {
		end := "no known end"
		if x.NotBeforeUTC != nil {
			end = "until " + utc(*x.NotBeforeUTC)
		}
		if x.SecondsRemaining > 0 {
			end += fmt.Sprintf(", %d s from now", x.SecondsRemaining)
		}
		fmt.Fprintf(&b, "Wait      %s: %s answered %s, %s\n", x.Entry, x.Method, x.Kind, end)
	}
	fmt.Fprintf(&b, "Backoff   %s\n", p.Backoff.State)
	for _, f := range p.Faults {
		fmt.Fprintf(&b, "Fault     %s %s %s: %s\n", f.Code, visible.Text(f.Entry), visible.Text(f.Field), visible.Text(f.Reason))
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "Note      %s\n", visible.Text(w))
	}
	for _, x := range p.Blocks {
		fmt.Fprintf(&b, "Blocked   %s\n", x)
	}
	fmt.Fprintf(&b, "Next      %s\n", p.Next)
	return b.String()
}
