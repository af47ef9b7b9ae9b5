package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

// storedRestriction is the payload of a restriction, written down a second time.
type storedRestriction struct {
	Version       string                   `json:"version"`
	PlanDigest    string                   `json:"plan_digest"`
	Previous      *string                  `json:"previous"`
	Method        string                   `json:"method"`
	URLDigest     string                   `json:"url_digest"`
	Attempt       *string                  `json:"attempt"`
	AttemptDigest *string                  `json:"attempt_digest"`
	RequestID     *string                  `json:"request_id"`
	Nonce         *string                  `json:"nonce"`
	Metadata      json.RawMessage          `json:"metadata"`
	Timing        journal.RetryAfterTiming `json:"timing"`
	Origin        string                   `json:"origin"`
}

// full writes a journal of the largest size without syncing, file by file: run, acknowledgement, 4
// x 200 entries, 200 restrictions and a marker. S114: 1003 = 3 + 4 x 200 + 200.
func full(tb testing.TB) string {
	tb.Helper()
	dir := journaltest.Dir(tb)
	write := func(name string, payload any) string {
		canonical, err := strictjson.Canonical(payload)
		if err != nil {
			tb.Fatal(err)
		}
		digest := strictjson.DigestBytes(canonical)
		data, err := strictjson.Canonical(map[string]any{
			"schema_version": "1.0", "kind": layout.Kind, "payload": json.RawMessage(canonical), "integrity": digest,
		})
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			tb.Fatal(err)
		}
		return digest
	}
	write("run.json", founding{plan})
	write("source-ack.json", ack{201, "ack-id"})
	var previous *string
	for n := range 200 {
		at := noon.Add(time.Duration(n) * time.Hour)
		attemptDigest := write(journal.Numbered("attempt", n), attempt{planDigest(), n})
		restriction := header(at, "60")
		event := storedRestriction{
			Version: "1.0", PlanDigest: planDigest(), Previous: previous, Method: "POST", URLDigest: strictjson.DigestBytes([]byte(listURL)),
			Attempt: new(journal.Numbered("attempt", n)), AttemptDigest: &attemptDigest, RequestID: new("id"), Nonce: new(fmt.Sprintf("%032x", n)),
			Metadata: restriction.Metadata, Timing: restriction.Timing, Origin: restriction.Origin,
		}
		previous = new(write(journal.Numbered("backoff", n), event))
		write(journal.Numbered("result", n), result{"rejected", new(429), new("id"), fmt.Sprintf("%032x", n), previous})
		write(journal.Numbered("retry-attempt", n), attempt{planDigest(), n})
		write(journal.Numbered("retry-result", n), result{"accepted", new(201), new("id"), fmt.Sprintf("%032x", 1000+n), nil})
	}
	write(pendingName, map[string]string{
		"version": "1.0", "plan_digest": planDigest(), "nonce": fmt.Sprintf("%032x", 1100), "method": "POST",
		"url_digest": strictjson.DigestBytes([]byte(listURL)),
	})
	return dir
}

// S102, S114, issue 3: the largest journal loads; one file more is refused; no further request may
// begin in it.
func TestLargestJournal(t *testing.T) {
	dir := full(t)
	if layout.MaxFiles() != 1003 || len(contents(t, dir)) != 1003 {
		t.Fatalf("%d files of %d", len(contents(t, dir)), layout.MaxFiles())
	}
	start := time.Now()
	j, err := journal.Open(dir, layout, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("opened and verified in %v", time.Since(start))
	after := noon.Add(1000 * time.Hour)
	if s := j.Record().Status(after, ""); s.State != journal.Elapsed {
		t.Errorf("status %+v", s)
	}
	if _, err := j.Begin(after, journal.Request{Method: "GET", URL: listURL}); codeOf(err) != "file-upload-backoff-limit" {
		t.Errorf("begin: %v", err)
	}
	j.Close()
	// The marker was that of a finished exchange and is gone; two more names make 1004.
	for _, name := range []string{"x1", "x2"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(dir); got != missing {
		t.Errorf("1004 files: %q", got)
	}
	for i := range 2000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("y", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(dir); got != missing {
		t.Errorf("3000 files: %q", got)
	}
}

// The cost of the checks of one entry at the end of a long journal; the disk refuses it before it
// does anything.
func BenchmarkAppendLate(b *testing.B) {
	dir := full(b)
	last := journal.Numbered("retry-result", 199)
	if err := os.Remove(filepath.Join(dir, last)); err != nil {
		b.Fatal(err)
	}
	j, err := journal.Open(dir, layout, journal.Options{Around: func(s string, _ string, call func() error) error {
		if s == "create" {
			return errDisk
		}
		return call()
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	r := result{"accepted", new(201), new("id"), strings.Repeat("f", 32), nil}
	for b.Loop() {
		if _, err := j.Append(last, r); !errors.Is(err, errDisk) {
			b.Fatal(err)
		}
	}
}

// S99: a new journal needs an empty folder. Leftovers of a run that died before its first entry do
// not count.
func TestCreateNeedsAnEmptyFolder(t *testing.T) {
	dir := journaltest.Dir(t)
	leftover := filepath.Join(dir, ".publishing-"+strings.Repeat("0", 32))
	if err := os.WriteFile(leftover, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Create(dir, layout, founding{plan}, journal.Options{})
	if err != nil || len(j.Record().Warnings()) != 1 {
		t.Fatalf("%v %v", err, j)
	}
	j.Close()
	if _, err := os.Stat(leftover); err != nil {
		t.Error("a file that is not ours was removed") // S97
	}
	if _, err := journal.Create(dir, layout, founding{plan}, journal.Options{}); codeOf(err) != "file-upload-journal-exists" {
		t.Errorf("a second one: %v", err)
	}
	other := journaltest.Dir(t)
	if err := os.WriteFile(filepath.Join(other, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Create(other, layout, founding{plan}, journal.Options{}); codeOf(err) != "file-upload-journal-exists" || len(contents(t, other)) != 1 {
		t.Errorf("a foreign file: %v", err)
	}
}

// S93 through the journal: a world-writable place is refused, and nothing is created there.
func TestCreateNeedsAPrivateFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	if _, err := journal.Create(dir, layout, founding{plan}, journal.Options{}); codeOf(err) != "private-directory-invalid" {
		t.Skipf("the temporary folder of this machine is private: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was created")
	}
}

// S152: while one process has the journal, every other one is refused at once, readers included;
// two readers do not disturb each other.
func TestLocked(t *testing.T) {
	if dir := os.Getenv("JOURNAL_TEST_DIR"); dir != "" {
		_, err := journal.Open(dir, layout, journal.Options{})
		_, rerr := journal.Read(dir, layout)
		fmt.Printf("writer=%q reader=%q\n", codeOf(err), codeOf(rerr))
		return
	}
	dir := complete(t)
	j, err := journal.Open(dir, layout, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLocked$", "-test.v")
		cmd.Env = append(os.Environ(), "JOURNAL_TEST_DIR="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
		return string(out)
	}
	if out := ask(); !strings.Contains(out, `writer="journal-locked" reader="journal-locked"`) {
		t.Error(out)
	}
	j.Close()
	// its own writer is in the reader's way
	if out := ask(); !strings.Contains(out, `writer="" reader="journal-locked"`) {
		t.Error(out)
	}
}

// S150: all faults are reported, not only the first, together with what could be read.
func TestInspectReportsEverything(t *testing.T) {
	dir := complete(t)
	for _, name := range []string{"result-0000.json", "backoff-0001.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "source-ack.json")), os.WriteFile(filepath.Join(dir, "stranger"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	r, faults, err := journal.Inspect(dir, layout)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range faults {
		found[f.Entry] = f.FullCode()
	}
	for entry, code := range map[string]string{"source-ack.json": missing, "result-0000.json": invalid, "backoff-0001.json": invalid, "stranger": invalid} {
		if found[entry] != code {
			t.Errorf("%s: %q, want %q", entry, found[entry], code)
		}
	}
	if faults[0].FullCode() != missing || len(r.Entries("attempt")) != 3 || len(r.Restrictions()) != 1 {
		t.Errorf("first %v, %d attempts, %d restrictions", faults[0], len(r.Entries("attempt")), len(r.Restrictions()))
	}
}

// S98: an entry is written once. A second one of the same name is refused before the disk is asked.
func TestAppendNeverReplaces(t *testing.T) {
	j := begun(t)
	for name, payload := range map[string]any{"source-ack.json": ack{200, "x"}, "run.json": founding{plan}} {
		if _, err := j.Append(name, payload); codeOf(err) != invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"backoff-0000.json", pendingName, "stranger.json", "attempt-0200.json", "attempt-7.json", "attempt-00007.json", "../x.json", "attempt--001.json"} {
		if _, err := j.Append(name, attempt{planDigest(), 0}); codeOf(err) != invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if j.Failed() != nil {
		t.Errorf("latched: %v", j.Failed())
	}
}

// S101: the marker is removed only while it holds what was written; S105: the failure is latched,
// and what was learnt can still be kept.
func TestChangedMarkerStays(t *testing.T) {
	j := begun(t)
	x, err := j.Begin(noon, journal.Request{Method: "GET", URL: listURL})
	if err != nil {
		t.Fatal(err)
	}
	dir := j.Dir()
	changed := []byte("{}")
	if err := os.WriteFile(filepath.Join(dir, pendingName), changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := x.Done(); codeOf(err) != "receipt-failed" {
		t.Errorf("got %v", err)
	}
	if got := contents(t, dir)[pendingName]; string(got) != "{}" {
		t.Errorf("the marker is now %q", got)
	}
	if _, err := j.Begin(noon, journal.Request{Method: "GET", URL: listURL}); codeOf(err) != "receipt-failed" {
		t.Errorf("a request began: %v", err)
	}
	if _, err := j.Append("attempt-0000.json", attempt{planDigest(), 0}); err != nil {
		t.Errorf("what was learnt could not be kept: %v", err)
	}
}

// S103, S104, S105: the restriction goes first, then the marker. When the restriction cannot be
// written, the marker stays and says so to the next run; when only the marker cannot be removed,
// the restriction is given to the caller together with the failure. Both are latched.
func TestThrottledFails(t *testing.T) {
	for name, tt := range map[string]struct {
		file, step string
		written    bool
		next       string
	}{
		"the restriction": {"backoff-0000.json", "write", false, "unresolved: pending-request"},
		"the marker":      {pendingName, "remove", true, "waiting"},
	} {
		broken := false
		j, err := journal.Create(journaltest.Dir(t), layout, founding{plan}, journal.Options{
			Around: func(step, file string, call func() error) error {
				if broken && step == tt.step && file == tt.file {
					return errDisk
				}
				return call()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append("source-ack.json", ack{201, "id"}); err != nil {
			t.Fatal(err)
		}
		x, err := j.Begin(noon, journal.Request{Method: "GET", URL: listURL})
		if err != nil {
			t.Fatal(err)
		}
		broken = true
		e, err := x.Restrict(header(noon, "60"))
		if codeOf(err) != "receipt-failed" || !errors.Is(err, errDisk) || (e.Name != "") != tt.written || !errors.Is(j.Failed(), errDisk) {
			t.Errorf("%s: %q, %v, latched %v", name, e.Name, err, j.Failed())
		}
		if _, err := j.Begin(noon.Add(time.Hour), journal.Request{Method: "GET", URL: listURL}); !errors.Is(err, errDisk) {
			t.Errorf("%s: a request began: %v", name, err)
		}
		if _, ok := contents(t, j.Dir())[pendingName]; !ok {
			t.Errorf("%s: the marker is gone", name)
		}
		j.Close()
		r, err := journal.Read(j.Dir(), layout)
		if v := verdict(r, err, noon.Add(time.Second)); v != tt.next {
			t.Errorf("%s: the next run says %q", name, v)
		}
	}
}

// S101, S102: while a request is pending no other begins, in this run or the next.
func TestOneRequestAtATime(t *testing.T) {
	j := begun(t)
	q := journal.Request{Method: "GET", URL: listURL}
	if _, err := j.Begin(noon, q); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Begin(noon, q); codeOf(err) != "file-upload-backoff-unresolved" {
		t.Errorf("got %v", err)
	}
}

// A request that could not be recorded is not begun.
func TestBeginRefuses(t *testing.T) {
	j := begun(t)
	for _, q := range []journal.Request{
		{Method: "DELETE", URL: listURL},
		{Method: "get", URL: listURL},
		{URL: listURL},
		{Method: "POST", URL: listURL, Attempt: "attempt-0000.json"},
		{Method: "POST", URL: listURL, Attempt: "run.json"},
	} {
		if _, err := j.Begin(noon, q); codeOf(err) != invalid || j.Record().Pending() {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if _, err := j.Append("attempt-0000.json", attempt{planDigest(), 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Begin(noon, journal.Request{Method: "GET", URL: listURL, Attempt: "attempt-0000.json"}); codeOf(err) != invalid {
		t.Errorf("a GET as an attempt: %v", err)
	}
}
