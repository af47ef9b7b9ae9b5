package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

const (
	pypiJSON = "application/vnd.pypi.simple.v1+json"
	wheelA   = "/pypi/files/a/a-1.0-py3-none-any.whl"
)

// publishA publishes a 1.0 as a wheel with its companion, in the world's distant past.
func (w *world) publishA() fakepypi.File {
	f := fakepypi.Wheel("a", "1.0", fakepypi.UploadedAt(longAgo))
	w.pypi.Publish("a", f)
	return f
}

// pypiSent checks how many requests the index and the files host have seen.
func (w *world) pypiSent(index, files int) {
	w.t.Helper()
	if i, f := w.pypi.Index.Count(), w.pypi.Files.Count(); i != index || f != files {
		w.t.Errorf("the index saw %d requests and the files host %d, want %d and %d", i, f, index, files)
	}
}

type projectPage struct {
	Name  string
	Files []struct {
		Filename, URL string
		Hashes        map[string]string
		Yanked        any
		UploadTime    string `json:"upload-time"`
	}
	Versions []string
}

func (w *world) page(a answer) projectPage {
	w.t.Helper()
	var p projectPage
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		w.t.Fatalf("page: %v: %.200s", err, a.body)
	}
	return p
}

func TestPyPIPageFileAndCompanion(t *testing.T) {
	inWorld(t, "", func(w *world) {
		f := w.publishA()
		a := w.get("/pypi/simple/a/", "Accept", pypiJSON)
		w.want(a, 200, -1)
		p := w.page(a)
		if a.header.Get("Content-Type") != pypiJSON || len(p.Files) != 1 || p.Files[0].URL != "http://gate.test"+wheelA {
			t.Errorf("%v %s", a.header, a.body)
		}
		html := w.get("/pypi/simple/a/")
		w.want(html, 200, -1)
		if !strings.HasPrefix(html.header.Get("Content-Type"), "text/html") || !strings.Contains(html.body, "http://gate.test"+wheelA+"#sha256=") {
			t.Errorf("%v %s", html.header, html.body)
		}
		if html.header.Get("ETag") == a.header.Get("ETag") || html.header.Get("Vary") != "Accept, Accept-Encoding" {
			t.Errorf("validators: %v %v", html.header, a.header) // C14
		}
		file := w.get(wheelA)
		w.want(file, 200, -1)
		if file.body != string(f.Content) {
			t.Error("the file is not the upstream's")
		}
		companion := w.get(wheelA + ".metadata")
		w.want(companion, 200, -1)
		if companion.body != string(f.Metadata) {
			t.Errorf("companion = %q", companion.body)
		}
		w.pypiSent(1, 2) // C12, C44: one page for all of it
		for kind, host := range map[string]string{"metadata": indexHost, "artifact": filesHost, "companion": filesHost} {
			if got := w.metric(`ecluse_public_requests_total{host="` + host + `:80",kind="` + kind + `",outcome="success"}`); got != 1 {
				t.Errorf("%s = %v", kind, got)
			}
		}
	})
}

// C21, C46: other spellings are redirected to the one name; statuses as in npm, in plain text.
func TestPyPINamesAndStatuses(t *testing.T) {
	inWorld(t, "serve: {helpMessage: 'Ask #platform'}", func(w *world) {
		w.publishA()
		for path, target := range map[string]string{
			"/pypi/simple/A/": "/pypi/simple/a/", "/pypi/simple/a": "/pypi/simple/a/", "/pypi/simple": "/pypi/simple/",
			"/pypi/simple/Fluffy.Server/": "/pypi/simple/fluffy-server/",
		} {
			a := w.get(path)
			if a.status != http.StatusMovedPermanently || a.header.Get("Location") != target {
				t.Errorf("%s: %d %q", path, a.status, a.header.Get("Location"))
			}
		}
		w.pypiSent(0, 0)
		absent := w.get("/pypi/simple/absent/")
		w.want(absent, 404, -1)
		if !strings.HasPrefix(absent.header.Get("Content-Type"), "text/plain") || strings.Count(strings.TrimSpace(absent.body), "\n") != 0 || !strings.Contains(absent.body, "Ask #platform") {
			t.Errorf("%v %q", absent.header, absent.body)
		}
		w.want(w.get("/pypi/simple/a/", "Accept", "image/png"), 406, -1)
		w.want(w.do(http.MethodPost, "/pypi/legacy/"), 405, -1)
		w.want(w.get("/pypi/files/a/a-9.9-py3-none-any.whl"), 404, -1)
		w.want(w.get("/pypi/files/a/..%2f..%2fetc"), 404, -1)
		w.want(w.get("/pypi/nothing"), 404, -1)
		index := w.get("/pypi/simple/", "Accept", pypiJSON)
		w.want(index, 200, -1)
		if !strings.Contains(index.body, `"a"`) {
			t.Errorf("index = %s", index.body)
		}
	})
}

// The age rule judges each file by its own upload: a wheel that was added later to an old release
// is young. Unknown age is refused.
func TestPyPIAge(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.pypi.Publish("a",
			fakepypi.Wheel("a", "1.0", fakepypi.UploadedAt(longAgo)),
			fakepypi.Wheel("a", "1.0", fakepypi.Tag("cp313-cp313-any"), fakepypi.UploadedAt(time.Now().Add(-time.Hour))),
			fakepypi.Wheel("a", "2.0", fakepypi.UploadedAt(time.Time{})))
		// C77: one evaluation for both forms
		for _, accept := range []string{pypiJSON, "text/html"} {
			a := w.get("/pypi/simple/a/", "Accept", accept)
			w.want(a, 200, -1)
			if strings.Contains(a.body, "cp313") || strings.Contains(a.body, "a-2.0") || !strings.Contains(a.body, "a-1.0-py3") {
				t.Errorf("%s: %s", accept, a.body)
			}
		}
		for _, path := range []string{"/pypi/files/a/a-1.0-cp313-cp313-any.whl", "/pypi/files/a/a-2.0-py3-none-any.whl"} {
			for _, suffix := range []string{"", ".metadata"} {
				w.want(w.get(path+suffix), 403, -1)
				w.want(w.do(http.MethodHead, path+suffix), 403, -1)
			}
		}
		w.pypiSent(1, 0)
	})
}

// R30: index and files cool separately, each way; R29: npm and PyPI share one table but not an
// authority.
func TestPyPIAuthoritiesCoolSeparately(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.publishA()
		w.public.Publish("n", "1.0.0", longAgo, nil)
		w.get("/pypi/simple/a/")
		w.pypi.Index.Always(http.StatusTooManyRequests, "Retry-After", "100")
		w.want(w.get("/pypi/simple/b/"), 503, 100) // R45
		w.want(w.get("/pypi/simple/c/"), 503, 100)
		w.want(w.get(wheelA), 200, -1)
		w.want(w.get(wheelA+".metadata"), 200, -1)
		w.want(w.get("/npm/n"), 200, -1)
		w.pypiSent(2, 2)
	})
	inWorld(t, "cache: {ttl: 24h}", func(w *world) {
		w.publishA()
		w.get("/pypi/simple/a/")
		w.pypi.Files.Always(http.StatusTooManyRequests, "Retry-After", "100", "X-From", "files")
		for i, path := range []string{wheelA + ".metadata", wheelA, wheelA + ".metadata"} {
			a := w.get(path)
			if i == 0 { // R50: the first is handed on, a companion too
				if a.status != 429 || a.header.Get("X-From") != "files" {
					t.Errorf("first: %d %v", a.status, a.header)
				}
				continue
			}
			w.want(a, 503, 100) // R51
		}
		w.want(w.get("/pypi/simple/a/"), 200, -1)
		w.want(w.get("/pypi/simple/b/"), 404, -1)
		w.pypiSent(2, 1)
		if n := len(w.lines("cooldown entered")); n != 1 || w.lines("cooldown entered")[0]["kind"] != "companion" {
			t.Errorf("log: %v", w.lines("cooldown entered"))
		}
	})
}

// R29: two mounts with the same public authority cool together.
func TestMountsShareOneTable(t *testing.T) {
	inWorld(t, "pypi, public: 'http://"+publicHost+"/simple/', files: ['http://"+publicHost+"']\n", func(w *world) {
		w.throttled("Retry-After", "100")
		w.want(w.get("/pypi/simple/a/"), 503, 100)
		w.want(w.get("/pypi/simple/"), 503, 100)
		w.sent(1)
	})
}

// C06, R34: a storm on one authority stops there and nowhere else; 200 clients, one attempt.
func TestPyPIStorm(t *testing.T) {
	inWorld(t, "cache: {ttl: 24h}", func(w *world) {
		w.publishA()
		w.get("/pypi/simple/a/")
		w.pypi.Index.Always(http.StatusTooManyRequests, "Retry-After", "3")
		w.get("/pypi/simple/trigger/")
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() { w.want(w.get(fmt.Sprintf("/pypi/simple/p%d/", i)), 503, 3) })
			wg.Go(func() { w.want(w.get(wheelA), 200, -1) })
		}
		wg.Wait()
		w.pypiSent(2, 200)
	})
}

// C23, C24: links to hosts that are not configured are dropped with one log line, and never
// dialled.
func TestPyPIForeignHosts(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.pypi.SetPage("a", pypiJSON, []byte(`{"meta":{"api-version":"1.1"},"name":"a","versions":["1.0","2.0"],"files":[
			{"filename":"a-1.0-py3-none-any.whl","url":"http://elsewhere.test/a-1.0-py3-none-any.whl","hashes":{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},"upload-time":"1999-01-01T00:00:00Z"},
			{"filename":"a-2.0-py3-none-any.whl","url":"http://files.test/x/a-2.0-py3-none-any.whl","hashes":{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},"upload-time":"1999-01-01T00:00:00Z"}]}`))
		a := w.get("/pypi/simple/a/", "Accept", pypiJSON)
		w.want(a, 200, -1)
		if p := w.page(a); len(p.Files) != 1 || p.Files[0].Filename != "a-2.0-py3-none-any.whl" || len(p.Versions) != 1 {
			t.Errorf("page = %s", a.body)
		}
		w.want(w.get(wheelA), 404, -1)
		if w.network.Dials("elsewhere.test:80") != 0 || len(w.lines("files on hosts that are not configured are not served")) != 1 {
			t.Errorf("log: %s", w.log)
		}
	})
}

// C17: a companion is checked against the hash that the page names, packed by the upstream or not;
// C25: so is a file.
func TestPyPIIntegrity(t *testing.T) {
	inWorld(t, "", func(w *world) {
		f := w.publishA()
		w.pypi.GzipCompanions = true
		a := w.get(wheelA+".metadata", "Accept-Encoding", "gzip")
		w.want(a, 200, -1)
		if a.body != string(f.Metadata) || a.header.Get("Content-Encoding") != "" {
			t.Errorf("%v %q", a.header, a.body)
		}
		w.pypi.Files.Answer(func(rw http.ResponseWriter, _ *http.Request) bool { _, _ = rw.Write([]byte("Name: evil")); return true })
		w.want(w.get(wheelA+".metadata"), 502, -1)
		w.want(w.get(wheelA), 502, -1)
	})
}

// A private project wins and its files come from the private index alone; the credential goes there
// only.
func TestPyPIPrivate(t *testing.T) {
	inWorld(t, "pypi, private: 'http://"+ownHost+"/simple/', firstParty: [secret]\n", func(w *world) {
		w.pypiOwn.Publish("a", fakepypi.Wheel("a", "3.0", fakepypi.UploadedAt(time.Time{})))
		w.pypiOwn.Publish("secret", fakepypi.Wheel("secret", "1.0"))
		w.pypi.Publish("secret", fakepypi.Wheel("secret", "9.0", fakepypi.UploadedAt(longAgo)))
		w.publishA()
		a := w.get("/pypi/simple/a/", "Accept", pypiJSON, "Authorization", "Basic dTpw")
		if p := w.page(a); len(p.Files) != 2 {
			t.Errorf("merged: %s", a.body)
		}
		w.want(w.get("/pypi/files/a/a-3.0-py3-none-any.whl", "Authorization", "Basic dTpw"), 200, -1)
		w.want(w.get("/pypi/files/a/a-3.0-py3-none-any.whl.metadata", "Authorization", "Basic dTpw"), 200, -1)
		w.want(w.get(wheelA, "Authorization", "Basic dTpw"), 200, -1)
		if s := w.get("/pypi/simple/secret/"); strings.Contains(s.body, "9.0") || s.status != 200 {
			t.Errorf("first party: %d %s", s.status, s.body)
		}
		w.want(w.get("/pypi/files/secret/secret-9.0-py3-none-any.whl"), 404, -1)
		for _, s := range append(w.pypi.Index.Seen(), w.pypi.Files.Seen()...) {
			if s.Header.Get("Authorization") != "" || strings.Contains(s.Path, "secret") {
				t.Errorf("a public upstream saw %v", s)
			}
		}
	})
}

// C22: a page from before the kept one is not believed.
func TestPyPISerialGoingBackwards(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.publishA()
		w.pypi.Change("a", func(p *fakepypi.Project) { p.Serial = 10 })
		w.pypi.Publish("a", fakepypi.Wheel("a", "2.0", fakepypi.UploadedAt(longAgo)))
		w.get("/pypi/simple/a/")
		w.pypi.Change("a", func(p *fakepypi.Project) { p.Serial, p.Files = 9, p.Files[:1] })
		time.Sleep(61 * time.Second)
		if p := w.page(w.get("/pypi/simple/a/", "Accept", pypiJSON)); len(p.Files) != 2 {
			t.Errorf("%d files", len(p.Files))
		}
		if got := w.metric(`ecluse_stale_upstream_total{ecosystem="pypi"}`); got != 1 {
			t.Errorf("stale = %v", got)
		}
	})
}

// C55, C20: upstream trouble is never an empty page and never an absence.
func TestPyPIUpstreamTrouble(t *testing.T) {
	for upstream, c := range map[int]struct{ status, wait int }{404: {404, -1}, 500: {503, 1}, 503: {503, 1}, 403: {502, -1}, 301: {502, -1}} {
		inWorld(t, "", func(w *world) {
			w.pypi.Index.Always(upstream)
			w.want(w.get("/pypi/simple/a/"), c.status, c.wait)
		})
	}
	for _, body := range []string{"", "{", "[]", "<html", `{"files":{}}`, `{"name":"b","files":[]}`} {
		inWorld(t, "", func(w *world) {
			w.pypi.SetPage("a", pypiJSON, []byte(body))
			a := w.get("/pypi/simple/a/")
			w.want(a, 502, -1)
		})
	}
}

// An index that only has HTML pages dates nothing: its files are refused unless the configured
// fallback admits them.
func TestPyPIHTMLOnlyUpstream(t *testing.T) {
	for yaml, status := range map[string]int{"": 403, "rules: {undated: {type: AllowUndated, ecosystems: [pypi]}}": 200} {
		inWorld(t, yaml, func(w *world) {
			w.pypi.OnlyHTML = true
			w.publishA()
			w.want(w.get("/pypi/simple/a/"), status, -1)
			w.want(w.get(wheelA), status, -1)
		})
	}
}
