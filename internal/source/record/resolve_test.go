package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
	"github.com/ecluse-gate/ecluse/retryafter"
)

var review = journal.Review{Outcome: journal.OutcomeUnknown, Approval: plan.Digest("envelope"), Metadata: record.ReviewMetadata()}

// S151: whatever a run of files met, whenever it was killed and whatever its clock did, an operator
// can settle it: each thing that Doubts and Contestable list is accepted by the real layout, and at
// the end nothing holds the journal back. Until then no request begins that a server's answer or a
// doubt forbids.
func TestEveryDoubtCanBeResolved(t *testing.T) {
	root, err := journaltest.Root()
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		u := &uploads{now: start, dir: filepath.Join(root, journal.Numbered("j", n))}
		u.open(t)
		t.Repeat(map[string]func(*rapid.T){
			"read": func(t *rapid.T) {
				u.request(t, rapid.SampledFrom([]string{"GET", "HEAD", "PUT"}).Draw(t, "method"), u.url, "")
			},
			"stray":   func(t *rapid.T) { u.stray(t) },
			"upload":  u.upload,
			"restart": func(t *rapid.T) { u.reopen(t) },
			"clock": func(t *rapid.T) {
				u.now = u.now.Add(time.Duration(rapid.SampledFrom([]int{1, 3, 100, 7200, -100, 10 * 365 * 86400}).Draw(t, "seconds")) * time.Second)
			},
		})
		u.settle(t, map[string]int{})
	})
}

// The same, one doubt after the other, so that none of them depends on chance; the POST that was
// answered with an endless Retry-After is the one that locked a journal for good.
func TestEachDoubtIsResolved(t *testing.T) {
	const endless, epoch = "99999999999999999999", "1796126460"
	for name, want := range map[string]string{
		"cut GET": journal.ReasonPending, "cut PUT": journal.ReasonPending, "cut HEAD": journal.ReasonPending, "cut POST": journal.ReasonPending,
		"stray POST": journal.ReasonPending, "attempt": journal.ReasonNoResult, "GET " + endless: journal.ReasonNoEnd, "PUT " + endless: journal.ReasonNoEnd,
		"POST " + endless: journal.ReasonNoEnd, "result " + endless: journal.ReasonNoEnd, "GET " + epoch: "contested " + journal.ReasonNoEnd,
		"POST " + epoch: "contested " + journal.ReasonNoEnd, "result " + epoch: "contested " + journal.ReasonNoEnd,
		"future GET 5": "contested " + journal.ReasonRegression, "future POST 5": "contested " + journal.ReasonRegression,
		"future result " + endless: "contested " + journal.ReasonRegression,
	} {
		t.Run(name, func(t *testing.T) {
			u := &uploads{now: start, dir: filepath.Join(journaltest.Dir(t), "j")}
			u.open(t)
			what, future := strings.CutPrefix(name, "future ")
			if future {
				u.now = start.AddDate(50, 0, 0)
			}
			u.meet(t, what)
			u.now = start.Add(time.Minute)
			u.reopen(t)
			seen := map[string]int{}
			u.settle(t, seen)
			found := false
			for reason := range seen {
				found = found || strings.HasPrefix(reason, want)
			}
			if !found {
				t.Errorf("%s: resolved %v, want %s", name, seen, want)
			}
		})
	}
}

// meet lets a run meet one thing: a request and what became of it.
func (u *uploads) meet(t tester, what string) {
	first, second, _ := strings.Cut(what, " ")
	method, url, attempt := first, u.url, ""
	switch first {
	case "cut", "stray":
		method = second
	case "attempt", "result":
		method = "POST"
	}
	if method == "POST" && first != "stray" {
		attempt = journal.Numbered(record.TypeAttempt, 0)
		_, err := u.j.Append(attempt, record.Attempt{
			OriginalPlanDigest: u.e.Digest(), RecordDigest: plan.Digest(u.e.File.Files.Records[0]), CreationAckDigest: u.ack,
		})
		check(t, err)
	}
	if first == "attempt" {
		return
	}
	x, err := u.j.Begin(u.now, journal.Request{Method: method, URL: url, Attempt: attempt})
	check(t, err)
	if first == "cut" || first == "stray" {
		return
	}
	r, err := x.Restrict(record.FromHeaders(retryafter.Parse([]string{second}, u.now), "r-2"))
	check(t, err)
	if first == "result" {
		_, err := u.j.Append(journal.Numbered(record.TypeResult, 0), record.Throttled(r))
		check(t, err)
	}
}

// tester is what a test and a property have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// uploads is a run that anything may happen to.
type uploads struct {
	j    *journal.Journal
	e    *plan.Envelope
	ack  string
	dir  string
	url  string
	now  time.Time
	next int
}

var unsynced = journal.Options{Around: func(step, _ string, call func() error) error {
	if strings.HasPrefix(step, "fsync") {
		return nil
	}
	return call()
}}

func (u *uploads) open(t tester) {
	u.e = upToDate
	var err error
	u.j, err = journal.Create(u.dir, record.NewLayout(), record.Run{Document: u.e.Document, BackoffVersion: record.BackoffVersion}, unsynced)
	check(t, err)
	tag := `"0x1"`
	ack, err := u.j.Append(record.SourceAckName, record.SourceAck{
		OriginalPlanDigest: u.e.Digest(), SourceURL: u.e.File.Source.URL,
		Acknowledgement: record.Ack{Status: 201, RequestID: "r-1", ETagEvidence: record.Evidence{Body: &tag, Headers: []string{tag}}},
	})
	check(t, err)
	u.ack = ack.Digest
	opened, err := record.Open(u.j.Record())
	check(t, err)
	u.url = opened.UploadURL
}

var upToDate *plan.Envelope

func TestMain(m *testing.M) {
	upToDate = approved(failing{}, 6)
	os.Exit(m.Run())
}

// failing is for what is made before there is a test.
type failing struct{ testing.TB }

func (failing) Helper()           {}
func (failing) Fatal(args ...any) { panic(args) }

func check(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// request begins a request and ends it, or does not; it gives how it ended.
func (u *uploads) request(t *rapid.T, method, url, attempt string) (*journal.Exchange, string) {
	x, err := u.j.Begin(u.now, journal.Request{Method: method, URL: url, Attempt: attempt})
	if err != nil {
		if !errors.Is(err, journal.CodeWaiting) && !errors.Is(err, journal.CodeUnresolved) && !errors.Is(err, journal.CodeLimit) {
			t.Fatal(err)
		}
		return nil, "refused"
	}
	end := rapid.SampledFrom([]string{"done", "throttled", "throttled", "cut"}).Draw(t, "end")
	switch {
	case end == "throttled":
		field := rapid.SampledFrom([]string{"0", "5", "soon", "99999999999999999999", "1796126460", retryafter.FormatDate(u.now.Add(time.Hour)), retryafter.FormatDate(u.now.AddDate(30, 0, 0))}).Draw(t, "field")
		_, err := x.Restrict(record.FromHeaders(retryafter.Parse([]string{field}, u.now), "r-2"))
		check(t, err)
	case end == "done" && attempt == "":
		check(t, x.Done())
	}
	return x, end
}

// stray leaves the marker of a POST that no attempt announces, which only a damaged process could.
func (u *uploads) stray(t *rapid.T) {
	url := rapid.SampledFrom([]string{u.url, "https://demo.search.windows.net/other"}).Draw(t, "url")
	_, err := u.j.Begin(u.now, journal.Request{Method: "POST", URL: url})
	if err == nil {
		u.reopen(t)
	}
}

func (u *uploads) upload(t *rapid.T) {
	if u.next == len(u.e.File.Files.Records) || u.j.Record().Gate(u.now) != nil && rapid.IntRange(0, 7).Draw(t, "crash") > 0 {
		return
	}
	name := journal.Numbered(record.TypeAttempt, u.next)
	_, err := u.j.Append(name, record.Attempt{
		OriginalPlanDigest: u.e.Digest(), RecordDigest: plan.Digest(u.e.File.Files.Records[u.next]), CreationAckDigest: u.ack,
	})
	check(t, err)
	u.next++
	x, end := u.request(t, "POST", u.url, name)
	if end == "done" || end == "throttled" && rapid.Bool().Draw(t, "result written") {
		nonce := ""
		result := record.Result{Upload: record.Accepted, Status: new(201)}
		if nonce = x.Nonce(); end == "throttled" {
			r, _ := u.j.Record().RestrictionOf(name)
			result = record.Throttled(r)
		}
		result.Nonce = &nonce
		_, err := u.j.Append(journal.Numbered(record.TypeResult, u.next-1), result)
		check(t, err)
		if end == "done" && rapid.Bool().Draw(t, "marker goes") {
			check(t, x.Done())
		}
	}
	u.reopen(t)
}

func (u *uploads) reopen(t tester) {
	_ = u.j.Close()
	var err error
	u.j, err = journal.Open(u.dir, record.NewLayout(), unsynced)
	check(t, err)
}

// settle resolves all that there is, as the commands would, until nothing is left.
func (u *uploads) settle(t tester, seen map[string]int) {
	if _, err := record.Complete(u.j); err != nil {
		t.Fatal(err)
	}
	for range 3 * journal.MaxRestrictions {
		r := u.j.Record()
		if r.Full() {
			return // S102: it can never go on, whatever is resolved
		}
		all, what := r.Contestable(u.now), "contested "
		if len(all) == 0 || all[0].Reason != journal.ReasonRegression {
			if doubts := r.Doubts(); len(doubts) > 0 {
				all, what = doubts, ""
			}
		}
		if len(all) == 0 {
			break
		}
		d := all[0]
		if _, err := u.j.Resolve(u.now, u.now, r.Earliest(d, u.now), d, review); err != nil {
			t.Fatalf("%s%s: %v", what, d.Reason, err)
		}
		seen[what+d.Reason+" "+d.Method]++
		u.reopen(t)
		if _, err := record.Complete(u.j); err != nil {
			t.Fatal(err)
		}
	}
	status := u.j.Record().Status(u.now.Add(25*time.Hour), "")
	if status.State != journal.Clear && status.State != journal.Elapsed {
		t.Fatalf("everything is resolved, and yet %+v", status)
	}
}

// S102, S113: what the advice says of journals that no run of today leaves.
func TestAdviseNever(t *testing.T) {
	r := newRun(t)
	all := []record.State{{Upload: record.Rejected, Status: new(429), Verification: record.Failed, Attempts: 1}}
	// a list can still prove a file that was answered 429
	for looked, never := range map[bool]bool{false: false, true: true} {
		if got := strings.HasPrefix(record.Advise(r.j.Record(), all, looked, r.now), record.Never); got != never {
			t.Errorf("looked %v: %v", looked, got)
		}
	}
	ready := []record.State{{Upload: record.NotAttempted}}
	for range journal.MaxRestrictions {
		x, err := r.j.Begin(r.now, journal.Request{Method: "GET", URL: r.url})
		must(t, err)
		_, err = x.Restrict(record.FromHeaders(retryafter.Parse([]string{"0"}, r.now), "r-2"))
		must(t, err)
		r.now = r.now.Add(time.Second)
	}
	if got := record.Advise(r.j.Record(), ready, false, r.now); !strings.Contains(got, record.Never+"its journal is full") {
		t.Errorf("full: %q", got)
	}

	dir := filepath.Join(journaltest.Dir(t), "j")
	j, err := journal.Create(dir, record.NewLayout(), record.Run{Document: r.e.Document}, unsynced)
	must(t, err)
	tag := `"1"`
	ack, err := j.Append(record.SourceAckName, record.SourceAck{
		OriginalPlanDigest: r.e.Digest(), SourceURL: r.e.File.Source.URL,
		Acknowledgement: record.Ack{Status: 201, RequestID: "r", ETagEvidence: record.Evidence{Body: &tag, Headers: []string{}}},
	})
	must(t, err)
	_, err = j.Append("attempt-0000.json", record.Attempt{r.e.Digest(), plan.Digest(r.e.File.Files.Records[0]), ack.Digest})
	must(t, err)
	_, err = j.Append("result-0000.json", record.Result{Upload: record.Rejected, Status: new(429)})
	must(t, err)
	must(t, j.Close())
	if got := record.Advise(j.Record(), ready, false, r.now); !strings.Contains(got, record.Never+"an older version recorded a 429") {
		t.Errorf("legacy: %q", got)
	}
}
