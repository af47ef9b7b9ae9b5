package app

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

const indexReads = `ecluse_public_requests_total{host="index.test:80",kind="metadata",outcome="`

// redirected sends the read of a path of the index elsewhere.
func (w *world) redirected(path string, status int, to string) {
	w.pypi.Index.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != path {
			return false
		}
		rw.Header().Set("Location", to)
		rw.WriteHeader(status)
		return true
	})
}

// R103, rw-032: an index's redirect within its own authority is followed, once, as an attempt of
// its own; relative links of the page are read against where it was found.
func TestRedirectWithinTheIndex(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		inWorld(t, "", func(w *world) {
			f := w.publishA()
			w.pypi.Index.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.URL.Path == "/simple/a/" && strings.Contains(r.Header.Get("Accept"), "json"):
					rw.Header().Set("Location", "index.v1_json")
					rw.WriteHeader(status)
				case r.URL.Path == "/simple/a/index.v1_json":
					r.URL.Path = "/simple/a/"
					return false
				default:
					return false
				}
				return true
			})
			a := w.get("/pypi/simple/a/", "Accept", pypiJSON)
			w.want(a, 200, -1)
			if p := w.page(a); len(p.Files) != 1 || p.Files[0].Filename != f.Name {
				t.Errorf("%d: %+v", status, p)
			}
			w.pypiSent(2, 0)
			if first, second := w.metric(indexReads+`server_error"}`), w.metric(indexReads+`success"}`); first != 1 || second != 1 {
				t.Errorf("%d: %v and %v attempts", status, first, second)
			}
		})
	}
}

// R91, R103: a second redirect, one to another authority, another port or scheme, one with user
// information and one that leads nowhere are not followed: 502, and nothing else is asked.
func TestRedirectsThatAreNotFollowed(t *testing.T) {
	for to, sent := range map[string]int{
		"http://elsewhere.test/simple/a/": 1, "//elsewhere.test/simple/a/": 1, "http://index.test:81/simple/a/": 1,
		"https://index.test/simple/a/": 1, "http://files.test/simple/a/": 1, "http://user:word@index.test/x": 1, "ftp://index.test/": 1,
		"": 1, "http://%zz/": 1, "/simple/a/": 2, "http://INDEX.test:80/simple/a/": 2,
	} {
		inWorld(t, "", func(w *world) {
			w.publishA()
			w.redirected("/simple/a/", http.StatusFound, to)
			w.want(w.get("/pypi/simple/a/"), 502, -1)
			w.pypiSent(sent, 0)
			for _, other := range []string{"elsewhere.test:80", "elsewhere.test:443", "index.test:81", "index.test:443", "files.test:80"} {
				if n := w.network.Dials(other); n != 0 {
					t.Errorf("%q: %d connections to %s", to, n, other)
				}
			}
		})
	}
	inWorld(t, "", func(w *world) { // a file's is not followed
		w.withFacts()
		w.public.Always(http.StatusFound, "Location", "/a/-/other.tgz")
		w.want(w.get(fileA), 502, -1)
		w.sent(2)
	})
}

// R103: the second read asks the cooldown: what began while the first one was on its way refuses
// it.
func TestRedirectAsksTheCooldownAgain(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.publishA()
		answer := make(chan struct{})
		w.pypi.Index.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			switch r.URL.Path {
			case "/simple/a/":
				<-answer
				rw.Header().Set("Location", "index.v1_json")
				rw.WriteHeader(http.StatusFound)
			default:
				rw.Header().Set("Retry-After", "30")
				rw.WriteHeader(http.StatusTooManyRequests)
			}
			return true
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.want(w.get("/pypi/simple/a/"), 503, 30)
		}()
		synctest.Wait()
		w.want(w.get("/pypi/simple/b/"), 503, 30)
		close(answer)
		<-done
		w.pypiSent(2, 0)
	})
}
