//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
)

// scene is an upstream that throttles when it is told to, and the real command as processes over
// one data folder.
type scene struct {
	t      *testing.T
	dir    string // of the command; the data folder is "data" in it
	server *httptest.Server
	up     *fakenpm.Registry

	mu       sync.Mutex // guards all below
	throttle string     // the Retry-After of all answers; empty for none
	arrived  []time.Time
	answered time.Time // when the last 429 went out
	slow     time.Duration
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, dir: t.TempDir(), up: fakenpm.New("http://unused.test")}
	for _, name := range []string{"a", "b", "c"} {
		s.up.Publish(name, "1.0.0", time.Now().AddDate(-1, 0, 0), nil)
	}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.server.Close)
	target := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(target.Close)
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, filepath.Join(s.dir, "ecluse")))
	must(t, os.WriteFile(filepath.Join(s.dir, "gate.yaml"), fmt.Appendf(nil,
		"listen: '127.0.0.1:0'\nadmin: ''\ndataDir: 'data'\nmounts: {npm: {public: '%s/', mirror: {url: '%s/'}}}\n", s.server.URL, target.URL), 0o600))
	must(t, os.WriteFile(filepath.Join(s.dir, "package-lock.json"), []byte(`{"packages": {"": {}, "node_modules/c": {"version": "1.0.0"}}}`), 0o600))
	return s
}

func (s *scene) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.arrived = append(s.arrived, time.Now())
	throttle, slow := s.throttle, s.slow
	s.mu.Unlock()
	time.Sleep(slow)
	if throttle == "" {
		s.up.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	s.answered = time.Now()
	s.mu.Unlock()
	w.Header().Set("Retry-After", throttle)
	w.WriteHeader(http.StatusTooManyRequests)
}

// answers says how the upstream answers from now on.
func (s *scene) answers(throttle string, slow time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.throttle, s.slow = throttle, slow
}

// sent is how many requests have arrived, when the last did, and when the last 429 went out.
func (s *scene) sent() (n int, last, answered time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = len(s.arrived); n > 0 {
		last = s.arrived[n-1]
	}
	return n, last, s.answered
}

func (s *scene) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(s.dir, "ecluse"), append(args, "--config", "gate.yaml")...)
	cmd.Dir = s.dir
	return cmd
}

// run starts a command that stays, waits for its first line of output, and returns that. Kill ends
// it as kill -9 does.
func (s *scene) run(args ...string) (line string, kill func()) {
	s.t.Helper()
	cmd := s.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	must(s.t, err)
	must(s.t, cmd.Start())
	r := bufio.NewReader(out)
	line, err = r.ReadString('\n')
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, r)
		_ = cmd.Wait()
		close(ended)
	}()
	kill = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	s.t.Cleanup(func() {
		kill()
		if text := stderr.String(); strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") || strings.Contains(text, "not kept") {
			s.t.Errorf("%s", text)
		}
	})
	if err != nil {
		kill()
		s.t.Fatalf("ecluse %v: %s", args, &stderr)
	}
	return strings.TrimSpace(line), kill
}

// gate starts a gate and returns the address of its npm mount.
func (s *scene) gate() (npm string, kill func()) {
	s.t.Helper()
	line, kill := s.run("serve", "--no-worker")
	_, npm, _ = strings.Cut(line, "http://")
	return "http://" + strings.TrimSuffix(npm, "/"), kill
}

func (s *scene) get(url string) (status, retryAfter int) {
	s.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	retryAfter, _ = strconv.Atoi(resp.Header.Get("Retry-After"))
	return resp.StatusCode, retryAfter
}

// R100: the real gate is killed as soon as its client has seen the refusal. The next one over the
// same folder, mirror run beside it and explain send nothing until the deadline; then one probe
// goes out, and everything is as before.
func TestCooldownOutlivesKill(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if out, err := s.command("mirror", "add", "--lockfile", "package-lock.json").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	npm, kill := s.gate()
	s.answers("5", 0)
	if status, wait := s.get(npm + "/a"); status != 503 || wait != 5 {
		t.Errorf("%d, Retry-After %d", status, wait)
	}
	kill()
	s.answers("", 200*time.Millisecond)
	npm, _ = s.gate()
	_, _, throttled := s.sent()
	if line, _ := s.run("mirror", "run"); line != "running mirror jobs" {
		t.Errorf("mirror run: %s", line)
	}
	explained := 0
	for end := throttled.Add(4900 * time.Millisecond); time.Now().Before(end); explained++ {
		if status, wait := s.get(npm + "/b"); status != 503 || wait < 1 || wait > 5 {
			t.Errorf("in the cooldown: %d, Retry-After %d", status, wait)
		}
		if explained == 0 {
			if out, err := s.command("explain", "npm:a").CombinedOutput(); err == nil && time.Now().Before(end) {
				t.Errorf("explain: %s", out)
			}
		}
	}
	for { // clients come all the time
		n, last, _ := s.sent()
		if n == 1 {
			s.get(npm + "/b")
			continue
		}
		if early := throttled.Add(5 * time.Second).Sub(last); early > 0 {
			t.Errorf("the second request came %v before the deadline", early)
		}
		break
	}
	if explained == 0 {
		t.Error("nobody asked in the cooldown")
	}
}

// R100, R63: the probe after a kill is one request, whoever asks.
func TestOneProbeAfterKill(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	npm, kill := s.gate()
	s.answers("3", 0)
	s.get(npm + "/a")
	kill()
	s.answers("", 300*time.Millisecond)
	npm, _ = s.gate()
	_, _, throttled := s.sent()
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			for {
				status, wait := s.get(npm + "/b")
				if status == 200 {
					return
				} else if status != 503 || wait < 1 {
					t.Errorf("%d, Retry-After %d", status, wait)
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	clients.Wait()
	if n, last, _ := s.sent(); n != 2 || last.Before(throttled.Add(3*time.Second)) {
		t.Errorf("%d requests, the last %v after the 429", n, last.Sub(throttled))
	}
}

// R100: a gate and a worker are at work over one folder. When the worker meets a 429, the gate
// sends nothing any more, and says how long.
func TestCooldownIsSharedOnAMachine(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	npm, _ := s.gate()
	if status, _ := s.get(npm + "/a"); status != 200 {
		t.Fatalf("%d", status)
	}
	s.answers("30", 0)
	if out, err := s.command("mirror", "add", "--lockfile", "package-lock.json").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.run("mirror", "run")
	until(t, "the worker's cooldown", func() bool {
		data, err := os.ReadFile(filepath.Join(s.dir, "data", "cooldowns.json"))
		return err == nil && bytes.Contains(data, []byte("127.0.0.1"))
	})
	before, _, _ := s.sent()
	for range 50 {
		if status, wait := s.get(npm + "/b"); status != 503 || wait < 2 || wait > 30 {
			t.Errorf("%d, Retry-After %d", status, wait)
		}
	}
	if n, _, _ := s.sent(); n != before || before != 2 {
		t.Errorf("%d requests, and %d before", n, before)
	}
}
