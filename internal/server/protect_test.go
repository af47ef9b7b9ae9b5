package server

import (
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// Whatever the gate serves, a browser neither guesses its type nor runs anything of it.
func TestNothingOfItRunsInABrowser(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.Public.Publish("a", "1.0.0", longAgo, nil)
		wheel := fakepypi.Wheel("a", "1.0", fakepypi.UploadedAt(longAgo))
		w.Index.Publish("a", wheel)
		for _, path := range []string{
			"/livez", "/elsewhere", "/npm/a", "/npm/a/1.0.0", fileA, "/npm/absent", "/npm/-/ping", "/pypi/simple/", "/pypi/simple/a/",
			"/pypi/files/a/" + wheel.Name, "/pypi/files/a/" + wheel.Name + ".metadata",
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete} {
				h := w.Do(method, path, "").Header
				if h.Get("X-Content-Type-Options") != "nosniff" || !slices.Equal(h.Values("Content-Security-Policy"), []string{contentPolicy}) {
					t.Errorf("%s %s: %v", method, path, h)
				}
			}
		}
	})
}

// R50: a relayed refusal keeps the upstream's status and fields, all but those of one connection;
// what protects browsers is added, beside a policy of the upstream's own.
func TestRelayedAnswerKeepsItsHeader(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		inWorld(t, Options{}, func(w *world) {
			w.Public.Publish("a", "1.0.0", longAgo, nil)
			w.Want(w.Get("/npm/a"), 200, -1)
			w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
				h := rw.Header()
				for name, value := range map[string]string{
					"Retry-After": "30", "Content-Type": "text/html", "X-Request-Id": "r-1", "Cf-Ray": "ray", "Server": "edge", "Via": "1.1 v",
					"X-Content-Type-Options": "other", "Content-Security-Policy": "default-src https:", "X-Hop": "1", "Connection": "X-Hop",
				} {
					h.Set(name, value)
				}
				rw.WriteHeader(status)
				_, _ = io.WriteString(rw, "<script>alert(1)</script>")
				return true
			})
			a := w.Get(fileA)
			w.Want(a, status, 30)
			for name, want := range map[string]string{
				"Content-Type": "text/html", "X-Request-Id": "r-1", "Cf-Ray": "ray", "Server": "edge", "Via": "1.1 v", "X-Hop": "",
				"X-Content-Type-Options": "nosniff",
			} {
				if got := a.Header.Get(name); got != want {
					t.Errorf("%d: %s is %q, want %q", status, name, got, want)
				}
			}
			if got := a.Header.Values("Content-Security-Policy"); !slices.Equal(got, []string{"default-src https:", contentPolicy}) {
				t.Errorf("policies: %q", got)
			}
			if a.Body != "<script>alert(1)</script>" {
				t.Errorf("body: %s", a.Body)
			}
		})
	}
}
