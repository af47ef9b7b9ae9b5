package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/cli"
)

// R99: while the registry is rate-limiting us, a version that nobody here knows is not absent: the
// command says so, with the wait, and ends as one that waits.
func TestExplainWhileCooling(t *testing.T) {
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "300")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer registry.Close()
	code, stdout, stderr := play(t, "explain", "--data", t.TempDir(), "--npm", registry.URL+"/", "npm:a@1.0.0")
	authority := strings.TrimPrefix(registry.URL, "http://")
	for _, want := range []string{"explain npm:a@1.0.0", "unknown for now", authority + " (registry)", "try again in 300 seconds"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr lacks %q: %s", want, stderr)
		}
	}
	if code != int(cli.Waiting) || stdout != "" {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
}
