package app

import (
	"net/http"
	"strings"
	"testing"
)

// A mount that is off answers as a path that is unknown, whatever the method, and is not explained;
// the other one serves.
func TestMountOff(t *testing.T) {
	inWorld(t, ", enabled: false\n", func(w *world) {
		w.publishA()
		unknown := w.get("/nowhere/a")
		for _, path := range []string{"/npm/a", "/npm/a/-/a-1.0.0.tgz", "/npm/-/ping"} {
			if a := w.get(path); a.status != http.StatusNotFound || a.body != unknown.body {
				t.Errorf("%s: %d %s, an unknown path has %s", path, a.status, a.body, unknown.body)
			}
		}
		w.want(w.do(http.MethodPut, "/npm/a"), http.StatusNotFound, -1)
		w.want(w.get("/pypi/simple/a/"), http.StatusOK, -1)
		if code, _ := w.explain("npm:a"); code != http.StatusBadRequest {
			t.Errorf("explain: %d", code)
		}
		if _, err := w.app.Explain(t.Context(), "npm:a"); err == nil || !strings.Contains(err.Error(), "mounts.npm is switched off") {
			t.Errorf("explain: %v", err)
		}
		if got := w.app.rules.ecosystems().Names(); len(got) != 1 || got[0] != "pypi" {
			t.Errorf("advisories are read for %v", got)
		}
		w.sent(0)
	})
	inWorld(t, "pypi, enabled: false\n", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.want(w.get("/pypi/simple/tool/"), http.StatusNotFound, -1)
		w.want(w.get("/npm/a"), http.StatusOK, -1)
		if _, err := w.app.Explain(t.Context(), "pypi:tool"); err == nil || !strings.Contains(err.Error(), "mounts.pypi is switched off") {
			t.Errorf("explain: %v", err)
		}
	})
}
