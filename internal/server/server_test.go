package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/edge"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/gate"
)

// R37: each mount refuses in the dialect of its protocol, and adds what the operator wants to say.
func TestPathsAndDialects(t *testing.T) {
	const asJSON, asText = "application/json", "text/plain; charset=utf-8"
	inWorld(t, Options{Access: edge.Access{HelpMessage: "Ask #platform"}}, func(w *world) {
		w.Public.Publish("a", "1.0.0", longAgo, nil)
		w.Index.Publish("a", fakepypi.Wheel("a", "1.0", fakepypi.UploadedAt(longAgo)))
		for _, c := range []struct {
			method, path string
			status       int
			contentType  string
			says         string
		}{
			{"GET", "/livez", 200, asText, "ok"},
			{"GET", "/elsewhere", 404, asText, "404 page not found"},
			{"GET", "/npm/a", 200, asJSON, `"1.0.0"`},
			{"GET", "/npm/a/1.0.0", 200, asJSON, `"version":"1.0.0"`},
			{"GET", "/npm/a/latest", 200, asJSON, `"version":"1.0.0"`},
			{"GET", "/npm/a/9.9.9", 404, asJSON, "Ask #platform"},
			{"GET", fileA, 200, "application/octet-stream", "tarball of a@1.0.0"},
			{"GET", "/npm/a/-/a-9.9.9.tgz", 404, asJSON, "Ask #platform"},
			{"GET", "/npm/absent", 404, asJSON, "Ask #platform"},
			{"GET", "/npm/..%2fb", 404, asJSON, "Ask #platform"},
			{"GET", "/npm/-/ping", 200, asJSON, "{}"},
			{"GET", "/npm/-/v1/search?text=a", 404, asJSON, "search service"},
			{"POST", "/npm/-/npm/v1/security/audits", 400, asJSON, "audit"},
			{"PUT", "/npm/-/npm/v1/security/audits", 405, asJSON, "POST"},
			{"GET", "/npm/-/whoami", 401, asJSON, "Ask #platform"},
			{"DELETE", "/npm/a", 405, asJSON, "DELETE"},
			{"POST", fileA, 405, asJSON, "POST"},
			{"GET", "/pypi/simple/", 200, "text/html", "a"},
			{"GET", "/pypi/simple/a/", 200, "text/html", "a-1.0-py3-none-any.whl"},
			{"GET", "/pypi/simple/absent/", 404, asText, "Ask #platform"},
			{"GET", "/pypi/nothing/here", 404, asText, "Ask #platform"},
			{"DELETE", "/pypi/simple/a/", 405, asText, "DELETE"},
			{"GET", "/pypi/legacy/", 405, asText, "POST"},
		} {
			a := w.Do(c.method, c.path, "")
			if a.Status != c.status || !strings.HasPrefix(a.Header.Get("Content-Type"), c.contentType) || !strings.Contains(a.Body, c.says) || a.Err != nil {
				t.Errorf("%s %s: %d %s %.200s, want %d %s %q", c.method, c.path, a.Status, a.Header.Get("Content-Type"), a.Body, c.status, c.contentType, c.says)
			}
			if c.status == 405 && a.Header.Get("Allow") == "" {
				t.Errorf("%s %s: no Allow", c.method, c.path)
			}
		}
	})
}

// C21: what a client of the Python index accepts, asks for and calls a project.
func TestPythonForms(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		wheel := fakepypi.Wheel("a", "1.0", fakepypi.UploadedAt(longAgo))
		w.Index.Publish("a", wheel)
		const asJSON = "application/vnd.pypi.simple.v1+json"
		for _, path := range []string{"/pypi/simple/", "/pypi/simple/a/"} {
			if a := w.Get(path, "Accept", asJSON); a.Status != 200 || a.Header.Get("Content-Type") != asJSON || a.Header.Get("Vary") != "Accept, Accept-Encoding" {
				t.Errorf("%s: %d %v", path, a.Status, a.Header)
			}
			if a := w.Get(path, "Accept", "image/png"); a.Status != http.StatusNotAcceptable || a.Header.Get("Vary") == "" {
				t.Errorf("%s: %d %v", path, a.Status, a.Header)
			}
		}
		if a := w.Get("/pypi/simple/A?format=json"); a.Status != 301 || a.Header.Get("Location") != "/pypi/simple/a/?format=json" {
			t.Errorf("%d %v", a.Status, a.Header)
		}
		if a := w.Get("/pypi/files/a/" + wheel.Name); a.Status != 200 || a.Body != string(wheel.Content) {
			t.Errorf("file: %d %.100s", a.Status, a.Body)
		}
		if a := w.Get("/pypi/files/a/" + wheel.Name + ".metadata"); a.Status != 200 || a.Body != string(wheel.Metadata) {
			t.Errorf("companion: %d %.100s", a.Status, a.Body)
		}
	})
}

// C35, C37: a listing is one representation for each encoding, and its links lead to where the
// client found the gate.
func TestListingAnswers(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.Public.Publish("a", "1.0.0", longAgo, map[string]any{"readme": strings.Repeat("long ", 1000)})
		plain := w.Get("/npm/a")
		if !strings.Contains(plain.Body, "http://gate.test"+fileA) {
			t.Errorf("links: %.300s", plain.Body)
		}
		tags := map[string]bool{}
		for accepts, want := range map[string]string{"": "", "gzip": "gzip", "gzip, zstd": "zstd"} {
			a := w.Get("/npm/a", "Accept-Encoding", accepts)
			tag := a.Header.Get("Etag")
			if a.Status != 200 || a.Header.Get("Content-Encoding") != want || tags[tag] || a.Header.Get("Cache-Control") != "private, no-cache" {
				t.Errorf("%q: %d %v", accepts, a.Status, a.Header)
			}
			tags[tag] = true
			if again := w.Get("/npm/a", "Accept-Encoding", accepts, "If-None-Match", `"x", W/`+tag); again.Status != 304 || again.Body != "" {
				t.Errorf("%q with its tag: %d", accepts, again.Status)
			}
			head := w.Do(http.MethodHead, "/npm/a", "", "Accept-Encoding", accepts)
			if head.Status != 200 || head.Body != "" || head.Header.Get("Etag") != tag || head.Header.Get("Content-Length") != a.Header.Get("Content-Length") {
				t.Errorf("HEAD %q: %d %v", accepts, head.Status, head.Header)
			}
		}
		if a := w.Get("/npm/a", "If-None-Match", "*"); a.Status != 304 {
			t.Errorf("any tag: %d", a.Status)
		}
		if a := w.Get("/npm/a", "If-None-Match", "unquoted"); a.Status != 200 {
			t.Errorf("no tag: %d", a.Status)
		}
	})
	inWorld(t, Options{PublicURL: "https://npm.example.com/gate"}, func(w *world) {
		w.Public.Publish("a", "1.0.0", longAgo, nil)
		if a := w.Get("/npm/a"); !strings.Contains(a.Body, "https://npm.example.com/gate"+fileA) {
			t.Errorf("links: %.300s", a.Body)
		}
	})
}

// C25, C51: a file that is not what the listing names never looks whole; a throttled one is handed
// on with its wait, and traced as a cooldown.
func TestFileAnswers(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.Public.Publish("a", "1.0.0", longAgo, nil)
		w.Want(w.Get("/npm/a"), 200, -1)
		if a := w.Do(http.MethodHead, fileA, ""); a.Status != 200 || a.Body != "" {
			t.Errorf("HEAD: %d", a.Status)
		}
		w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			_, _ = rw.Write(append(fakenpm.File("a", "1.0.0")[1:], '!'))
			return true
		})
		if a := w.Get(fileA); a.Err == nil {
			t.Errorf("a wrong file came whole: %d", a.Status)
		}
		w.Public.Always(http.StatusTooManyRequests, "Retry-After", "30")
		a := w.Get(fileA)
		w.Want(a, 429, 30)
		if a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("relayed: %v", a.Header)
		}
		ended := w.spans.Ended()
		cause := ""
		for _, attribute := range ended[len(ended)-1].Attributes() {
			if attribute.Key == "ecluse.refusal" {
				cause = attribute.Value.AsString()
			}
		}
		if cause != "cooldown" {
			t.Errorf("the span's cause is %q", cause)
		}
		w.Want(w.Get("/npm/b"), 503, 30)
	})
}

// R37: the one table from error to status.
func TestErrorTable(t *testing.T) {
	cooling := &gate.Unavailable{Wait: 1500 * time.Millisecond, Cooldown: true, Authority: "registry.test:80", Part: "registry"}
	passing := &gate.Denied{}
	passing.Verdict.Temporary = true
	for name, c := range map[string]struct {
		err         error
		status      int
		retryAfter  string
		cacheStatus string
	}{
		"a cooldown":        {cooling, 503, "2", `ecluse; hit=?0; authority="registry.test:80"; part=registry; detail=cooldown`},
		"wrapped":           {fmt.Errorf("read: %w", cooling), 503, "2", `ecluse; hit=?0; authority="registry.test:80"; part=registry; detail=cooldown`},
		"no place":          {&gate.Unavailable{Wait: time.Second}, 503, "1", ""},
		"a passing verdict": {passing, 503, "1", ""},
		"a verdict":         {&gate.Denied{}, 403, "", ""},
		"forbidden":         {&gate.Forbidden{}, 403, "", ""},
		"absent":            {&gate.NotFound{}, 404, "", ""},
		"a bad upstream":    {&gate.BadUpstream{}, 502, "", ""},
		"the client's end":  {fmt.Errorf("read: %w", context.Canceled), 499, "", ""},
		"anything else":     {errors.New("secret detail"), 500, "", ""},
	} {
		rec := newRecorder()
		WriteError(rec, c.err)
		h := rec.Header()
		if rec.Code != c.status || h.Get("Retry-After") != c.retryAfter || h.Get("Cache-Status") != c.cacheStatus || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", name, rec.Code, h)
		}
		if strings.Contains(rec.Body.String(), "secret") {
			t.Errorf("%s: %s", name, rec.Body)
		}
	}
}

// R42: readiness follows draining alone.
func TestReadiness(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.Public.Always(http.StatusTooManyRequests, "Retry-After", "600")
		w.Want(w.Get("/npm/a"), 503, 600)
		w.Want(w.Get("/readyz"), 200, -1)
		w.server.Drain()
		w.Want(w.Get("/readyz"), 503, -1)
		w.Want(w.Get("/livez"), 200, -1)
	})
}

// C43: what finds no place waits for one and is then refused; a client that leaves while it waits
// takes no place.
func TestPlaces(t *testing.T) {
	inWorld(t, Options{MaxInFlight: 1, Wait: 2 * time.Second}, func(w *world) {
		w.Public.Publish("slow", "1.0.0", longAgo, nil)
		w.Public.Answer(func(http.ResponseWriter, *http.Request) bool { time.Sleep(10 * time.Second); return false })
		go w.Get("/npm/slow")
		synctest.Wait()
		start := time.Now()
		w.Want(w.Get("/npm/other"), 503, 1)
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("waited %v", d)
		}
		ctx, leave := context.WithTimeout(w.T.Context(), time.Second)
		defer leave()
		rec := newRecorder()
		w.server.Handler().ServeHTTP(rec, request(ctx, "/npm/gone"))
		if rec.Body.Len() > 0 || time.Since(start) != 3*time.Second {
			t.Errorf("a client that left was told %q after %v", rec.Body, time.Since(start))
		}
		time.Sleep(10 * time.Second)
		w.Public.Answer(nil)
		w.Want(w.Get("/npm/slow"), 200, -1)
		w.Want(w.Get("/npm/slow"), 200, -1)
	})
}

// A server serves as New returns it, writes into nothing that it was given, and so may be made
// twice of the same parts.
func TestTwoServersOfTheSameParts(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.Public.Publish("a", "1.0.0", longAgo, nil)
		second := New(w.server.opts)
		w.server.Drain()
		rec := newRecorder()
		second.Handler().ServeHTTP(rec, request(w.T.Context(), "/readyz"))
		if rec.Code != http.StatusOK {
			t.Errorf("the second server: %d", rec.Code)
		}
		rec = newRecorder()
		second.Handler().ServeHTTP(rec, request(w.T.Context(), "/npm/a"))
		if body, _ := io.ReadAll(rec.Body); rec.Code != 200 || !strings.Contains(string(body), `"1.0.0"`) {
			t.Errorf("%d %s", rec.Code, body)
		}
	})
}
