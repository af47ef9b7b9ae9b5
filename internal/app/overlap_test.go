package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/mirror"
)

// adminBody reads a path of the admin listener.
func (w *world) adminBody(path string) string {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://127.0.0.1:4874"+path, nil))
	return rec.Body.String()
}

// overlapMounts has a private registry for both mounts, of which nothing is first-party.
const overlapMounts = `mounts:
  npm: {public: 'http://registry.test/', private: 'http://private.test/', OVERLAP}
  pypi: {public: 'http://index.test/simple/', files: ['http://files.test'], private: 'http://own.test/simple/', OVERLAP}
`

// stockOverlap publishes names on both sides, the public ones with a higher version; what the
// private side has is for callers with a credential.
func stockOverlap(w *world) {
	w.private.Publish("tool", "1.0.0", longAgo, nil)
	w.public.Publish("tool", "99.0.0", longAgo, nil)
	w.public.Publish("a", "1.0.0", longAgo, nil)
	w.pypiOwn.Publish("tool", fakepypi.Wheel("tool", "1.0", fakepypi.UploadedAt(longAgo)))
	w.pypi.Publish("tool", fakepypi.Wheel("tool", "99.0", fakepypi.UploadedAt(longAgo)))
	strangers := func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "" {
			rw.WriteHeader(http.StatusNotFound)
			return true
		}
		return false
	}
	w.private.Answer(strangers)
	w.pypiOwn.Index.Answer(strangers)
}

// R106: with merge, the versions of both sides are served as before, and a name on both sides is
// counted, shown on the page and in the API, and named once in the log.
func TestOverlapMerge(t *testing.T) {
	inWorld(t, strings.ReplaceAll(overlapMounts, "OVERLAP", "overlap: merge"), func(w *world) {
		stockOverlap(w)
		for range 3 {
			if a := w.get("/npm/tool", "Authorization", bearer(callerToken)); len(w.versions(a)) != 2 {
				t.Errorf("npm: %s", a.body)
			}
			if a := w.get("/pypi/simple/tool/", "Authorization", bearer(callerToken)); !strings.Contains(a.body, "tool-1.0-") || !strings.Contains(a.body, "tool-99.0-") {
				t.Errorf("PyPI: %s", a.body)
			}
			w.want(w.get("/npm/a", "Authorization", bearer(callerToken)), 200, -1)
		}
		lines := w.lines("the private and the public registry both have this name, and versions of both are served; if it is yours, list it in firstParty or set overlap: shadow")
		if len(lines) != 2 || lines[0]["package"] != "tool" || lines[0]["level"] != "WARN" {
			t.Errorf("%v", lines)
		}
		if w.metric(`ecluse_overlap_names{ecosystem="npm",overlap="merge"}`) != 1 || w.metric(`ecluse_overlap_names{ecosystem="pypi",overlap="merge"}`) != 1 {
			t.Error("names are not counted")
		}
		if page := w.adminBody("/"); !strings.Contains(page, "<td>tool</td><td>served beside the private ones</td>") {
			t.Errorf("%s", page)
		}
		if api := w.adminBody("/api/v1/overlaps"); strings.Count(api, `"package": "tool"`) != 2 || strings.Contains(api, `"a"`) || strings.Contains(api, "true") {
			t.Errorf("%s", api)
		}
	})
}

// R106: with shadow, a name that the private side was seen to have is never looked for on the
// public side again: not for callers who are told 404 there, not while the private side fails, not
// by file, explain or mirror, and not after a restart. Others are served as before.
func TestOverlapShadow(t *testing.T) {
	for _, more := range []string{"overlap: shadow", "overlap: shadow, privateFailure: degrade"} {
		yaml := strings.ReplaceAll(overlapMounts, "OVERLAP", more)
		inWorld(t, yaml, func(w *world) {
			stockOverlap(w)
			asked := func(what string) {
				t.Helper()
				for _, s := range w.public.Seen() {
					if strings.Contains(s.Path, "tool") {
						t.Errorf("%s: the public registry was asked for %s", what, s.Path)
					}
				}
				if n := w.pypi.Index.Count() + w.pypi.Files.Count(); n != 0 {
					t.Errorf("%s: the public index was asked %d times", what, n)
				}
			}
			member := []string{"Authorization", bearer(callerToken)}
			if a := w.get("/npm/tool", member...); len(w.versions(a)) != 1 || a.status != 200 {
				t.Errorf("npm: %s", a.body)
			}
			if a := w.get("/pypi/files/tool/tool-99.0-py3-none-any.whl", member...); a.status != 404 {
				t.Errorf("the public file of a private project: %d", a.status)
			}
			if a := w.get("/pypi/simple/tool/", member...); !strings.Contains(a.body, "tool-1.0-") || strings.Contains(a.body, "tool-99.0-") {
				t.Errorf("PyPI: %s", a.body)
			}
			asked("a member")
			strangers := func(what string) {
				t.Helper()
				for _, path := range []string{
					"/npm/tool", "/npm/tool/99.0.0", "/npm/tool/-/tool-99.0.0.tgz", "/pypi/simple/tool/", "/pypi/files/tool/tool-99.0-py3-none-any.whl",
					"/pypi/files/tool/tool-99.0-py3-none-any.whl.metadata",
				} {
					if a := w.get(path); a.status != 404 {
						t.Errorf("%s: %s for a stranger: %d %.100s", what, path, a.status, a.body)
					}
				}
				for _, target := range []string{"npm:tool", "npm:tool@99.0.0", "pypi:tool"} {
					if _, rows := w.explain(target); len(rows) != 1 || rows[0].Rule != "overlap" {
						t.Errorf("%s: explain %s: %+v", what, target, rows)
					}
				}
				if jobs, err := w.app.Files(w.t.Context(), "npm", "tool", "99.0.0"); err == nil {
					t.Errorf("%s: jobs %v", what, jobs)
				}
				asked(what)
			}
			strangers("once seen")
			w.restart(yaml)
			strangers("after a restart")
			w.want(w.get("/npm/a"), 200, -1)
			w.private.Always(503)
			w.want(w.get("/npm/tool"), 503, 1)
			asked("while the private registry fails")
			// which does not concern a name that it is not asked for
			w.public.Always(429, "Retry-After", "600")
			w.get("/npm/other", member...)
			w.private.Answer(nil)
			w.get("/npm/other", member...)
			w.private.Always(503)
			w.want(w.get("/npm/tool"), 503, 1)
			w.want(w.get("/npm/tool/-/tool-1.0.0.tgz"), 503, 1)
			asked("while the public registry cools")
			if page := w.adminBody("/"); !strings.Contains(page, "<td>tool</td><td>hidden</td>") || w.metric(`ecluse_overlap_names{ecosystem="npm",overlap="shadow"}`) != 1 {
				t.Errorf("%s", page)
			}
			if n := len(w.lines("the private registry has this name; its public namesake is hidden from now on")); n != 2 {
				t.Errorf("%d lines", n)
			}
		})
	}
}

// R106: shadow hides no name of which the private registry has copies alone that the mirror made,
// also after a restart, until a version of somebody else appears there.
func TestShadowSparesTheMirror(t *testing.T) {
	const yaml = "mounts: {npm: {public: 'http://registry.test/', private: 'http://house.test/', overlap: shadow, mirror: {url: 'http://house.test/'}}}\n"
	inWorld(t, yaml, func(w *world) {
		h := newHouse()
		w.serve(houseHost+":80", h)
		w.public.Publish("left-pad", "1.0.0", longAgo, nil)
		w.public.Publish("left-pad", "1.1.0", longAgo, nil)
		if o := w.worker().Do(w.t.Context(), leftPad("1.0.0")); o.Result != mirror.Published {
			t.Fatalf("%+v", o)
		}
		for range 2 {
			if a := w.get("/npm/left-pad"); len(w.versions(a)) != 2 {
				t.Errorf("%s", a.body)
			}
			w.want(w.get("/npm/left-pad/-/left-pad-1.1.0.tgz"), 200, -1)
			if api := w.adminBody("/api/v1/overlaps"); strings.TrimSpace(api) != "[]" {
				t.Errorf("%s", api)
			}
			w.restart(yaml)
		}
		h.mu.Lock()
		h.versions["left-pad"]["9.0.0"] = json.RawMessage(strings.ReplaceAll(string(h.versions["left-pad"]["1.0.0"]), "1.0.0", "9.0.0"))
		h.mu.Unlock()
		if a := w.get("/npm/left-pad"); len(w.versions(a)) != 2 || !strings.Contains(a.body, "9.0.0") || strings.Contains(a.body, "1.1.0") {
			t.Errorf("%s", a.body)
		}
		w.want(w.get("/npm/left-pad/-/left-pad-1.1.0.tgz"), 404, -1)
		if o := w.worker().Do(w.t.Context(), leftPad("1.1.0")); o.Result != mirror.Dropped {
			t.Errorf("the mirror copies what is hidden: %+v", o)
		}
	})
}
