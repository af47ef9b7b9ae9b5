package app

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/admin"
)

func (w *world) explain(target string) (int, []admin.Explanation) {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://127.0.0.1:4874/api/v1/explain?package="+target, nil))
	var rows []admin.Explanation
	if rec.Code == http.StatusOK {
		if err := json.Unmarshal(rec.Body.Bytes(), &rows); err != nil {
			w.t.Fatal(err)
		}
	}
	return rec.Code, rows
}

// A reload changes the verdicts on what is cached; a configuration with a problem changes nothing.
func TestReload(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.want(w.get("/npm/a"), 200, -1)
		w.app.Reload(w.t.Context(), nil, errors.New("rules.min-age: broken"))
		w.want(w.get("/npm/a"), 200, -1)
		w.app.Reload(w.t.Context(), w.config("rules: {ban: {type: DenyByIdentity, packages: [a]}}"), nil)
		w.want(w.get("/npm/a"), 403, -1)
		w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 403, -1)
		w.sent(1)
		if len(w.lines("reload failed; keeping the current rules")) != 1 || len(w.lines("rules reloaded")) != 1 {
			t.Errorf("log: %s", w.log)
		}
	})
}

// R106: explain asks no public upstream about a first-party name.
func TestExplainFirstParty(t *testing.T) {
	inWorld(t, withPrivate+", firstParty: ['@acme/*']\n", func(w *world) {
		for _, text := range []string{"npm:@acme/secret", "npm:@acme/secret@1.0.0"} {
			rows, err := w.app.Explain(w.t.Context(), text)
			if err != nil || len(rows) != 1 || !rows[0].Admit || rows[0].Rule != "first-party" {
				t.Errorf("%s: %+v %v", text, rows, err)
			}
		}
		w.sent(0)
	})
}
