package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const badAdvisory = `{"id":"GHSA-test-0001","modified":"1999-01-01T00:00:00Z","affected":[{"package":{"ecosystem":"npm","name":"a"},"versions":["1.0.0"]}],
"severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]}`

// Advisories reach the rules: without data the version waits, with data it is denied in listing and file alike, and a reload of the rules
// forgets no data.
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
	if err := w.server.rules.advisories.Refresh(t.Context(), "npm"); err != nil {
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
	w.server.Reload(w.config(yaml), nil)
	check()
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/advisories", nil))
	if !strings.Contains(rec.Body.String(), `"records": 1`) {
		t.Errorf("status: %s", rec.Body)
	}
	w.server.Close()
}
