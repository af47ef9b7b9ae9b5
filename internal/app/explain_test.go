package app

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/admin"
)

func (w *world) explain(target string) (int, []admin.Explanation) {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "/api/v1/explain?package="+target, nil))
	var rows []admin.Explanation
	if rec.Code == http.StatusOK {
		if err := json.Unmarshal(rec.Body.Bytes(), &rows); err != nil {
			w.t.Fatal(err)
		}
	}
	return rec.Code, rows
}

// The explanation is the verdict of the mount itself, with the instant of admission where time decides.
func TestExplain(t *testing.T) {
	inWorld(t, "rules: {ban: {type: DenyByIdentity, packages: ['a@1.0.0']}}", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Publish("a", "2.0.0", longAgo, nil)
		w.public.Publish("a", "3.0.0", time.Now().Add(-day), nil)
		code, rows := w.explain("npm:a")
		if code != 200 || len(rows) != 3 {
			t.Fatalf("%d %+v", code, rows)
		}
		served := w.versions(w.get("/npm/a"))
		for _, r := range rows {
			if _, ok := served[r.Version]; ok != r.Admit {
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
		for target, want := range map[string]int{"npm:a@9.9.9": 404, "npm:b": 404, "a": 400, "gem:a": 400, "npm:": 400, "npm:a@": 400} {
			if code, _ := w.explain(target); code != want {
				t.Errorf("%s: %d, want %d", target, code, want)
			}
		}
	})
}

// A reload changes the verdicts on what is cached; a configuration with a problem changes nothing.
func TestReload(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.want(w.get("/npm/a"), 200, -1)
		w.app.Reload(nil, errors.New("rules.min-age: broken"))
		w.want(w.get("/npm/a"), 200, -1)
		w.app.Reload(w.config("rules: {ban: {type: DenyByIdentity, packages: [a]}}"), nil)
		w.want(w.get("/npm/a"), 403, -1)
		w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 403, -1)
		w.sent(1)
		if len(w.lines("reload failed; keeping the current rules")) != 1 || len(w.lines("rules reloaded")) != 1 {
			t.Errorf("log: %s", w.log)
		}
	})
}

// A dry run says what other rules would change for what is in memory, and changes nothing itself.
func TestPreview(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Publish("a", "2.0.0", longAgo, nil)
		w.want(w.get("/npm/a"), 200, -1)
		post := func(body string) (int, string) {
			rec := httptest.NewRecorder()
			w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/api/v1/preview", strings.NewReader(body)))
			return rec.Code, rec.Body.String()
		}
		rules, err := json.Marshal(w.config("rules: {ban: {type: DenyByIdentity, packages: ['a@1.0.0']}}").Rules)
		if err != nil {
			t.Fatal(err)
		}
		code, body := post(string(rules))
		var rows []admin.Change
		if err := json.Unmarshal([]byte(body), &rows); err != nil || code != 200 {
			t.Fatalf("%d %s", code, body)
		}
		if len(rows) != 1 || rows[0].Version != "1.0.0" || !strings.HasPrefix(rows[0].Before, "admitted by min-age") || !strings.HasPrefix(rows[0].After, "denied by ban") {
			t.Errorf("changes: %+v", rows)
		}
		for _, bad := range []string{"", "{}", `[{"Name":"x","Type":"Nothing"}]`, `[{"Unknown":1}]`} {
			if code, _ := post(bad); code != http.StatusBadRequest {
				t.Errorf("%q: %d", bad, code)
			}
		}
		if len(w.versions(w.get("/npm/a"))) != 2 {
			t.Error("the dry run changed the rules")
		}
		w.sent(1)
	})
}

// R106: explain asks no public upstream about a first-party name.
func TestExplainFirstParty(t *testing.T) {
	inWorld(t, withPrivate+", firstParty: ['@acme/*']\n", func(w *world) {
		for _, text := range []string{"npm:@acme/secret", "npm:@acme/secret@1.0.0"} {
			rows, err := w.server.Explain(w.t.Context(), text)
			if err != nil || len(rows) != 1 || !rows[0].Admit || rows[0].Rule != "first-party" {
				t.Errorf("%s: %+v %v", text, rows, err)
			}
		}
		w.sent(0)
	})
}
