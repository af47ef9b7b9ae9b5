package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
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

// R106, R99: the running gate is asked, and says so: its rules judge, nothing is read a second
// time, and a first-party name is asked of nobody. Without a gate, or with a configuration of its
// own, the command judges alone.
func TestExplainAsksTheGate(t *testing.T) {
	up := fakenpm.New("http://unused.test")
	up.Publish("old", "1.0.0", time.Now().AddDate(-1, 0, 0), nil)
	up.Publish("young", "1.0.0", time.Now(), nil)
	up.Publish("@acme/core", "9.9.9", time.Now().AddDate(-1, 0, 0), nil) // an impostor
	upstream := httptest.NewServer(up)
	defer upstream.Close()
	token, file := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "ecluse.yaml")
	private := httptest.NewServer(http.NotFoundHandler())
	defer private.Close()
	for name, text := range map[string]string{
		token: "s3cret\n",
		file: "admin: {tokenFile: '" + token + "'}\nmounts: {npm: {public: '" + upstream.URL + "', private: '" + private.URL +
			"', firstParty: ['@acme/*']}, pypi: {enabled: false}}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, "serve", "--config", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", t.TempDir())
	npm, admin := p.address(t), p.address(t)
	defer func() { p.stop(); <-p.code }()
	_, _ = fetch(t, npm+"/old")
	before := up.Count()
	environ := []string{"ECLUSE_ADMIN=" + strings.TrimPrefix(admin, "http://"), "ECLUSE_ADMIN__TOKEN_FILE=" + token}
	explained := func(t *testing.T, args ...string) (code int, stdout, stderr string) {
		t.Helper()
		return playWith(t, environ, append([]string{"explain"}, args...)...)
	}
	code, stdout, stderr := explained(t, "npm:old", "npm:@acme/core", "npm:@acme/other@1.0.0")
	if code != 0 || !strings.Contains(stderr, "asked the gate at "+strings.TrimPrefix(admin, "http://")) {
		t.Errorf("exit code %d, stderr %s", code, stderr)
	}
	if !strings.Contains(stdout, "npm:old@1.0.0") || strings.Count(stdout, "first-party") < 2 {
		t.Errorf("stdout %s", stdout)
	}
	if up.Count() != before {
		t.Errorf("%d requests for what the gate knew, or must not ask", up.Count()-before)
	}

	// one unknown name loses no other answer
	code, stdout, stderr = explained(t, "npm:none", "npm:old", "npm:nothing@1.0.0")
	if code != int(cli.Failed) || !strings.Contains(stdout, "npm:old@1.0.0") || strings.Count(stderr, "ecluse: explain npm:no") != 2 {
		t.Errorf("exit code %d, stdout %s, stderr %s", code, stdout, stderr)
	}
	if code, stdout, _ = explained(t, "--json", "npm:none", "npm:old"); code != int(cli.Failed) || !strings.Contains(stdout, `"error": `) {
		t.Errorf("exit code %d, stdout %s", code, stdout)
	}
	if code, stdout, _ = explained(t, "--exit-code", "npm:old", "npm:young"); code != int(cli.Refused) || !strings.Contains(stdout, "denied") {
		t.Errorf("exit code %d, stdout %s", code, stdout)
	}
	if code, _, _ = explained(t, "--exit-code", "npm:old"); code != 0 {
		t.Errorf("exit code %d for an admitted one", code)
	}
	if code, _, stderr = explained(t, "nonsense", "npm:old"); code != int(cli.Usage) || !strings.Contains(stderr, "is not a package") {
		t.Errorf("exit code %d, stderr %s", code, stderr)
	}

	// the gate's own cooldown is the answer's
	up.Always(http.StatusTooManyRequests, "Retry-After", "300")
	for range 2 {
		if code, _, stderr = explained(t, "npm:young2"); code != int(cli.Waiting) || !strings.Contains(stderr, "try again in ") {
			t.Errorf("exit code %d, stderr %s", code, stderr)
		}
	}

	// by a configuration of its own
	up.Answer(nil)
	for _, alone := range [][]string{{"--config", file, "--data", t.TempDir()}, {"--offline", "--npm", upstream.URL, "--data", t.TempDir()}} {
		before = up.Count()
		code, stdout, stderr = explained(t, append(alone, "npm:old")...)
		if code != 0 || strings.Contains(stderr, "asked the gate") || up.Count() != before+1 || !strings.Contains(stdout, "admitted") {
			t.Errorf("%v: exit code %d, %d requests, stdout %s, stderr %s", alone, code, up.Count()-before, stdout, stderr)
		}
	}
	environ = environ[:1]
	if code, _, stderr = explained(t, "npm:old"); code == 0 || !strings.Contains(stderr, "requires a token") {
		t.Errorf("without its token: exit code %d, stderr %s", code, stderr)
	}
}

// Where no gate answers, or something else does, that is said and the configuration judges.
func TestExplainWithoutAGate(t *testing.T) {
	up := fakenpm.New("http://unused.test")
	up.Publish("old", "1.0.0", time.Now().AddDate(-1, 0, 0), nil)
	upstream, other := httptest.NewServer(up), httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	defer other.Close()
	environ := []string{"ECLUSE_MOUNTS__NPM__PUBLIC=" + upstream.URL, "ECLUSE_MOUNTS__PYPI__ENABLED=false", "ECLUSE_DATA_DIR=" + t.TempDir()}
	for _, at := range []string{"127.0.0.1:1", strings.TrimPrefix(other.URL, "http://")} {
		code, stdout, stderr := playWith(t, environ, "explain", "--admin", at, "npm:old")
		if code != 0 || !strings.Contains(stderr, "no gate answers at "+at) || !strings.Contains(stdout, "admitted") {
			t.Errorf("%s: exit code %d, stdout %s, stderr %s", at, code, stdout, stderr)
		}
	}
}
