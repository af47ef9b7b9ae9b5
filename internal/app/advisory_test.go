package app

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/advisory"
)

const badAdvisory = `{"id":"GHSA-test-0001","modified":"1999-01-01T00:00:00Z","affected":[{"package":{"ecosystem":"npm","name":"a"},"versions":["1.0.0"]}],
"severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]}`

// Advisories reach the rules: without data the version waits, with data it is denied in listing and
// file alike, and a reload of the rules forgets no data.
func TestAdvisoriesReachTheRules(t *testing.T) {
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "GHSA-test-0001.json"), []byte(badAdvisory), 0o600); err != nil {
		t.Fatal(err)
	}
	yaml := "advisories: {source: '" + source + "'}\nrules: {known-bad: {type: DenyIfAdvisory, minCVSS: 7, ecosystems: [npm]}}"
	w := newWorld(t, yaml)
	w.public.Publish("a", "1.0.0", longAgo, nil)
	w.public.Publish("a", "2.0.0", longAgo, nil)
	w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 503, 1) // nothing is loaded: it will pass
	if err := w.app.rules.advisories().Refresh(t.Context(), "npm"); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if vs := w.versions(w.get("/npm/a")); len(vs) != 1 || vs["2.0.0"] == nil {
			t.Errorf("listing: %v", vs)
		}
		a := w.get("/npm/a/-/a-1.0.0.tgz")
		w.want(a, 403, -1)
		if !strings.Contains(a.body, "known-bad") || !strings.Contains(a.body, "GHSA-test-0001") {
			t.Errorf("the denial does not explain itself: %s", a.body)
		}
		w.want(w.get("/npm/a/-/a-2.0.0.tgz"), 200, -1)
	}
	check()
	w.app.Reload(w.t.Context(), w.config(yaml), nil)
	check()
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:4874/api/v1/advisories", nil))
	if !strings.Contains(rec.Body.String(), `"records": 1`) {
		t.Errorf("status: %s", rec.Body)
	}
	w.restart(yaml) // what the last process read is in force at once, and its folder is free
	check()
	more := strings.NewReplacer("0001", "0002", "1.0.0", "2.0.0").Replace(badAdvisory)
	if err := os.WriteFile(filepath.Join(source, "GHSA-test-0002.json"), []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.app.rules.advisories().Refresh(t.Context(), "npm"); err != nil {
		t.Error(err)
	}
	w.want(w.get("/npm/a/-/a-2.0.0.tgz"), 403, -1)
	w.app.Close()
}

// Every mount's export is read whatever became of the others, what failed is logged, and an export
// that was read is asked for again with its validator.
func TestReadAdvisories(t *testing.T) {
	const yaml = "advisories: {source: 'http://registry.test:80/osv/{ecosystem}.zip'}\nrules: {known-bad: {type: DenyIfAdvisory, minCVSS: 7}}"
	inWorld(t, yaml, func(w *world) {
		var export bytes.Buffer
		zw := zip.NewWriter(&export)
		file, err := zw.Create("GHSA-test-0001.json")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(file, badAdvisory)
		_ = zw.Close()
		w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path != "/osv/npm.zip":
				rw.WriteHeader(http.StatusForbidden)
			case r.Header.Get("If-None-Match") == `"1"`:
				rw.WriteHeader(http.StatusNotModified)
			default:
				rw.Header().Set("ETag", `"1"`)
				_, _ = rw.Write(export.Bytes())
			}
			return true
		})
		for n := range 2 {
			err := w.app.ReadAdvisories(w.t.Context())
			if err == nil || !strings.Contains(err.Error(), "403") {
				t.Errorf("look %d: %v", n, err)
			}
			failed := w.lines("advisory refresh failed; keeping the last good data")
			if len(failed) != n+1 || failed[n]["ecosystem"] != "pypi" || failed[n]["level"] != "WARN" {
				t.Errorf("look %d: log %v", n, failed)
			}
		}
		w.sent(4)
		if got := w.public.Seen()[2].Header.Get("If-None-Match"); got != `"1"` {
			t.Errorf("the validator was not sent: %q", got)
		}
		w.app.Close()
		w.public.Always(http.StatusForbidden)
		w.dataDir = t.TempDir()
		w.start(yaml)
		if err := w.app.ReadAdvisories(w.t.Context()); strings.Count(fmt.Sprint(err), "403") != 2 {
			t.Errorf("two that fail: %v", err)
		}
		w.app.Close()
	})
}

// A pause that the source asks for is kept as it was judged at its receipt; an answer that asks for
// none is an ordinary failure.
func TestPauseOfTheAdvisorySource(t *testing.T) {
	for _, c := range []struct {
		status int
		header []string
		wait   time.Duration // -1: no pause
	}{
		{429, []string{"Retry-After", "7200"}, 2 * time.Hour}, // longer than any cooldown
		{429, []string{"Retry-After", "Sat, 01 Jan 2000 00:10:00 GMT"}, 10 * time.Minute},
		{429, []string{"Retry-After", "soon"}, 0},
		{429, nil, 0},
		{503, []string{"Retry-After", "90"}, 90 * time.Second},
		{503, nil, -1},
		{500, []string{"Retry-After", "90"}, -1},
	} {
		yaml := "advisories: {source: 'http://registry.test:80/osv/all.zip'}\nrules: {known-bad: {type: DenyIfAdvisory, minCVSS: 7, ecosystems: [npm]}}"
		inWorld(t, yaml, func(w *world) {
			w.public.Always(c.status, c.header...)
			err := w.app.rules.advisories().Refresh(w.t.Context(), "npm")
			pause, asked := errors.AsType[*advisory.Throttled](err)
			if asked != (c.wait >= 0) || asked && pause.Wait != c.wait || err == nil {
				t.Errorf("%d %q: %v", c.status, c.header, err)
			}
			w.app.Close()
		})
	}
}
