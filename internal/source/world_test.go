package source_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/emulator/emulatortest"
	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/internal/source/progress"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

const endpoint = "http://127.0.0.1"

// world is a service, a folder of files, private folders for a run, and a tool. Everything is in
// memory and in virtual time but the files.
type world struct {
	t       *testing.T
	emu     *emulatortest.Emulator
	opts    source.Options
	tokens  atomic.Int32
	token   string
	life    time.Duration // of a token, 0 for ever
	renewed string        // the token from the second asking on, if life is set
	dir     string        // private
	paths   []string
	extra   map[string]any // more members of the request
	seen    int            // requests that earlier calls of requests have given
}

// inWorld runs a test in a bubble of virtual time, with the named files in the corpus.
func inWorld(t *testing.T, paths []string, f func(t *testing.T, w *world)) {
	t.Helper()
	dir := journaltest.Dir(t)
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t, dir, paths)) })
}

func newWorld(t *testing.T, dir string, paths []string) *world {
	w := &world{t: t, dir: dir, paths: paths, token: emulatortest.Token, emu: emulatortest.New(t, emulatortest.Options{})}
	for _, p := range paths {
		w.write(p, "content of "+p)
	}
	w.connect()
	return w
}

// connect gives the world a tool over a fresh connection, as a new process would have.
func (w *world) connect() {
	transport := emulatortest.Transport(w.t, w.emu)
	transport.DisableKeepAlives = true
	w.opts.Emulator = true
	w.opts.Connect = func(service search.Service, recorder search.Recorder) (*search.Client, error) {
		return search.New(search.Options{Service: service, Recorder: recorder, Tokens: w, Transport: transport, Now: w.opts.Clock.Now})
	}
}

// Token counts how often a token was asked for.
func (w *world) Token(context.Context, string) (search.Token, error) {
	n := w.tokens.Add(1)
	if w.life == 0 {
		return search.NewToken(w.token, time.Time{}), nil
	}
	text := w.token
	if n > 1 {
		text = w.renewed
	}
	return search.NewToken(text, time.Now().Add(w.life)), nil
}

func (w *world) tool() *source.Tool { return source.New(w.opts) }

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, content string) {
	w.t.Helper()
	file := filepath.Join(w.dir, "docs", name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) request() []byte {
	r := map[string]any{
		"schema_version": "1.0", "kind": "file", "endpoint": endpoint, "name": "manuals", "owner": "team@x", "local_root": w.path("docs"),
		"paths": w.paths, "service_tier": "basic", "extraction_mode": "minimal", "api_version": "2026-10-01",
	}
	maps.Copy(r, w.extra)
	data, err := json.Marshal(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

func (w *world) script(text string) {
	w.t.Helper()
	emulatortest.Script(w.t, w.emu, text)
}

const (
	filesPath  = `/files(\\?|$)`
	sourcePath = `manuals'\\)(\\?|$)`
)

// requests gives what the service saw since the last call: "GET source 404", "POST files 201".
func (w *world) requests() []string {
	var all []string
	seen := w.emu.Requests()
	for _, r := range seen[w.seen:] {
		what := "source"
		if strings.HasSuffix(r.Path, "/files") {
			what = "files"
		} else if strings.HasSuffix(r.Path, "/status") {
			what = "status"
		}
		status := 0
		if r.Answer != nil {
			status = r.Answer.Status
		}
		all = append(all, fmt.Sprintf("%s %s %d", r.Method, what, status))
	}
	w.seen = len(seen)
	return all
}

func (w *world) saw(want ...string) {
	w.t.Helper()
	if got := w.requests(); !slices.Equal(got, want) {
		w.t.Errorf("the service saw\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// planned makes and approves a plan.
func (w *world) planned() []byte {
	w.t.Helper()
	envelope, out := w.tool().Plan(w.t.Context(), w.request())
	if out.Status != source.StatusPlanned {
		w.t.Fatalf("plan: %+v", out)
	}
	return w.approved(envelope)
}

func (w *world) approved(envelope []byte) []byte {
	w.t.Helper()
	approved, out := source.Approve(envelope, func(string, string) error { return nil })
	if approved == nil {
		w.t.Fatalf("approve: %+v", out)
	}
	return approved
}

func (w *world) apply(envelope []byte) *source.Outcome {
	return w.tool().Apply(w.t.Context(), envelope, source.Places{Journal: w.path("journal"), Receipts: w.path("receipts")})
}

// continued applies a continuation, whose journal is in the plan.
func (w *world) continued(envelope []byte) *source.Outcome {
	return w.tool().Apply(w.t.Context(), envelope, source.Places{})
}

func (w *world) resume() ([]byte, *source.Outcome) {
	return w.tool().Resume(w.t.Context(), w.path("journal"), "")
}

// created is a plan and its application under a script that the planning does not meet; it forgets
// the requests of the planning.
func (w *world) created(script string) *source.Outcome {
	w.t.Helper()
	envelope := w.planned()
	w.requests()
	w.script(script)
	return w.apply(envelope)
}

// is compares what a script would look at.
func is(t *testing.T, out *source.Outcome, status, code string) {
	t.Helper()
	if out.Status != status || out.Code != code {
		t.Errorf("status %q code %q (%s), want %q %q", out.Status, out.Code, out.Message, status, code)
	}
}

// states gives "upload/verification" of each file.
func states(out *source.Outcome) []string {
	var all []string
	if out.FileBatch == nil {
		return nil
	}
	for _, f := range out.FileBatch.Files {
		all = append(all, f.Upload+"/"+f.Verification)
	}
	return all
}

func filesAre(t *testing.T, out *source.Outcome, want ...string) {
	t.Helper()
	if got := states(out); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

func backoffIs(t *testing.T, out *source.Outcome, want journal.State) {
	t.Helper()
	if out.FileBatch == nil || out.FileBatch.Backoff.Status != string(want) {
		t.Errorf("backoff %+v, want %s", out.FileBatch, want)
	}
}

func (w *world) report(into *[]progress.Event) {
	w.opts.Report = func(workflow string) *progress.Reporter {
		return progress.New(workflow, time.Now, func(e progress.Event) error { *into = append(*into, e); return nil })
	}
}

var three = []string{"a.txt", "b.txt", "c.txt"}

func readJSON(t *testing.T, path string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func layout() *journal.Layout { return record.NewLayout() }
