package app

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
)

const abbreviated = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*"

func TestListingAndArtifact(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("left-pad", "1.0.0", longAgo, nil)
		a := w.get("/npm/left-pad")
		w.want(a, 200, -1)
		if len(w.versions(a)) != 1 {
			t.Errorf("versions = %v", a.body)
		}
		// C37: the link lies under the origin and the path that the client used.
		if !strings.Contains(a.body, `"tarball":"http://gate.test/npm/left-pad/-/left-pad-1.0.0.tgz"`) {
			t.Errorf("tarball link: %s", a.body)
		}
		f := w.get("/npm/left-pad/-/left-pad-1.0.0.tgz", "Accept-Encoding", "gzip")
		w.want(f, 200, -1)
		if f.body != string(fakenpm.File("left-pad", "1.0.0")) {
			t.Error("the file is not the upstream's")
		}
		// C30: nobody on the way may touch the bytes.
		if f.header.Get("Content-Encoding") != "" || !strings.Contains(f.header.Get("Cache-Control"), "no-transform") {
			t.Errorf("header = %v", f.header)
		}
		w.sent(2)
		if got := w.public.Seen()[1].Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("the file was asked for as %q", got)
		}
		w.want(w.get("/npm/absent"), 404, -1)
		w.want(w.get("/npm/left-pad/-/left-pad-9.9.9.tgz"), 404, -1)
		w.want(w.get("/npm/left-pad/-/other-1.0.0.tgz"), 404, -1)
	})
}

// C26: four spellings, one package; the escaped slash is decoded once.
func TestScopedSpellings(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("@angular/common", "1.0.0", longAgo, nil)
		bodies := map[string]bool{}
		for _, path := range []string{"/npm/@angular%2fcommon", "/npm/@angular%2Fcommon", "/npm/@angular/common", "/npm/%40angular%2fcommon"} {
			a := w.get(path)
			w.want(a, 200, -1)
			bodies[a.body] = true
		}
		if len(bodies) != 1 {
			t.Errorf("%d different documents", len(bodies))
		}
		w.sent(1)
		for _, path := range []string{"/npm/@angular%252fcommon", "/npm/..%2fetc", "/npm/@angular%2f..%2fx", "/npm/%2e%2e/x", "/npm//a", "/npm/"} {
			w.want(w.get(path), 404, -1)
		}
		for _, path := range []string{"/npm/@angular/common/-/common-1.0.0.tgz", "/npm/@angular%2fcommon/-/common-1.0.0.tgz"} {
			w.want(w.get(path), 200, -1)
		}
	})
}

// C28: an upstream that only knows the literal slash is asked with it, and a 404 under the other
// spelling is not remembered.
func TestLiteralScopedPaths(t *testing.T) {
	inWorld(t, ", scopedPath: {public: literal}\n", func(w *world) {
		w.public.Publish("@jsr/std__yaml", "1.0.0", longAgo, nil)
		w.want(w.get("/npm/@jsr%2fstd__yaml"), 200, -1)
		if got := w.public.Seen()[0].Path; got != "/@jsr/std__yaml" {
			t.Errorf("asked for %s", got)
		}
	})
	inWorld(t, "", func(w *world) {
		w.public.Publish("@jsr/std__yaml", "1.0.0", longAgo, nil)
		w.get("/npm/@jsr/std__yaml")
		if got := w.public.Seen()[0].Path; got != "/@jsr%2fstd__yaml" {
			t.Errorf("asked for %s", got)
		}
	})
}

// C13, C35, C60, C63: representations have their own strong tags and never answer for each other.
func TestRepresentations(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, map[string]any{"readme": strings.Repeat("long ", 1000), "bin": "x"})
		full, short := w.get("/npm/a"), w.get("/npm/a", "Accept", abbreviated)
		packed := w.get("/npm/a", "Accept-Encoding", "gzip, deflate")
		w.sent(1)
		tags := map[string]bool{}
		for _, a := range []answer{full, short, packed} {
			w.want(a, 200, -1)
			tag := a.header.Get("ETag")
			if !strings.HasPrefix(tag, `"`) {
				t.Errorf("ETag %q is not strong", tag)
			}
			tags[tag] = true
			if got := a.header.Get("Vary"); got != "Accept, Accept-Encoding" {
				t.Errorf("Vary = %q", got)
			}
		}
		if len(tags) != 3 {
			t.Errorf("tags = %v", tags)
		}
		if !strings.Contains(full.body, `"time"`) || strings.Contains(short.body, `"time"`) || strings.Contains(short.body, "readme") {
			t.Errorf("full: %.100s, abbreviated: %.300s", full.body, short.body)
		}
		if got := short.header.Get("Content-Type"); got != "application/vnd.npm.install-v1+json" {
			t.Errorf("Content-Type = %q", got)
		}
		zr, err := gzip.NewReader(strings.NewReader(packed.body))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := io.ReadAll(zr); err != nil || string(plain) != full.body {
			t.Errorf("the packed form is another document (%v)", err)
		}
		for _, c := range []struct {
			header []string
			status int
		}{
			{[]string{"If-None-Match", full.header.Get("ETag")}, 304},
			{[]string{"If-None-Match", `"x", W/` + full.header.Get("ETag")}, 304},
			{[]string{"If-None-Match", "*"}, 304},
			{[]string{"If-None-Match", short.header.Get("ETag")}, 200},
			{[]string{"If-None-Match", full.header.Get("ETag"), "Accept-Encoding", "gzip"}, 200},
			{[]string{"If-None-Match", packed.header.Get("ETag"), "Accept-Encoding", "gzip"}, 304},
			{[]string{"If-None-Match", full.header.Get("ETag"), "Accept", abbreviated}, 200},
			{[]string{"Accept-Encoding", "gzip;q=0"}, 200},
		} {
			a := w.get("/npm/a", c.header...)
			w.want(a, c.status, -1)
			if c.status == 304 && (a.body != "" || a.header.Get("ETag") == "" || a.header.Get("Vary") == "") {
				t.Errorf("304: %v %q", a.header, a.body)
			}
		}
		head := w.do(http.MethodHead, "/npm/a")
		if head.status != 200 || head.body != "" || head.header.Get("Content-Length") != fmt.Sprint(len(full.body)) {
			t.Errorf("HEAD: %d %v", head.status, head.header)
		}
	})
}

// C08, C12, C44: inside the TTL nothing is asked twice; after it a validator is sent. C61: not for
// ever.
func TestCacheAndRevalidation(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		for range 40 {
			w.get("/npm/a")
		}
		w.sent(1)
		time.Sleep(61 * time.Second)
		w.want(w.get("/npm/a"), 200, -1)
		w.sent(2)
		if w.public.Seen()[1].Header.Get("If-None-Match") == "" {
			t.Error("the validator was not sent")
		}
		if got := w.metric(`ecluse_public_requests_total{host="registry.test:80",kind="metadata",outcome="not_modified"}`); got != 1 {
			t.Errorf("not_modified = %v", got)
		}
		w.public.Publish("a", "1.1.0", longAgo, nil)
		time.Sleep(61 * time.Second)
		if a := w.get("/npm/a"); len(w.versions(a)) != 2 {
			t.Errorf("the new version is missing: %s", a.body)
		}
		time.Sleep(25 * time.Hour)
		w.get("/npm/a")
		if got := w.public.Seen()[3].Header.Get("If-None-Match"); got != "" {
			t.Error("a day-old body was only confirmed, not fetched again")
		}
	})
}

// C04, C32, C56, R49, R92: trouble is never remembered as absence, and a real 404 is 404 only as
// long as it is true.
func TestNothingIsRememberedAsAbsent(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.want(w.get("/npm/a"), 404, -1)
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.want(w.get("/npm/a"), 200, -1)
		for _, status := range []int{500, 502, 408, 429} {
			w.public.Always(status, "Retry-After", "1")
			name := fmt.Sprintf("/npm/b%d", status)
			w.want(w.get(name), 503, 1)
			w.public.Answer(nil)
			w.public.Publish(name[5:], "1.0.0", longAgo, nil)
			time.Sleep(time.Second)
			w.want(w.get(name), 200, -1)
		}
	})
}

// R92, R91, C20, C55, C57, tc-050: other upstream trouble in a listing, each with its one honest
// status.
func TestListingStatuses(t *testing.T) {
	for upstream, c := range map[int]struct{ status, wait int }{
		404: {404, -1}, 410: {404, -1}, 401: {502, -1}, 403: {502, -1}, 400: {502, -1}, 301: {502, -1}, 302: {502, -1}, 307: {502, -1},
		408: {503, 1}, 500: {503, 1}, 502: {503, 1}, 503: {503, 1}, 504: {503, 1}, 429: {503, 60}, 204: {502, -1}, 206: {502, -1},
	} {
		inWorld(t, "", func(w *world) {
			w.public.Always(upstream, "Location", "http://elsewhere.test/")
			a := w.get("/npm/a")
			w.want(a, c.status, c.wait)
			if a.header.Get("Location") != "" {
				t.Errorf("%d: a Location was handed on", upstream)
			}
			if w.network.Dials("elsewhere.test:80") != 0 {
				t.Errorf("%d: the redirect was followed", upstream)
			}
			if upstream >= 300 && upstream < 400 {
				if got := w.metric(`ecluse_public_requests_total{host="registry.test:80",kind="metadata",outcome="server_error"}`); got != 1 {
					t.Errorf("%d: server_error = %v", upstream, got)
				}
			}
		})
	}
}

// The age rule (C11, C75): a young version is absent from the listing and refused as a file, also
// for HEAD and Range; unknown age is refused; it is admitted at the very second that the denial
// names.
func TestAgeRule(t *testing.T) {
	inWorld(t, "cache: {ttl: 1000h}", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Publish("a", "2.0.0", time.Now().Add(-time.Hour), nil)
		w.public.Publish("a", "3.0.0", time.Time{}, nil)
		w.public.Publish("young", "1.0.0", time.Now(), nil)
		a := w.get("/npm/a")
		if vs := w.versions(a); len(vs) != 1 || vs["1.0.0"] == nil || !strings.Contains(a.body, `"latest":"1.0.0"`) {
			t.Errorf("listing: %s", a.body)
		}
		for _, v := range []string{"2.0.0", "3.0.0"} {
			path := "/npm/a/-/a-" + v + ".tgz"
			w.want(w.get(path), 403, -1)
			w.want(w.do(http.MethodHead, path), 403, -1)
			w.want(w.get(path, "Range", "bytes=0-1"), 403, -1)
			w.want(w.get("/npm/a/"+v), 403, -1)
		}
		denied := w.get("/npm/young")
		w.want(denied, 403, -1)
		if !strings.Contains(denied.body, "min-age") || !strings.Contains(denied.body, "2000-01-08T00:00:00Z") {
			t.Errorf("the denial does not explain itself: %s", denied.body)
		}
		w.sent(2) // no file was asked for
		time.Sleep(167*time.Hour - time.Second)
		if vs := w.versions(w.get("/npm/a")); len(vs) != 1 {
			t.Error("admitted a second early")
		}
		time.Sleep(time.Second)
		if vs := w.versions(w.get("/npm/a")); len(vs) != 2 {
			t.Error("not admitted at its time, although the document is kept")
		}
		w.want(w.get("/npm/a/-/a-2.0.0.tgz"), 200, -1)
		w.want(w.get("/npm/a/2.0.0"), 200, -1)
		w.want(w.get("/npm/a/latest"), 200, -1)
		w.sent(3)
		w.want(w.get("/npm/a/nothing"), 404, -1)
		w.sent(4) // an old document says yes, not no (R99)
	})
}

// Private first: private versions win, the credential goes to the private upstream only (C39), and
// each side's links are rewritten.
func TestMerge(t *testing.T) {
	inWorld(t, withPrivate+"\n", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, map[string]any{"from": "public"})
		w.public.Publish("a", "2.0.0", longAgo, map[string]any{"from": "public"})
		w.private.Publish("a", "2.0.0", time.Time{}, map[string]any{"from": "private"})
		w.private.Publish("a", "3.0.0", time.Time{}, map[string]any{"from": "private"})
		a := w.get("/npm/a", "Authorization", "Bearer secret")
		vs := w.versions(a)
		if len(vs) != 3 || !bytes.Contains(vs["2.0.0"], []byte(`"private"`)) || !bytes.Contains(vs["1.0.0"], []byte(`"public"`)) {
			t.Errorf("merged: %s", a.body)
		}
		if strings.Contains(a.body, privateHost) || strings.Contains(a.body, publicHost) {
			t.Errorf("an upstream's address leaks: %s", a.body)
		}
		w.want(w.get("/npm/a/-/a-3.0.0.tgz", "Authorization", "Bearer secret"), 200, -1)
		w.want(w.get("/npm/a/-/a-1.0.0.tgz", "Authorization", "Bearer secret", "Cookie", "c=1"), 200, -1)
		for _, s := range w.public.Seen() {
			if s.Header.Get("Authorization") != "" || s.Header.Get("Cookie") != "" {
				t.Errorf("a credential went to the public upstream: %v", s)
			}
		}
		for _, s := range w.private.Seen() {
			if s.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("the private upstream got %v", s.Header)
			}
		}
		// The private document is not kept: the next caller's credential decides anew.
		before := w.private.Count()
		w.get("/npm/a")
		if w.private.Count() == before {
			t.Error("a private document was served from a cache")
		}
	})
}

// First-party names resolve privately only.
func TestFirstPartyNeverGoesPublic(t *testing.T) {
	inWorld(t, withPrivate+", firstParty: ['@acme/*', tool]\n", func(w *world) {
		w.public.Publish("@acme/x", "9.0.0", longAgo, nil)
		w.public.Publish("tool", "9.0.0", longAgo, nil)
		for _, path := range []string{"/npm/@acme/x", "/npm/tool", "/npm/tool/-/tool-9.0.0.tgz", "/npm/tool/9.0.0"} {
			w.want(w.get(path), 404, -1)
		}
		w.private.Always(http.StatusInternalServerError)
		w.want(w.get("/npm/tool"), 503, 1)
		w.sent(0)
	})
}

// R43, R44, R45, R49: during a cooldown private versions are served, marked and not for shared
// caches; with none it is 503.
func TestDegradedListing(t *testing.T) {
	inWorld(t, withPrivate+"\ncache: {maxStale: 0s}", func(w *world) {
		w.public.Publish("a", "2.0.0", longAgo, nil)
		w.private.Publish("a", "1.0.0", time.Time{}, nil)
		full := w.get("/npm/a")
		time.Sleep(61 * time.Second)
		w.public.Always(http.StatusTooManyRequests, "Retry-After", "60")
		for i := range 2 { // the one that meets the answer (R45), and one refused by us
			a := w.get("/npm/a", "If-None-Match", full.header.Get("ETag"))
			w.want(a, 200, -1)
			if vs := w.versions(a); len(vs) != 1 || vs["1.0.0"] == nil || !strings.Contains(a.body, `"latest":"1.0.0"`) {
				t.Errorf("%d: %s", i, a.body)
			}
			if !strings.Contains(a.header.Get("Cache-Status"), "detail=cooldown") || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%d: header %v", i, a.header)
			}
			if a.header.Get("ETag") == full.header.Get("ETag") {
				t.Errorf("%d: the tag is the complete listing's", i)
			}
		}
		w.want(w.get("/npm/b"), 503, 60)
		w.private.Always(http.StatusServiceUnavailable, "Retry-After", "300")
		w.want(w.get("/npm/a"), 503, 300) // R44: the longest
		w.private.Always(http.StatusServiceUnavailable, "Retry-After", "5")
		w.want(w.get("/npm/a"), 503, 60)
		w.sent(2)
		if got := w.metric(`ecluse_degraded_listings_total{ecosystem="npm",reason="cooldown"}`); got != 2 {
			t.Errorf("degraded = %v", got)
		}
	})
}

// R47, R87, C10, C53: a listing older than its time is served while its authority cools, with the
// rules run afresh, and nothing is sent.
func TestRetainedListing(t *testing.T) {
	inWorld(t, "cache: {maxStale: 10m}", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Publish("a", "2.0.0", time.Now().Add(-7*day).Add(2*time.Minute), nil)
		w.get("/npm/a")
		time.Sleep(90 * time.Second)
		w.throttled("Retry-After", "600")
		a := w.get("/npm/a")
		w.want(a, 200, -1)
		if !strings.Contains(a.header.Get("Cache-Status"), "detail=cooldown") || len(w.versions(a)) != 1 {
			t.Errorf("retained: %v %s", a.header, a.body)
		}
		time.Sleep(30 * time.Second)
		if len(w.versions(w.get("/npm/a"))) != 2 {
			t.Error("the rules were not run afresh")
		}
		time.Sleep(8*time.Minute + time.Second)
		w.want(w.get("/npm/a"), 503, 89)
		w.sent(2)
		if got := w.metric(`ecluse_degraded_listings_total{ecosystem="npm",reason="retained"}`); got != 2 {
			t.Errorf("retained = %v", got)
		}
	})
}

// R93: a failing private upstream refuses, unless the mount says that what resolved may be served.
func TestPrivateFailure(t *testing.T) {
	trouble := map[string]func(*world){
		"500": func(w *world) { w.private.Always(500) },
		"429": func(w *world) { w.private.Always(429) },
		"cut": func(w *world) {
			w.private.Answer(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		},
		"timeout": func(w *world) {
			w.private.Answer(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
		},
	}
	for name, make := range trouble {
		t.Run(name, func(t *testing.T) {
			inWorld(t, withPrivate+"\n", func(w *world) {
				w.public.Publish("a", "1.0.0", longAgo, nil)
				make(w)
				w.want(w.get("/npm/a"), 503, 1)
				w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 503, 1)
				w.sent(0)
			})
			inWorld(t, withPrivate+", privateFailure: degrade\n", func(w *world) {
				w.public.Publish("a", "1.0.0", longAgo, nil)
				make(w)
				a := w.get("/npm/a")
				w.want(a, 200, -1)
				if a.header.Get("Cache-Control") != "no-store" {
					t.Errorf("header = %v", a.header)
				}
				w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 200, -1)
				w.want(w.get("/npm/absent"), 503, 1) // it may exist where nobody could look
				if got := w.metric(`ecluse_degraded_listings_total{ecosystem="npm",reason="private"}`); got != 1 {
					t.Errorf("degraded = %v", got)
				}
			})
		})
	}
}

// tc-001, tc-005: an absurd Retry-After of the private upstream stays long in the answer; it never
// wraps round to a short wait.
func TestPrivateWaitDoesNotWrap(t *testing.T) {
	for hint, want := range map[string]int{"9223372036": 9223372036, "9223372036854775807": 9223372037} {
		inWorld(t, withPrivate+"\n", func(w *world) {
			w.private.Always(http.StatusServiceUnavailable, "Retry-After", hint)
			w.want(w.get("/npm/a"), 503, want)
		})
	}
}
