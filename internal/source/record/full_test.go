//go:build unix

package record_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// approved is an approved plan of n files.
func approved(tb testing.TB, n int) *plan.Envelope {
	tb.Helper()
	var records []plan.File
	for i := range n {
		records = append(records, plan.File{
			Path: fmt.Sprintf("folder/file-%03d.txt", i), Size: int64(i + 1), ModTime: "1700000000123456789", SHA256: strings.Repeat("ab", 32),
			MediaType: "text/plain", Metadata: map[string]string{"language": "en", "chapter": fmt.Sprint(i)},
		})
	}
	_, url, err := plan.Address("https://demo.search.windows.net", "2026-10-01", "manuals")
	if err != nil {
		tb.Fatal(err)
	}
	data, err := plan.New(&plan.Plan{
		Kind: plan.KindFile, Action: plan.ActionCreate, Endpoint: "https://demo.search.windows.net", APIVersion: "2026-10-01", ServiceTier: "basic", Owner: "team@x",
		Source:          plan.Source{Name: "manuals", URL: url, Definition: map[string]any{"name": "manuals", "kind": "file"}},
		Files:           plan.Files{LocalRoot: "/srv/docs", Digest: plan.Digest(records), Records: records},
		InventoryDigest: plan.Digest([]any{}),
	})
	if err != nil {
		tb.Fatal(err)
	}
	e, err := plan.Parse(data)
	if err == nil {
		data, err = e.Approve()
	}
	if err == nil {
		e, err = plan.Parse(data)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

var start = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// founded is a journal with its run and acknowledgement.
func founded(tb testing.TB, dir string, files int) (*journal.Journal, *plan.Envelope, string) {
	tb.Helper()
	e := approved(tb, files)
	j, err := journal.Create(dir, record.NewLayout(), record.Run{
		Document: e.Document, Context: plan.Context{CloudName: "AzureCloud"}, BackoffVersion: record.BackoffVersion,
	}, journal.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tag := `"0x1"`
	ack, err := j.Append(record.SourceAckName, record.SourceAck{
		OriginalPlanDigest: e.Digest(), SourceURL: e.File.Source.URL,
		Acknowledgement: record.Ack{Status: 201, RequestID: "r-1", ETagEvidence: record.Evidence{Body: &tag, Headers: []string{tag}}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return j, e, ack.Digest
}

// fullSize writes the largest journal that there can be: every file throttled once and repeated,
// every restriction recorded.
func fullSize(tb testing.TB, dir string) {
	tb.Helper()
	j, e, ack := founded(tb, dir, plan.MaxFiles)
	opened, err := record.Open(j.Record())
	must(tb, err)
	url := opened.UploadURL
	now := start
	for i := range plan.MaxFiles {
		a := record.Attempt{OriginalPlanDigest: e.Digest(), RecordDigest: plan.Digest(e.File.Files.Records[i]), CreationAckDigest: ack}
		name := journal.Numbered(record.TypeAttempt, i)
		_, err := j.Append(name, a)
		must(tb, err)
		x, err := j.Begin(now, journal.Request{Method: "POST", URL: url, Attempt: name})
		must(tb, err)
		event, err := x.Restrict(record.FromHeaders(retryafter.Parse([]string{"1"}, now), "r-2"))
		must(tb, err)
		first, err := j.Append(journal.Numbered(record.TypeResult, i), record.Throttled(event))
		must(tb, err)
		now = now.Add(2 * time.Second)
		name = journal.Numbered(record.TypeRetryAttempt, i)
		_, err = j.Append(name, record.RetryAttempt{
			OriginalPlanDigest: a.OriginalPlanDigest, RecordDigest: a.RecordDigest, CreationAckDigest: ack, RejectedResultDigest: first.Digest,
		})
		must(tb, err)
		if i == plan.MaxFiles-1 {
			// 200 restrictions are the most: no further request could be recorded; its result is
			// written without one
			break
		}
		x, err = j.Begin(now, journal.Request{Method: "POST", URL: url, Attempt: name})
		must(tb, err)
		status, nonce, id := 201, x.Nonce(), fmt.Sprintf("f-%d", i)
		_, err = j.Append(journal.Numbered(record.TypeRetryResult, i), record.Result{
			Upload: record.Accepted, Status: &status, FileID: &id, Nonce: &nonce, FileProof: &record.Proof{FileID: id, RecordDigest: a.RecordDigest},
		})
		must(tb, err)
		must(tb, x.Done())
	}
	nonce := strings.Repeat("0", 31) + "1"
	_, err = j.Append(journal.Numbered(record.TypeRetryResult, plan.MaxFiles-1), record.Result{Upload: record.Unverified, Nonce: &nonce})
	must(tb, err)
	must(tb, j.Close())
}

func codeOf(err error) string {
	if e, ok := errors.AsType[*journal.Error](err); ok {
		return e.FullCode()
	}
	return ""
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// S114: 200 files, 200 restrictions, 1002 files without a marker, which makes 1003. One more is too
// many.
func TestFullSize(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a thousand files")
	}
	dir := filepath.Join(journaltest.Dir(t), "journal")
	fullSize(t, dir)
	names, err := os.ReadDir(dir)
	must(t, err)
	if len(names) != 1002 || record.NewLayout().MaxFiles() != 1003 {
		t.Errorf("%d files, at most %d", len(names), record.NewLayout().MaxFiles())
	}
	r, err := journal.Read(dir, record.NewLayout())
	must(t, err)
	if n := len(r.Restrictions()); n != 200 {
		t.Errorf("%d restrictions", n)
	}
	confirmed := 0
	for _, s := range record.States(r, plan.MaxFiles) {
		if s.Verification == record.Confirmed && s.Attempts == 2 {
			confirmed++
		}
	}
	if confirmed != 199 {
		t.Errorf("%d files confirmed", confirmed)
	}
	if s := r.Status(start.Add(time.Hour), ""); s.State != journal.Elapsed {
		t.Errorf("status %+v", s)
	}
	// S102: no further request, since its restriction could not be recorded.
	j, err := journal.Open(dir, record.NewLayout(), journal.Options{})
	must(t, err)
	_, err = j.Begin(start.Add(time.Hour), journal.Request{Method: "GET", URL: "https://demo.search.windows.net"})
	if codeOf(err) != "file-upload-backoff-limit" {
		t.Errorf("a request beyond the limit: %v", err)
	}
	must(t, j.Close())
	// Processor time, since a busy machine makes any other clock lie.
	best := time.Hour
	for range 5 {
		began := processorTime(t)
		_, err := journal.Read(dir, record.NewLayout())
		must(t, err)
		best = min(best, processorTime(t)-began)
	}
	t.Logf("verified in %v", best)
	if limit := 300 * time.Millisecond; best > limit && !raceEnabled {
		t.Errorf("verifying takes %v, more than %v", best, limit)
	}
}

func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkVerifyFullSize(b *testing.B) {
	dir := filepath.Join(journaltest.Dir(b), "journal")
	fullSize(b, dir)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := journal.Read(dir, record.NewLayout()); err != nil {
			b.Fatal(err)
		}
	}
}
