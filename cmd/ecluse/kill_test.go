package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable/durabletest"
	"github.com/ecluse-gate/ecluse/internal/emulator"
	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/internal/source/review"
	"github.com/ecluse-gate/ecluse/internal/source/sourcetest"
	"github.com/ecluse-gate/ecluse/recovery"
)

// victim is a run of three files that meets a 429 on its first upload, in a process that gets
// killed.
type victim struct {
	t        *testing.T
	dir      string
	emulator *emulator.Emulator
	server   *httptest.Server
	approved string
	tokens   int

	mu     sync.Mutex // guards all below
	child  *os.Process
	gone   chan struct{} // closed when the child has ended
	killAt int           // the request at which the service kills the child, 0 for never
	phase  string        // arrived, performed or answered
	// how long after request killAt the child is killed, for the phase "later"
	later time.Duration
	seen  int                   // its requests
	open  map[net.Conn]struct{} // the service's connections that were made since it began
}

func newVictim(t *testing.T) *victim {
	v := &victim{t: t, dir: durabletest.Dir(t), open: map[net.Conn]struct{}{}}
	var err error
	v.emulator, err = emulator.New(emulator.Options{})
	must(t, err)
	v.server = httptest.NewUnstartedServer(http.HandlerFunc(v.serve))
	v.server.Config.ConnState = v.connection
	v.server.Start()
	t.Cleanup(v.server.Close)
	must(t, os.Mkdir(filepath.Join(v.dir, "docs"), 0o700))
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		must(t, os.WriteFile(filepath.Join(v.dir, "docs", name), []byte("content of "+name), 0o600))
	}
	request := fmt.Sprintf(`{"schema_version":"1.0","kind":"file","endpoint":%q,"name":"manuals","owner":"team@x","local_root":%q,"paths":["a.txt","b.txt","c.txt"],
		"service_tier":"basic","extraction_mode":"minimal","api_version":"2026-10-01"}`, v.server.URL, filepath.Join(v.dir, "docs"))
	envelope, out := v.tool(time.Now()).Plan(t.Context(), []byte(request))
	if envelope == nil {
		t.Fatalf("plan: %+v", out)
	}
	v.approved = filepath.Join(v.dir, "approved.json")
	must(t, os.WriteFile(v.approved, approve(t, envelope), 0o600))
	rules, err := emulator.ParseScript(strings.NewReader(`[{"match":{"method":"POST","nth":1},"act":{"status":429,"headers":{"Retry-After":"0"}}}]`))
	must(t, err)
	must(t, v.emulator.SetScript(rules))
	return v
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func approve(t *testing.T, envelope []byte) []byte {
	t.Helper()
	approved, out := source.Approve(envelope, func(string, string) error { return nil })
	if approved == nil {
		t.Fatalf("approve: %+v", out)
	}
	return approved
}

// tool is the tool in this process, at a time of its own that passes only while it sleeps.
func (v *victim) tool(now time.Time) *source.Tool {
	passed := time.Duration(0)
	return source.New(source.Options{
		Emulator: true,
		Connect: func(service search.Service, recorder search.Recorder) (*search.Client, error) {
			return search.New(search.Options{Service: service, Recorder: recorder, Tokens: v, Now: func() time.Time { return now.Add(passed) }})
		},
		Clock: recovery.Clock{
			Now:     func() time.Time { return now.Add(passed) },
			Elapsed: func() time.Duration { return passed },
			Sleep:   func(_ context.Context, d time.Duration) error { passed += d; return nil },
		},
	})
}

// Token counts how often a token was asked for.
func (v *victim) Token(context.Context, string) (search.Token, error) {
	v.tokens++
	return search.NewToken(emulator.Token, time.Time{}), nil
}

// serve hands a request to the emulator, and kills the child at its moment: when the request has
// arrived and nothing is done yet, when it has been performed and nothing is answered yet, or when
// the answer is on its way.
func (v *victim) serve(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	if v.child != nil {
		v.seen++
	}
	mine := v.child != nil && v.seen == v.killAt
	child, gone, phase := v.child, v.gone, v.phase
	v.mu.Unlock()
	if mine && phase == "later" {
		time.AfterFunc(v.later, func() { _ = child.Kill() })
		mine = false
	}
	kill := func() { // a dead child reads no answer, not even that the connection ends
		_ = child.Kill()
		<-gone
	}
	if mine && phase == "arrived" {
		kill()
		return
	}
	kept := httptest.NewRecorder()
	v.emulator.ServeHTTP(kept, r)
	if mine && phase == "performed" {
		kill()
		return
	}
	maps.Copy(w.Header(), kept.Header())
	w.WriteHeader(kept.Code)
	_, _ = w.Write(kept.Body.Bytes())
	if mine {
		_ = http.NewResponseController(w).Flush()
		kill()
	}
}

// connection keeps count of the connections to the service.
func (v *victim) connection(c net.Conn, state http.ConnState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if state == http.StateClosed {
		delete(v.open, c)
	} else if state == http.StateNew {
		v.open[c] = struct{}{}
	}
}

// run runs the real command to its end, or to its death.
func (v *victim) run(prefix ...string) {
	v.t.Helper()
	link := filepath.Join(v.dir, oneThread)
	self, err := os.Executable()
	must(v.t, err)
	if err := os.Symlink(self, link); err != nil && !os.IsExist(err) {
		v.t.Fatal(err)
	}
	args := append(prefix, link, "source", "apply", v.approved, "--emulator", "--progress", "none",
		"--journal", v.path("journal"), "--receipts", v.path("receipts"))
	cmd := exec.CommandContext(v.t.Context(), args[0], args[1:]...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	v.mu.Lock() // the child's first request waits until it is known whose it is
	forks.Lock()
	err = cmd.Start()
	forks.Unlock()
	gone := make(chan struct{})
	v.child, v.gone, v.seen = cmd.Process, gone, 0
	clear(v.open)
	v.mu.Unlock()
	must(v.t, err)
	_ = cmd.Wait()
	close(gone)
	v.mu.Lock()
	v.child = nil
	v.mu.Unlock()
	v.released()
	v.served()
	if strings.Contains(output.String(), "DATA RACE") || strings.Contains(output.String(), "panic") {
		v.t.Errorf("%s", output.String())
	}
}

// forks keeps the start of a process apart from journals that are open in this one: between fork
// and exec the new process has every lock that its parent has.
var forks sync.RWMutex

// released waits until the kernel has taken the dead process's lock from the journal: a tracer may
// end a moment before the last of its tracee's threads.
func (v *victim) released() {
	v.t.Helper()
	until(v.t, "the end of a dead process's lock", func() bool {
		forks.RLock()
		defer forks.RUnlock()
		folder, err := os.Open(v.path("journal"))
		if err != nil {
			return true // it died before there was one
		}
		defer folder.Close()
		return syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	})
}

func until(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ready(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// served waits until the service has dealt with all that the dead process sent: requests may lie
// unread in its connections. The last connection to be accepted is one of our own.
func (v *victim) served() {
	v.t.Helper()
	last, err := net.Dial("tcp", v.server.Listener.Addr().String())
	must(v.t, err)
	defer last.Close()
	if _, err := fmt.Fprintf(last, "GET /emulator/state HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		v.t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, last); err != nil {
		v.t.Fatal(err)
	}
	until(v.t, "the end of the dead process's connections", func() bool { v.mu.Lock(); defer v.mu.Unlock(); return len(v.open) == 0 })
}

func (v *victim) path(name string) string { return filepath.Join(v.dir, name) }

// after is what must hold after any death: the next run says what the crash table says; while
// anything is open it sends nothing and asks for no token; looking writes nothing; and when it may
// go on it finishes what was never attempted, without posting anything twice.
func (v *victim) after() (verdict string) {
	t := v.t
	t.Helper()
	forks.RLock()
	defer forks.RUnlock()
	if _, err := os.Stat(v.path("journal")); err != nil {
		return "no journal"
	}
	for _, later := range []time.Duration{0, 10 * time.Minute} {
		now := time.Now().Add(later)
		want := sourcetest.Verdict(t, v.path("journal"), now)
		v.looks(now, want)
		sent := len(v.emulator.Requests())
		v.tokens = 0
		envelope, out := v.tool(now).Resume(t.Context(), v.path("journal"), "")
		if said := sourcetest.Says(out.Status, out.Code); said != want {
			t.Errorf("the next run says %s (%s %s), the crash table %s", said, out.Status, out.Code, want)
		}
		if want != sourcetest.Go && (len(v.emulator.Requests()) != sent || v.tokens != 0) {
			t.Errorf("%s, and yet %d requests and %d tokens", want, len(v.emulator.Requests())-sent, v.tokens)
		}
		if later == 0 {
			verdict = want
		}
		if want != sourcetest.Go || envelope == nil {
			continue
		}
		attempted := sourcetest.Payloads(t, v.path("journal"))
		done := v.tool(now).Apply(t.Context(), approve(t, envelope), source.Places{})
		if done.FileBatch == nil || done.FileBatch.Counts.NotAttempted != 0 {
			t.Errorf("the continuation: %s %s %+v", done.Status, done.Code, done.FileBatch)
		}
		for i := range 3 {
			before, again := attempted[fmt.Sprintf("attempt-%04d.json", i)], attempted[fmt.Sprintf("retry-attempt-%04d.json", i)]
			entries := sourcetest.Payloads(t, v.path("journal"))
			if before != nil && again == nil && entries[fmt.Sprintf("retry-attempt-%04d.json", i)] != nil {
				t.Errorf("file %d was attempted again by a later run", i)
			}
		}
		break
	}
	v.once()
	return verdict
}

// looks shows the journal: the same verdict, and not a byte changed.
func (v *victim) looks(now time.Time, want string) {
	v.t.Helper()
	before := v.listing()
	report, err := review.Show(v.path("journal"), now)
	must(v.t, err)
	if got := v.listing(); !slices.Equal(got, before) {
		v.t.Errorf("show wrote: %v, then %v", before, got)
	}
	if want == sourcetest.Waiting || want == sourcetest.Unresolved {
		if string(report.Backoff.State) != want {
			v.t.Errorf("show says %s, the crash table %s", report.Backoff.State, want)
		}
	}
}

func (v *victim) listing() []string {
	entries, err := os.ReadDir(v.path("journal"))
	must(v.t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// once: no content was posted twice, but after a received 429.
func (v *victim) once() {
	v.t.Helper()
	throttled, posted := map[string]bool{}, map[string]bool{}
	puts := 0
	for _, r := range v.emulator.Requests() {
		switch {
		case r.Method == http.MethodPut:
			puts++
		case r.Method == http.MethodPost && !r.BodyPartial:
			if posted[r.BodySHA256] && !throttled[r.BodySHA256] {
				v.t.Errorf("a file was posted twice")
			}
			posted[r.BodySHA256] = true
			throttled[r.BodySHA256] = r.Answer != nil && r.Answer.Status == http.StatusTooManyRequests
		}
	}
	if puts > 1 {
		v.t.Errorf("the source was written %d times", puts)
	}
}

// The service kills the run at every request: as it arrives, when it is done, and when it is
// answered. This is every place between two system calls of the network.
func TestKilledAtEveryRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes")
	}
	good := newVictim(t)
	good.run()
	if verdict := good.after(); verdict != sourcetest.Go {
		t.Fatalf("the run by itself: %s", verdict)
	}
	// GET PUT GET, GET files, POST 429, GET, GET files, POST, POST, POST, GET files
	const requests = 11
	if good.seen < requests {
		t.Fatalf("the run made %d requests", good.seen)
	}
	for _, phase := range []string{"arrived", "performed", "answered"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= requests; n++ {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					v := newVictim(t)
					v.killAt, v.phase = n, phase
					v.run()
					verdict := v.after()
					t.Logf("killed when request %d had %s: %s", n, phase, verdict)
					if phase != "answered" && n > 2 && verdict != sourcetest.Unresolved {
						t.Errorf("a request was in flight, and the verdict is %s", verdict)
					}
				})
			}
		})
	}
}
