package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// A requirements.txt names no files, so the public index is asked which there are; its pause is
// waited out, and nothing is sent in it.
func TestMirrorAddAsksTheIndex(t *testing.T) {
	index := fakepypi.New("")
	server := httptest.NewServer(index.Index)
	defer server.Close()
	index.FilesURL = server.URL
	index.RelativeLinks = true
	index.Publish("apple", fakepypi.Wheel("apple", "1.0"), fakepypi.Wheel("apple", "1.1"), fakepypi.Sdist("apple", "1.1"))
	index.Publish("pear", fakepypi.Wheel("pear", "2.0"))
	var asked atomic.Int32
	var paused, resumed time.Time
	index.Index.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		switch asked.Add(1) {
		case 1:
			paused = time.Now()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		case 2:
			resumed = time.Now()
		}
		return false
	})
	dir := t.TempDir()
	for name, text := range map[string]string{
		"requirements.txt": "Apple==1.1\npear==2.0.0\npear==2.0\nplum==1.0\n",
		"gate.yaml": fmt.Sprintf("mounts:\n  npm: {public: 'http://127.0.0.1:9/'}\n  pypi: {public: '%[1]s/simple/', files: ['%[1]s'], mirror: {url: 'http://127.0.0.1:10/legacy/'}}\ndataDir: '%[2]s'\n",
			server.URL, filepath.Join(dir, "data")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		sys := &cli.System{Args: append([]string{"mirror"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Context: t.Context()}
		return run(sys), out.String(), errs.String()
	}
	config := filepath.Join(dir, "gate.yaml")
	code, out, errs := command("add", "--config", config, "--lockfile", filepath.Join(dir, "requirements.txt"))
	if code != int(cli.Partial) || !strings.HasPrefix(out, "files: 4, new jobs: 3, already queued: 1, entries not from a mirrored registry: 0, failed lookups: 1") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if !strings.Contains(errs, "pypi:plum@1.0:") || strings.Contains(errs, "pear") {
		t.Errorf("what could not be looked up: %s", errs)
	}
	if asked.Load() < 4 || resumed.Sub(paused) < time.Second {
		t.Errorf("%d requests; the second came %v after the pause began", asked.Load(), resumed.Sub(paused))
	}
	if _, out, _ = command("list", "--config", config); !strings.Contains(out, "ready 3,") {
		t.Errorf("list: %s", out)
	}
}
