package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ecluse-gate/ecluse/internal/config"
)

// A reload takes over tokens and the help message, and a revoked token is refused from that moment,
// on a connection that was open before as well.
func TestReloadTokensAndHelp(t *testing.T) {
	inWorld(t, "serve: {helpMessage: 'ask old'}", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		reload := func(help string, tokens ...string) {
			t.Helper()
			cfg := w.config("serve: {helpMessage: '" + help + "'}")
			for _, token := range tokens {
				cfg.Auth.Tokens = append(cfg.Auth.Tokens, config.Token{Name: "of " + token, Secret: config.NewSecret(token)})
			}
			w.app.Reload(w.t.Context(), cfg, nil)
		}
		reload("ask new", "tok-a", "tok-b")
		conn, err := w.network.Dial(w.t.Context(), "tcp", gateHost+":80")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		answers := bufio.NewReader(conn)
		ask := func(want int) {
			t.Helper()
			fmt.Fprintf(conn, "GET /npm/a HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer tok-b\r\n\r\n", gateHost)
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			body := make([]byte, resp.ContentLength)
			if _, err := io.ReadFull(answers, body); err != nil || resp.StatusCode != want || (want == 401) != strings.Contains(string(body), "ask new") {
				t.Errorf("%d %.200s %v, want %d", resp.StatusCode, body, err, want)
			}
		}
		ask(200)
		reload("ask new", "tok-a")
		ask(401)
		w.want(w.get("/npm/a", "Authorization", "Bearer tok-a"), 200, -1)
		reload("ask new", "tok-b")
		ask(200)
		w.want(w.get("/npm/a", "Authorization", "Bearer tok-a"), 401, -1)
		if n := len(w.lines("changed settings need a restart; the gate goes on with their old values")); n != 0 {
			t.Errorf("%d lines about a restart", n)
		}
	})
}

// A reload names every other key that differs, and takes none of them over.
func TestReloadNamesWhatNeedsARestart(t *testing.T) {
	inWorld(t, "", func(w *world) {
		cfg := w.config("serve: {hold: 5s, helpMessage: ask}\nlog: {level: debug}\nbudget: {registry.test: {rate: 7}}\nrules: {min-age: {age: 1h}}")
		w.app.Reload(w.t.Context(), cfg, nil)
		want := []any{"serve.hold", "log.level", "budget.registry.test.rate"}
		lines := w.lines("changed settings need a restart; the gate goes on with their old values")
		if len(lines) != 1 || !reflect.DeepEqual(lines[0]["keys"], want) || lines[0]["level"] != "WARN" {
			t.Errorf("%v, want %v", lines, want)
		}
		w.app.Reload(w.t.Context(), w.config(""), nil)
		if n := len(w.lines("changed settings need a restart; the gate goes on with their old values")); n != 1 {
			t.Errorf("%d lines", n)
		}
	})
}

// A reload follows another source of advisories: none at first, then one, another, and none again.
// What looks at the source goes on with the new one, and ends with the gate.
func TestReloadAdvisories(t *testing.T) {
	folder := func(id, version string) string {
		dir := t.TempDir()
		text := strings.NewReplacer("GHSA-test-0001", id, "1.0.0", version).Replace(badAdvisory)
		if err := os.WriteFile(filepath.Join(dir, id+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "advisories: {source: '" + dir + "'}\nrules: {known-bad: {type: DenyIfAdvisory, minCVSS: 7, ecosystems: [npm]}}"
	}
	first, second := folder("GHSA-test-0001", "1.0.0"), folder("GHSA-test-0002", "2.0.0")
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Publish("a", "2.0.0", longAgo, nil)
		ctx, stop := context.WithCancel(w.t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.app.RunAdvisories(ctx)
		}()
		check := func(yaml string, one, two int) {
			t.Helper()
			if yaml != "" {
				w.app.Reload(w.t.Context(), w.config(yaml), nil)
			}
			synctest.Wait()
			w.want(w.get("/npm/a/-/a-1.0.0.tgz"), one, -1)
			w.want(w.get("/npm/a/-/a-2.0.0.tgz"), two, -1)
		}
		check("", 200, 200)
		check(first, 403, 200)
		check(first, 403, 200)
		check(second, 200, 403)
		check("cache: {diskBytes: 0}", 200, 200)
		check(second, 200, 403)
		stop()
		<-ended
		if n := len(w.lines("reload failed; keeping the current rules")); n != 0 {
			t.Errorf("log: %s", w.log)
		}
	})
}

// Advisories that cannot be opened leave all as it was, tokens too.
func TestReloadIsAllOrNothing(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		cfg := w.config("advisories: {source: '" + t.TempDir() + "'}\nrules: {known-bad: {type: DenyIfAdvisory, minCVSS: 7, ecosystems: [npm]}}")
		cfg.Auth.Tokens = []config.Token{{Name: "ann", Secret: config.NewSecret("tok-a")}}
		ended, end := context.WithCancel(w.t.Context())
		end()
		w.app.Reload(ended, cfg, nil)
		w.want(w.get("/npm/a"), 200, -1)
		if n := len(w.lines("reload failed; keeping the current rules")); n != 1 {
			t.Errorf("log: %s", w.log)
		}
	})
}

// A configuration file that was emptied or cut does not open a gate that asks for a token, nor its
// admin listener. Other tokens may come, and a door without one may get one.
func TestReloadDoesNotOpenTheGate(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		reload := func(admin string, tokens ...string) {
			t.Helper()
			cfg := w.config("")
			cfg.AdminToken = config.NewSecret(admin)
			for _, token := range tokens {
				cfg.Auth.Tokens = append(cfg.Auth.Tokens, config.Token{Name: "ci", Secret: config.NewSecret(token)})
			}
			w.app.Reload(w.t.Context(), cfg, nil)
		}
		refused := func(n int) {
			t.Helper()
			lines := w.lines("reload failed; keeping the current rules")
			if len(lines) != n || n > 0 && !strings.Contains(fmt.Sprint(lines[n-1]), "a reload does not open the gate") {
				t.Errorf("%v, want %d", lines, n)
			}
		}
		reload("")
		refused(0)
		w.want(w.get("/npm/a"), 200, -1)
		reload("root", "tok-a")
		reload("root")
		refused(1)
		reload("", "tok-a")
		refused(2)
		reload("", "tok-b")
		refused(3)
		w.want(w.get("/npm/a"), 401, -1)
		w.want(w.get("/npm/a", "Authorization", "Bearer tok-b"), 401, -1)
		reload("root", "tok-b")
		refused(3)
		w.want(w.get("/npm/a", "Authorization", "Bearer tok-b"), 200, -1)
	})
}
