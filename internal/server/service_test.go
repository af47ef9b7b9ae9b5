package server

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/edge"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// heard records what arrives at the public registry, and lets it answer one path.
func (w *world) heard(path, answer string) *[]string {
	var seen []string
	w.Public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		if r.Header.Get("Authorization") != "" {
			w.T.Errorf("the public registry was sent a credential: %v", r.Header)
		}
		if r.URL.EscapedPath() != path {
			return false
		}
		_, _ = io.WriteString(rw, answer)
		return true
	})
	return &seen
}

func wantSeen(t *testing.T, seen *[]string, want ...string) {
	t.Helper()
	if fmt.Sprintf("%q", *seen) != fmt.Sprintf("%q", want) && len(*seen)+len(want) > 0 {
		t.Errorf("the public registry heard %q, want %q", *seen, want)
	}
	*seen = nil
}

// rw-013: the dist-tags are those of the served view.
func TestTagsOfTheServedView(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.Public.Publish("dt", "1.0.0", longAgo, nil)
		w.Public.Publish("dt", "2.0.0", time.Now(), nil) // too young
		for _, path := range []string{"/npm/-/package/dt/dist-tags", "/npm/-/package/dt/dist-tags/"} {
			a := w.Get(path, "Accept", "application/vnd.npm.install-v1+json")
			if a.Status != 200 || a.Body != `{"latest":"1.0.0"}` || a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %d %s %v", path, a.Status, a.Body, a.Header)
			}
		}
		w.Want(w.Get("/npm/-/package/absent/dist-tags"), 404, -1)
		w.Public.Publish("young", "1.0.0", time.Now(), nil)
		w.Want(w.Get("/npm/-/package/young/dist-tags"), 403, -1)
		w.Want(w.Get("/npm/-/package/@acme%2fcore/dist-tags"), 404, -1)
		w.Public.Always(http.StatusTooManyRequests, "Retry-After", "60")
		w.Want(w.Get("/npm/-/package/other/dist-tags"), 503, 60)
		w.Want(w.Get("/npm/-/package/absent/dist-tags"), 503, 60)
	})
}

// rw-014, R106: keys and attestations are the upstream's, under its cooldown; nothing is asked
// about a first-party name.
func TestKeysAndAttestations(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		seen := w.heard("/-/npm/v1/keys", `{"keys":[]}`)
		if a := w.Get("/npm/-/npm/v1/keys", "Authorization", "Bearer mine"); a.Status != 200 || a.Body != `{"keys":[]}` {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		wantSeen(t, seen, "GET /-/npm/v1/keys")
		seen = w.heard("/-/npm/v1/attestations/@pub%2fa@1.0.0", `{"attestations":[]}`)
		for _, path := range []string{"@pub%2fa@1.0.0", "@pub/a@1.0.0"} {
			if a := w.Get("/npm/-/npm/v1/attestations/" + path); a.Status != 200 || a.Body != `{"attestations":[]}` {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		}
		wantSeen(t, seen, "GET /-/npm/v1/attestations/@pub%2fa@1.0.0", "GET /-/npm/v1/attestations/@pub%2fa@1.0.0")
		w.Want(w.Get("/npm/-/npm/v1/attestations/@acme%2fcore@1.0.0"), 404, -1)
		wantSeen(t, seen)
		w.Want(w.Get("/npm/-/npm/v1/keys"), 404, -1)
		w.Want(w.Do(http.MethodPost, "/npm/-/npm/v1/keys", "{}"), 405, -1)
		w.Public.Always(http.StatusBadGateway)
		w.Want(w.Get("/npm/-/npm/v1/keys"), 503, 1)
		w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			_, _ = rw.Write(make([]byte, 8<<20+1))
			return true
		})
		w.Want(w.Get("/npm/-/npm/v1/keys"), 502, -1)
		w.Public.Always(http.StatusTooManyRequests, "Retry-After", "60")
		w.Want(w.Get("/npm/-/npm/v1/keys"), 503, 60)
		n := w.Public.Count()
		w.Want(w.Get("/npm/-/npm/v1/keys"), 503, 60)
		w.Want(w.Get("/npm/-/v1/search?text=a"), 503, 60)
		w.Want(w.Do(http.MethodPost, "/npm/-/npm/v1/security/advisories/bulk", `{"a":["1.0.0"]}`), 503, 60)
		if w.Public.Count() != n {
			t.Errorf("%d requests during the cooldown", w.Public.Count()-n)
		}
	})
}

// The addresses of attestations lead through the gate, and only they and the tarball's are changed.
func TestAttestationsLeadThroughTheGate(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		proof := map[string]any{"url": "http://registry.test/-/npm/v1/attestations/@pub%2fa@1.0.0", "provenance": map[string]any{"url": "x"}}
		tarball := "http://registry.test/@pub/a/-/a-1.0.0.tgz"
		const gate = "http://gate.test/npm"
		for _, dist := range []map[string]any{
			// JSON sorts: attestations stand before the tarball here
			{"tarball": tarball, "integrity": fakenpm.Integrity(fakenpm.File("@pub/a", "1.0.0")), "attestations": proof},
		} {
			w.Public.Publish("@pub/a", "1.0.0", longAgo, map[string]any{"dist": dist})
			for _, accept := range []string{"application/json", "application/vnd.npm.install-v1+json"} {
				a := w.Get("/npm/@pub%2fa", "Accept", accept)
				if !strings.Contains(a.Body, `"url":"`+gate+`/-/npm/v1/attestations/@pub%2fa@1.0.0"`) || !strings.Contains(a.Body, `"tarball":"`+gate+`/@pub/a/-/a-1.0.0.tgz"`) ||
					strings.Contains(a.Body, "registry.test") || !strings.Contains(a.Body, `"provenance":{"url":"x"}`) {
					t.Errorf("%s: %s", accept, a.Body)
				}
			}
			if a := w.Get("/npm/@pub%2fa/1.0.0"); !strings.Contains(a.Body, `"url":"`+gate+`/-/npm/v1/attestations/@pub%2fa@1.0.0"`) {
				t.Error(a.Body)
			}
		}
		w.Public.SetDocument("@pub/b", []byte(`{"name":"@pub/b","versions":{"1.0.0":{"name":"@pub/b","version":"1.0.0","dist":{"tarball":"`+tarball+`","integrity":"`+
			fakenpm.Integrity([]byte("x"))+`","attestations":{"a":1,"url":"http://registry.test/b"}}}},"time":{"1.0.0":"1999-01-01T00:00:00Z"}}`))
		if a := w.Get("/npm/@pub%2fb"); !strings.Contains(a.Body, `"a":1,"url":"`+gate+`/-/npm/v1/attestations/@pub%2fb@1.0.0"}`) || strings.Contains(a.Body, "registry.test") {
			t.Error(a.Body)
		}
	})
}

// PEP 740: the provenance of a file is asked for where the index says that it is.
func TestProvenance(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		file := fakepypi.Wheel("a", "1.0", fakepypi.UploadedAt(longAgo))
		file.Provenance = "http://index.test/integrity/a/1.0/" + file.Name + "/provenance"
		elsewhere := fakepypi.Wheel("a", "2.0", fakepypi.UploadedAt(longAgo))
		elsewhere.Provenance = "http://other.test/p"
		plain := fakepypi.Wheel("a", "3.0", fakepypi.UploadedAt(longAgo))
		w.Index.Publish("a", file, elsewhere, plain)
		w.Index.Index.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.URL.EscapedPath() != "/integrity/a/1.0/"+file.Name+"/provenance" {
				return false
			}
			_, _ = io.WriteString(rw, `{"version":1}`)
			return true
		})
		at := "/pypi/files/a/" + file.Name + ".provenance"
		if a := w.Get("/pypi/simple/a/"); !strings.Contains(a.Body, `data-provenance="http://gate.test`+at+`"`) || strings.Contains(a.Body, "index.test") {
			t.Error(a.Body)
		}
		if a := w.Get("/pypi/simple/a/", "Accept", "application/vnd.pypi.simple.v1+json"); !strings.Contains(a.Body, `"provenance":"http://gate.test`+at+`"`) || strings.Contains(a.Body, "index.test") {
			t.Error(a.Body)
		}
		if a := w.Get(at); a.Status != 200 || a.Body != `{"version":1}` || a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		for _, path := range []string{elsewhere.Name + ".provenance", plain.Name + ".provenance", file.Name + ".metadata.provenance", "a-9.0-py3-none-any.whl.provenance"} {
			w.Want(w.Get("/pypi/files/a/"+path), 404, -1)
		}
		w.Index.Publish("acme-tool", fakepypi.Wheel("acme-tool", "1.0", fakepypi.UploadedAt(longAgo)))
		w.Want(w.Get("/pypi/files/acme-tool/acme_tool-1.0-py3-none-any.whl.provenance"), 404, -1)
		for _, s := range w.Index.Index.Seen() {
			if strings.Contains(s.Path, "acme") {
				t.Errorf("the public index was asked for %s", s.Path)
			}
		}
	})
}

// R106: a search leaves without first-party names, and comes back without what is denied.
func TestSearch(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		seen := w.heard("/-/v1/search", `{"objects":[{"package":{"name":"old","version":"1.0.0","date":"1999-01-01T00:00:00.000Z"}},
			{"package":{"name":"young","version":"1.0.0","date":"2000-01-01T00:00:00.000Z"}},{"package":{"name":"@acme/core","version":"1.0.0","date":"1999-01-01T00:00:00.000Z"}},
			{"package":{"name":"undated","version":"1.0.0"}}],"total":4,"time":"now"}`)
		a := w.Get("/npm/-/v1/search?text=core&size=20&x=y")
		if a.Status != 200 || !strings.Contains(a.Body, `"old"`) || !strings.Contains(a.Body, `"young"`) || strings.Contains(a.Body, "acme") ||
			strings.Contains(a.Body, "undated") || !strings.Contains(a.Body, `"total":2`) {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		wantSeen(t, seen, "GET /-/v1/search?size=20&text=core")
		for _, text := range []string{"@acme/core", "@acme", "scope:acme", "left+%40acme%2Fcore"} {
			if a := w.Get("/npm/-/v1/search?text=" + text); a.Status != 403 || !strings.Contains(a.Body, "private name") {
				t.Errorf("%s: %d %s", text, a.Status, a.Body)
			}
		}
		wantSeen(t, seen)
		w.heard("/-/v1/search", `[]`)
		w.Want(w.Get("/npm/-/v1/search?text=a"), 502, -1)
	})
}

const bulkPath = "/npm/-/npm/v1/security/advisories/bulk"

func gzipped(text string) string {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	_, _ = zw.Write([]byte(text))
	_ = zw.Close()
	return buf.String()
}

// Without advisories of its own the gate asks the public registry, which hears of no first-party
// name (R106).
func TestAuditIsRelayed(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		const answer = `{"a":[{"id":1,"url":"u","title":"t","severity":"low","vulnerable_versions":"<2.0.0"}]}`
		seen := w.heard("/-/npm/v1/security/advisories/bulk", answer)
		if a := w.Do(http.MethodPost, bulkPath, gzipped(`{"a":["1.0.0"],"@acme/core":["1.2.3"]}`), "Content-Encoding", "gzip", "Authorization", "Bearer mine"); a.Status != 200 || a.Body != answer {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		wantSeen(t, seen, `POST /-/npm/v1/security/advisories/bulk {"a":["1.0.0"]}`)
		if a := w.Do(http.MethodPost, bulkPath, `{"@acme/core":["1.2.3"]}`); a.Status != 200 || a.Body != `{}` {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		wantSeen(t, seen)
		a := w.Do(http.MethodPost, "/npm/-/npm/v1/security/audits/quick", `{"dependencies":{"@acme/core":{"version":"1.0.0","dependencies":{"a":{"version":"1.0.0"}}}}}`)
		if a.Status != 200 || !strings.Contains(a.Body, `"paths":["@acme/core\u003ea"]`) || !strings.Contains(a.Body, `"low":1`) {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		wantSeen(t, seen, `POST /-/npm/v1/security/advisories/bulk {"a":["1.0.0"]}`)
		for _, c := range []struct {
			body, encoding string
			status         int
		}{
			{`[]`, "", 400},
			{`{"a":["1.0.0"]}`, "gzip", 400},
			{gzipped(`{"a":["1.0.0"]}`)[:20], "gzip", 400},
			{`{}`, "br", 400},
			{strings.Repeat(" ", 8<<20+1), "", 413},
			{gzipped(strings.Repeat(" ", 8<<20+1)), "gzip", 413},
			{strings.Repeat(" ", 8<<20-2) + `{}`, "", 200},
		} {
			w.Want(w.Do(http.MethodPost, bulkPath, c.body, "Content-Encoding", c.encoding), c.status, -1)
		}
		w.Want(w.Get(bulkPath), 405, -1)
		time.Sleep(time.Second) // until the server has closed the connections of what was too large
		wantSeen(t, seen)
		// a question goes where it is sent, or nowhere
		w.Public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/elsewhere" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s %q", r.Method, r.URL, r.Header)
			}
			http.Redirect(rw, r, "/elsewhere", http.StatusSeeOther)
			return true
		})
		w.Want(w.Do(http.MethodPost, bulkPath, `{"a":["1.0.0"]}`), 502, -1)
		w.heard("/-/npm/v1/security/advisories/bulk", `[]`)
		w.Want(w.Do(http.MethodPost, bulkPath, `{"a":["1.0.0"]}`), 502, -1)
	})
}

// known is advisory data: a is affected, broken cannot be read.
type known struct{ loaded bool }

func (k known) Loaded(string) bool { return k.loaded }

func (known) Lookup(registry.Package, string) ([]registry.Advisory, error) { return nil, nil }

func (known) Findings(p registry.Package, _ []string) ([]registry.Finding, error) {
	switch p.Name {
	case "broken":
		return nil, fmt.Errorf("broken")
	case "a", "@acme/core":
		return []registry.Finding{{Advisory: registry.Advisory{ID: "GHSA-1", Scored: true, Score: 9.8}, Affected: []registry.Interval{{High: "2.0.0"}}}}, nil
	}
	return nil, nil
}

// With a source of advisories nobody is asked. What is said of the name of a first-party package is
// about somebody else's.
func TestAuditFromOwnData(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		seen := w.heard("", "")
		w.NPM.SetPolicy(w.NPM.Rules().WithAdvisories(known{loaded: true}))
		a := w.Do(http.MethodPost, bulkPath, `{"a":["1.0.0"],"@acme/core":["1.0.0"],"b":["1.0.0"]}`)
		if a.Status != 200 || !strings.HasPrefix(a.Body, `{"a":[{`) || !strings.Contains(a.Body, `"vulnerable_versions":"\u003c2.0.0"`) ||
			strings.Contains(a.Body, "acme") || !strings.Contains(a.Body, `"severity":"critical"`) {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		w.Want(w.Do(http.MethodPost, bulkPath, `{"broken":["1.0.0"]}`), 503, 30)
		w.NPM.SetPolicy(w.NPM.Rules().WithAdvisories(known{}))
		w.Want(w.Do(http.MethodPost, bulkPath, `{"a":["1.0.0"]}`), 503, 30)
		wantSeen(t, seen)
	})
}

// What takes something back or changes it is relayed for first-party names, and else refused with
// 405: npm takes 404 for "already gone", and repeats what ends with 5xx.
func TestChanges(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		var target []string
		w.Target = func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			target = append(target, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)+" "+r.Header.Get("Authorization")))
			rw.WriteHeader(http.StatusTeapot)
		}
		for _, c := range []struct{ method, path, body, want string }{
			{"DELETE", "/@acme%2fcore/-rev/1-a", "", "DELETE /@acme%2fcore/-rev/1-a  Bearer mine"},
			{"PUT", "/@acme/core/-rev/1-a", "{}", "PUT /@acme%2fcore/-rev/1-a {} Bearer mine"},
			{"DELETE", "/@acme/core/-/core-1.0.0.tgz/-rev/1-a", "", "DELETE /@acme/core/-/core-1.0.0.tgz/-rev/1-a  Bearer mine"},
			{"PUT", "/-/package/@acme%2fcore/dist-tags/next", `"1.0.0"`, `PUT /-/package/@acme%2fcore/dist-tags/next "1.0.0" Bearer mine`},
			{"GET", "/-/package/@acme%2fcore/collaborators?format=cli", "", "GET /-/package/@acme%2fcore/collaborators?format=cli  Bearer mine"},
			{"GET", "/-/whoami", "", "GET /-/whoami  Bearer mine"},
		} {
			a := w.Do(c.method, "/npm"+c.path, c.body, "Authorization", "Bearer mine")
			if a.Status != http.StatusTeapot || fmt.Sprintf("%q", target) != fmt.Sprintf("%q", []string{c.want}) {
				t.Errorf("%s %s: %d %s; the target heard %q", c.method, c.path, a.Status, a.Body, target)
			}
			target = nil
		}
		w.Want(w.Do("DELETE", "/npm/@acme%2fcore/-rev/1-a", ""), 401, -1)
		seen := w.heard("", "")
		for _, c := range [][2]string{
			{"DELETE", "/left/-rev/1-a"},
			{"PUT", "/left/-rev/undefined"},
			{"DELETE", "/left/-/left-1.0.0.tgz/-rev/1"},
			{"DELETE", "/left"},
			{"DELETE", "/@acme%2fcore"},
			{"PUT", "/-/package/left/dist-tags/next"},
			{"POST", "/-/package/left/access"},
			{"GET", "/-/package/left/collaborators"},
			{"PUT", "/-/user/org.couchdb.user:ann"},
			{"POST", "/-/v1/login"},
			{"GET", "/-/npm/v1/tokens"},
			{"POST", "/-/npm/v1/hooks/hook"},
			{"DELETE", "/-/user/token/x"},
			{"GET", "/-/npm/v1/user"},
			{"PUT", "/a/b/c/d"},
			{"DELETE", "/..%2fb"},
			{"POST", "/-/whoami"},
		} {
			a := w.Do(c[0], "/npm"+c[1], "", "Authorization", "Bearer mine")
			_, allows := a.Header["Allow"]
			if a.Status != 405 || !allows || !strings.Contains(a.Body, "not") {
				t.Errorf("%s: %d %s %v", c, a.Status, a.Body, a.Header)
			}
		}
		w.Want(w.Get("/npm/a/b/c/d"), 404, -1)
		if len(target) > 0 {
			t.Errorf("the target heard %q", target)
		}
		wantSeen(t, seen)
	})
}

// Behind tokens of the gate's, its holder's name is the answer, and a reader changes nothing.
func TestCallers(t *testing.T) {
	tokens := []config.Token{{Name: "ci", Secret: config.NewSecret("one")}, {Name: "reader", Secret: config.NewSecret("two"), ReadOnly: true}}
	inWorld(t, Options{Access: edge.Access{Tokens: tokens}}, func(w *world) {
		w.Target = func(http.ResponseWriter, *http.Request) { t.Error("the target was asked") }
		if a := w.Get("/npm/-/whoami", "Authorization", "Bearer one"); a.Status != 200 || a.Body != `{"username":"ci"}` {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		w.Want(w.Get("/npm/-/whoami"), 401, -1)
		if a := w.Do(http.MethodDelete, "/npm/@acme%2fcore/-rev/1", "", "Authorization", "Bearer two"); a.Status != 403 || !strings.Contains(a.Body, "may read and not publish") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
}
