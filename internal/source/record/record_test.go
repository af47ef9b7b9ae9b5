package record_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// S77, S78: what a status alone makes of an upload.
func TestVerdict(t *testing.T) {
	for status, want := range map[int]string{
		200: record.Accepted, 201: record.Accepted, 202: record.Unverified, 204: record.Unverified, 301: record.Unverified, 307: record.Unverified,
		400: record.Rejected, 401: record.Rejected, 403: record.Rejected, 408: record.Unverified, 409: record.Unverified, 413: record.Rejected,
		415: record.Rejected, 429: record.Rejected, 499: record.Rejected, 500: record.Unverified, 504: record.Unverified, 100: record.Unverified,
	} {
		if got := record.Verdict(&status); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
	if got := record.Verdict(nil); got != record.Unverified {
		t.Errorf("no answer: %s", got)
	}
}

// run is a small journal that grows entry by entry.
type run struct {
	t   *testing.T
	dir string
	j   *journal.Journal
	e   *plan.Envelope
	ack string
	url string
	now time.Time
}

func newRun(t *testing.T) *run {
	r := &run{t: t, dir: filepath.Join(journaltest.Dir(t), "journal"), now: start}
	r.j, r.e, r.ack = founded(t, r.dir, 3)
	t.Cleanup(func() { _ = r.j.Close() })
	opened, err := record.Open(r.j.Record())
	must(t, err)
	r.url = opened.UploadURL
	return r
}

func (r *run) attempt(n int) (name string, x *journal.Exchange) {
	r.t.Helper()
	name = journal.Numbered(record.TypeAttempt, n)
	_, err := r.j.Append(name, record.Attempt{
		OriginalPlanDigest: r.e.Digest(), RecordDigest: plan.Digest(r.e.File.Files.Records[n]), CreationAckDigest: r.ack,
	})
	must(r.t, err)
	x, err = r.j.Begin(r.now, journal.Request{Method: "POST", URL: r.url, Attempt: name})
	must(r.t, err)
	return name, x
}

// result writes what an attempt came to, with something changed.
func (r *run) result(n int, x *journal.Exchange, change func(*record.Result)) error {
	status, nonce := 201, x.Nonce()
	result := record.Result{Upload: record.Accepted, Status: &status, Nonce: &nonce}
	change(&result)
	_, err := r.j.Append(journal.Numbered(record.TypeResult, n), result)
	return err
}

// Section 14: what a result may not say. A refused entry is not written.
func TestResultRules(t *testing.T) {
	text := func(s string) *string { return &s }
	number := func(n int) *int { return &n }
	for name, change := range map[string]func(*record.Result){
		"state against status": func(r *record.Result) { r.Upload = record.Rejected },
		"status out of range":  func(r *record.Result) { r.Status, r.Upload = number(600), record.Unverified },
		"unsafe request id":    func(r *record.Result) { r.RequestID = text("no good") },
		"unsafe file id":       func(r *record.Result) { r.FileID = text("no good") },
		"file id of a refusal": func(r *record.Result) { r.Status, r.Upload, r.FileID = number(400), record.Rejected, text("f") },
		"proof without id":     func(r *record.Result) { r.FileProof = &record.Proof{FileID: "f", RecordDigest: plan.Digest(1)} },
		"proof with another id": func(r *record.Result) {
			r.FileID, r.FileProof = text("f"), &record.Proof{FileID: "g", RecordDigest: plan.Digest(1)}
		},
		"proof of another file": func(r *record.Result) {
			r.FileID, r.FileProof = text("f"), &record.Proof{FileID: "f", RecordDigest: plan.Digest(1)}
		},
		"no nonce":                func(r *record.Result) { r.Nonce = nil },
		"429 without restriction": func(r *record.Result) { r.Status, r.Upload = number(429), record.Rejected },
		"restriction without 429": func(r *record.Result) { r.ThrottleEvent = text(plan.Digest(1)) },
		"restriction that is none": func(r *record.Result) {
			r.Status, r.Upload, r.ThrottleEvent = number(429), record.Rejected, text(plan.Digest(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			_, x := r.attempt(0)
			if err := r.result(0, x, change); codeOf(err) != "file-upload-evidence-invalid" {
				t.Errorf("%v", err)
			}
			if _, ok := r.j.Record().Entry("result-0000.json"); ok {
				t.Error("it was written")
			}
			// stable, and legal here
			if err := r.result(0, x, func(r *record.Result) { r.RequestID = text("[withheld]") }); err != nil {
				t.Errorf("a sound result afterwards: %v", err)
			}
		})
	}
}

// Section 14: entries that do not fit the plan, the acknowledgement or each other.
func TestBindings(t *testing.T) {
	r := newRun(t)
	first := r.e.File.Files.Records[0]
	good := record.Attempt{OriginalPlanDigest: r.e.Digest(), RecordDigest: plan.Digest(first), CreationAckDigest: r.ack}
	for name, payload := range map[string]any{
		"attempt-0001.json":       good, // the record of another file
		"attempt-0003.json":       good, // a file that the plan does not have
		"retry-attempt-0000.json": record.RetryAttempt{good.OriginalPlanDigest, good.RecordDigest, good.CreationAckDigest, plan.Digest(1)},
		"result-0000.json":        record.Result{Upload: record.Unverified, Nonce: new(strings.Repeat("0", 32))},
		"retry-result-0000.json":  record.Result{Upload: record.Unverified, Nonce: new(strings.Repeat("0", 32))},
	} {
		if _, err := r.j.Append(name, payload); codeOf(err) != "file-upload-evidence-invalid" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, spoil := range []func(*record.Attempt){
		func(a *record.Attempt) { a.OriginalPlanDigest = plan.Digest(1) },
		func(a *record.Attempt) { a.RecordDigest = plan.Digest(1) },
		func(a *record.Attempt) { a.CreationAckDigest = plan.Digest(1) },
	} {
		a := good
		spoil(&a)
		if _, err := r.j.Append("attempt-0000.json", a); codeOf(err) != "file-upload-evidence-invalid" {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// S118, section 14: an acknowledgement without a safe request id, or without one clear ETag, is
// never written.
func TestAckRules(t *testing.T) {
	tag, other, blank := `"1"`, `"2"`, ""
	for name, ack := range map[string]record.Ack{
		"withheld":     {Status: 201, RequestID: "[withheld]", ETagEvidence: record.Evidence{Body: &tag, Headers: []string{}}},
		"no id":        {Status: 201, ETagEvidence: record.Evidence{Body: &tag, Headers: []string{}}},
		"202":          {Status: 202, RequestID: "r", ETagEvidence: record.Evidence{Body: &tag, Headers: []string{}}},
		"S53 conflict": {Status: 201, RequestID: "r", ETagEvidence: record.Evidence{Body: &tag, Headers: []string{other}}},
		"S53 blank":    {Status: 201, RequestID: "r", ETagEvidence: record.Evidence{Body: &blank, Headers: []string{}}},
		"no evidence":  {Status: 201, RequestID: "r", ETagEvidence: record.Evidence{Headers: []string{}}},
	} {
		e := approved(t, 1)
		dir := filepath.Join(journaltest.Dir(t), "journal")
		j, err := journal.Create(dir, record.NewLayout(), record.Run{Document: e.Document, BackoffVersion: "1.0"}, journal.Options{})
		must(t, err)
		_, err = j.Append(record.SourceAckName, record.SourceAck{OriginalPlanDigest: e.Digest(), SourceURL: e.File.Source.URL, Acknowledgement: ack})
		if codeOf(err) != "file-upload-evidence-invalid" {
			t.Errorf("%s: %v", name, err)
		}
		must(t, j.Close())
		if _, err := journal.Read(dir, record.NewLayout()); codeOf(err) != "file-upload-provenance-missing" {
			t.Errorf("%s: the next run says %v", name, err)
		}
	}
}

// Crash table, S103: a restriction that names an attempt completes its result; a retry resets an
// earlier proof.
func TestCompleteAndStates(t *testing.T) {
	r := newRun(t)
	_, x := r.attempt(0)
	_, err := x.Restrict(record.FromHeaders(retryafter.Parse([]string{"1"}, r.now), "r-9"))
	must(t, err)
	if s := record.StateOf(r.j.Record(), 0); s.Upload != record.Unverified || s.Attempts != 1 {
		t.Errorf("before: %+v", s)
	}
	n, err := record.Complete(r.j)
	must(t, err)
	s := record.StateOf(r.j.Record(), 0)
	if n != 1 || s.Upload != record.Rejected || !s.Throttled() || *s.RequestID != "r-9" || s.Verification != record.Failed {
		t.Errorf("completed %d: %+v", n, s)
	}
	if n, err := record.Complete(r.j); n != 0 || err != nil {
		t.Errorf("twice: %d, %v", n, err)
	}
	first, _ := r.j.Record().Entry("result-0000.json")
	_, err = r.j.Append("retry-attempt-0000.json", record.RetryAttempt{r.e.Digest(), plan.Digest(r.e.File.Files.Records[0]), r.ack, first.Digest})
	must(t, err)
	if s := record.StateOf(r.j.Record(), 0); s.Upload != record.Unverified || s.Attempts != 2 || s.Verification != "" || s.Status != nil {
		t.Errorf("a retry attempt: %+v", s)
	}
}

// S100, S113: a journal from before restrictions were recorded is usable without a 429, and
// unresolved with one.
func TestLegacyJournal(t *testing.T) {
	for _, throttled := range []bool{false, true} {
		e := approved(t, 2)
		dir := filepath.Join(journaltest.Dir(t), "journal")
		j, err := journal.Create(dir, record.NewLayout(), record.Run{Document: e.Document}, journal.Options{})
		must(t, err)
		tag := `"1"`
		ack, err := j.Append(record.SourceAckName, record.SourceAck{
			OriginalPlanDigest: e.Digest(), SourceURL: e.File.Source.URL,
			Acknowledgement: record.Ack{Status: 201, RequestID: "r", ETagEvidence: record.Evidence{Body: &tag, Headers: []string{}}},
		})
		must(t, err)
		_, err = j.Append("attempt-0000.json", record.Attempt{e.Digest(), plan.Digest(e.File.Files.Records[0]), ack.Digest})
		must(t, err)
		status, upload, want := 400, record.Rejected, journal.Clear
		if throttled {
			status, want = 429, journal.Unresolved
		}
		_, err = j.Append("result-0000.json", record.Result{Upload: upload, Status: &status})
		must(t, err)
		must(t, j.Close())
		r, err := journal.Read(dir, record.NewLayout())
		must(t, err)
		if s := r.Status(start, ""); s.State != want || throttled && s.Reason != record.ReasonLegacy {
			t.Errorf("throttled %v: %+v", throttled, s)
		}
	}
}
