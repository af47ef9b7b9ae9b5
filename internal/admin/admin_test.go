package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/admin"
	"github.com/ecluse-gate/ecluse/internal/advisory"
	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/gate/gatetest"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/server"
)

// world is an admin API beside a server of the same gates, in virtual time.
type world struct {
	*gatetest.World
	api   http.Handler
	admin *admin.Admin
}

const day = 24 * time.Hour

var longAgo = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // the virtual clock starts in 2000

// inWorld runs a test with an admin API of the options given; gates and what they report to are
// added.
func inWorld(t *testing.T, o admin.Options, test func(*world)) {
	t.Helper()
	gatetest.Run(t, gatetest.Options{}, func(w *gatetest.World) {
		o.Mounts, o.Rules, o.Documents, o.Table, o.Metrics, o.Logger = w.Mounts, w.NPM.Rules, w.Documents, w.Table, w.Metrics, w.Logger
		w.Serve(server.New(server.Options{Mounts: w.Mounts, Metrics: w.Metrics, Logger: w.Logger, Tracer: w.Tracer}).Handler())
		if o.Credential == nil {
			o.Credential = func(string) string { return "" }
		}
		a := admin.New(o)
		test(&world{w, a.Handler(), a})
	})
}

// ask asks the admin API, and reads the answer of 200 into into.
func (w *world) ask(method, path, body string, into any) *httptest.ResponseRecorder {
	w.T.Helper()
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, httptest.NewRequestWithContext(w.T.Context(), method, "http://127.0.0.1:4874"+path, strings.NewReader(body)))
	if rec.Code == http.StatusOK && into != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), into); err != nil {
			w.T.Fatalf("%s: %v: %s", path, err, rec.Body)
		}
	}
	return rec
}

func (w *world) explain(target string) (int, []admin.Explanation) {
	w.T.Helper()
	var rows []admin.Explanation
	return w.ask(http.MethodGet, "/api/v1/explain?package="+target, "", &rows).Code, rows
}

func rules(t *testing.T, specs ...policy.Spec) *policy.Set {
	t.Helper()
	set, err := policy.New(specs, ecosystemtest.All())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

var minAge = policy.Spec{Name: "min-age", Type: policy.AllowIfOlderThan, Age: 7 * day}

func ban(what string) policy.Spec {
	return policy.Spec{Name: "ban", Type: policy.DenyByIdentity, Packages: []string{what}}
}

// The explanation is the verdict of the mount itself, with the instant of admission where time
// decides.
func TestExplain(t *testing.T) {
	inWorld(t, admin.Options{}, func(w *world) {
		w.NPM.SetPolicy(rules(t, minAge, ban("a@1.0.0")))
		w.Public.Publish("a", "1.0.0", longAgo, nil)
		w.Public.Publish("a", "2.0.0", longAgo, nil)
		w.Public.Publish("a", "3.0.0", time.Now().Add(-day), nil)
		code, rows := w.explain("npm:a")
		if code != 200 || len(rows) != 3 {
			t.Fatalf("%d %+v", code, rows)
		}
		var served struct{ Versions map[string]any }
		if err := json.Unmarshal([]byte(w.Get("/npm/a").Body), &served); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if _, ok := served.Versions[r.Version]; ok != r.Admit {
				t.Errorf("%+v, but served: %v", r, ok)
			}
			switch r.Version {
			case "1.0.0":
				if r.Rule != "ban" || r.AdmittedAt != nil {
					t.Errorf("%+v", r)
				}
			case "3.0.0":
				if r.Rule != "min-age" || r.AdmittedAt == nil || *r.AdmittedAt != "2000-01-07T00:00:00Z" {
					t.Errorf("%+v", r)
				}
			}
		}
		if code, rows := w.explain("npm:a@2.0.0"); code != 200 || len(rows) != 1 || !rows[0].Admit {
			t.Errorf("%d %+v", code, rows)
		}
		wheel := fakepypi.Wheel("b", "1.0", fakepypi.UploadedAt(longAgo))
		w.Index.Publish("b", wheel)
		if code, rows := w.explain("pypi:B"); code != 200 || len(rows) != 1 || rows[0].Package != "pypi:b" || rows[0].File != wheel.Name {
			t.Errorf("%d %+v", code, rows)
		}
		for target, want := range map[string]int{
			"npm:a@9.9.9": 404, "npm:b": 404, "a": 400, "gem:a": 400, "npm:": 400, "npm:a@": 400, "pypi:": 400, "pypi:b/c": 400,
		} {
			if code, _ := w.explain(target); code != want {
				t.Errorf("%s: %d, want %d", target, code, want)
			}
		}
		w.Public.Always(http.StatusTooManyRequests, "Retry-After", "30")
		rec := w.ask(http.MethodGet, "/api/v1/explain?package=npm:c", "", nil)
		if rec.Code != 503 || rec.Header().Get("Retry-After") != "30" || !strings.Contains(rec.Header().Get("Cache-Status"), "cooldown") {
			t.Errorf("while cooling: %d %v", rec.Code, rec.Header())
		}
	})
}

// A dry run says what other rules would change for what is in memory, and changes nothing itself.
func TestPreview(t *testing.T) {
	inWorld(t, admin.Options{}, func(w *world) {
		w.Public.Publish("a", "1.0.0", longAgo, nil)
		w.Public.Publish("a", "2.0.0", longAgo, nil)
		w.Want(w.Get("/npm/a"), 200, -1)
		body, err := json.Marshal([]policy.Spec{minAge, ban("a@1.0.0")})
		if err != nil {
			t.Fatal(err)
		}
		var rows []admin.Change
		if code := w.ask(http.MethodPost, "/api/v1/preview", string(body), &rows).Code; code != 200 || len(rows) != 1 {
			t.Fatalf("%d %+v", code, rows)
		}
		if r := rows[0]; r.Version != "1.0.0" || !strings.HasPrefix(r.Before, "admitted by min-age") || !strings.HasPrefix(r.After, "denied by ban") {
			t.Errorf("changes: %+v", rows)
		}
		for _, bad := range []string{"", "{}", `[{"Name":"x","Type":"Nothing"}]`, `[{"Unknown":1}]`, "[" + strings.Repeat(" ", 1<<20) + "]"} {
			if code := w.ask(http.MethodPost, "/api/v1/preview", bad, nil).Code; code != http.StatusBadRequest {
				t.Errorf("%.20q: %d", bad, code)
			}
		}
		if a := w.Get("/npm/a"); !strings.Contains(a.Body, `"1.0.0":{`) {
			t.Errorf("the dry run changed the rules: %s", a.Body)
		}
		if n := w.Public.Count(); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// tc-072: status, page and metrics show what cools, and looking changes nothing.
func TestStatus(t *testing.T) {
	inWorld(t, admin.Options{Version: "v1.2.3"}, func(w *world) {
		look := func() (rows []admin.Authority, page string) {
			w.ask(http.MethodGet, "/api/v1/authorities", "", &rows)
			return rows, w.ask(http.MethodGet, "/", "", nil).Body.String()
		}
		if rows, page := look(); rows == nil || len(rows) != 0 || !strings.Contains(page, "v1.2.3") || !strings.Contains(page, "No public upstream") {
			t.Errorf("%v\n%s", rows, page)
		}
		w.Public.Always(http.StatusTooManyRequests, "Retry-After", "30")
		w.Want(w.Get("/npm/a"), 503, 30)
		w.Want(w.Get("/npm/a"), 503, 30)
		want := admin.Authority{Host: "registry.test", Port: 80, State: "cooling", Remaining: 30, Ceiling: 60, Refused: 1}
		for range 3 {
			rows, page := look()
			if len(rows) != 1 || rows[0] != want {
				t.Errorf("%+v, want %+v", rows, want)
			}
			for _, text := range []string{"registry.test:80", "cooling", ">30<"} {
				if !strings.Contains(page, text) {
					t.Errorf("the page lacks %q:\n%s", text, page)
				}
			}
		}
		rec := w.ask(http.MethodGet, "/", "", nil)
		if !strings.HasPrefix(rec.Header().Get("Content-Security-Policy"), "default-src 'none'") || rec.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("the page's header: %v", rec.Header())
		}
		if body := w.ask(http.MethodGet, "/metrics", "", nil).Body.String(); !strings.Contains(body, `ecluse_cooldown_entries_total{hint="seconds",host="registry.test:80"} 1`) {
			t.Errorf("metrics: %s", body)
		}
		if code := w.ask(http.MethodGet, "/elsewhere", "", nil).Code; code != 404 {
			t.Errorf("elsewhere: %d", code)
		}
		time.Sleep(30 * time.Second)
		look()
		w.Public.Always(http.StatusNotFound)
		w.Want(w.Get("/npm/a"), 404, -1) // it is still this request that probes
	})
}

// The queue is shown when there is one, and its trouble stays in the log.
func TestQueue(t *testing.T) {
	var status mirror.Status
	var enabled bool
	var trouble error
	queue := func(ctx context.Context) (mirror.Status, bool, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the queue may take as long as it likes")
		}
		return status, enabled, trouble
	}
	inWorld(t, admin.Options{Queue: queue}, func(w *world) {
		if got := strings.Join(strings.Fields(w.ask(http.MethodGet, "/api/v1/queue", "", nil).Body.String()), " "); got != `{ "enabled": false }` {
			t.Errorf("without a mirror: %s", got)
		}
		status, enabled = mirror.Status{Store: "sqlite", Dead: 1}, true
		var got admin.Queue
		w.ask(http.MethodGet, "/api/v1/queue", "", &got)
		if !got.Enabled || got.Store != "sqlite" || got.Dead != 1 {
			t.Errorf("%+v", got)
		}
		status.DroppedJobs = []mirror.Entry{{ID: 7, Job: mirror.Job{Ecosystem: "npm", Package: "a", Version: "1.0.0", File: "a-1.0.0.tgz"}, Reason: "denied by <ban>"}}
		if page := w.ask(http.MethodGet, "/", "", nil).Body.String(); !strings.Contains(page, "npm:a@1.0.0 a-1.0.0.tgz") || !strings.Contains(page, "denied by &lt;ban&gt;") {
			t.Errorf("the page lacks the dropped job: %s", page)
		}
		trouble = errors.New("secret detail")
		if page := w.ask(http.MethodGet, "/", "", nil).Body.String(); !strings.Contains(page, "does not answer") || strings.Contains(page, "secret") {
			t.Errorf("in trouble: %s", page)
		}
		if rec := w.ask(http.MethodGet, "/api/v1/queue", "", nil); rec.Code != 503 || strings.Contains(rec.Body.String(), "secret") {
			t.Errorf("in trouble: %d %s", rec.Code, rec.Body)
		}
	})
}

const badAdvisory = `{"id":"GHSA-test-0001","modified":"1999-01-01T00:00:00Z","affected":[{"package":{"ecosystem":"npm","name":"a"},"versions":["1.0.0"]}],
"severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]}`

// The data of each ecosystem is shown with its last trouble, and a dry run judges with it.
func TestAdvisories(t *testing.T) {
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "GHSA-test-0001.json"), []byte(badAdvisory), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := advisory.Open(t.Context(), advisory.Options{Dir: filepath.Join(t.TempDir(), "advisories"), Source: source, Ecosystems: ecosystemtest.All()[:1]})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	inWorld(t, admin.Options{}, func(w *world) {
		if body := w.ask(http.MethodGet, "/api/v1/advisories", "", nil).Body.String(); strings.TrimSpace(body) != "[]" {
			t.Errorf("without a source: %s", body)
		}
	})
	ask := func(want ...string) {
		t.Helper()
		inWorld(t, admin.Options{Advisories: func() *advisory.Store { return store }}, func(w *world) {
			body := w.ask(http.MethodGet, "/api/v1/advisories", "", nil).Body.String()
			for _, text := range want {
				if !strings.Contains(body, text) {
					t.Errorf("%s lacks %s", body, text)
				}
			}
		})
	}
	ask(`"loaded": false`, `"records": 0`)
	if err := store.Refresh(t.Context(), "npm"); err != nil {
		t.Fatal(err)
	}
	ask(`"loaded": true`, `"records": 1`, `"checked": "2`)
	inWorld(t, admin.Options{Advisories: func() *advisory.Store { return store }}, func(w *world) {
		w.Public.Publish("a", "1.0.0", longAgo, nil)
		w.Want(w.Get("/npm/a"), 200, -1)
		body, err := json.Marshal([]policy.Spec{minAge, {Name: "known-bad", Type: policy.DenyIfAdvisory, MinCVSS: 7}})
		if err != nil {
			t.Fatal(err)
		}
		var rows []admin.Change
		w.ask(http.MethodPost, "/api/v1/preview", string(body), &rows)
		if len(rows) != 1 || !strings.HasPrefix(rows[0].After, "denied by known-bad") || !strings.Contains(rows[0].After, "GHSA-test-0001") {
			t.Errorf("changes: %+v", rows)
		}
	})
	if err := os.RemoveAll(source); err != nil {
		t.Fatal(err)
	}
	if err := store.Refresh(t.Context(), "npm"); err == nil {
		t.Fatal("a source that is gone was read")
	}
	ask(`"loaded": true`, `"error":`)
}
