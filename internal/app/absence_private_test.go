package app

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// R93: on a mount that goes on without its private upstream, what the public one does not know is
// not called absent while nobody could look at the private one: neither a package, nor one version,
// nor a file.
func TestNoAbsenceWherePrivateFails(t *testing.T) {
	inWorld(t, withPrivate+", privateFailure: degrade\n", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.private.Publish("a", "2.0.0", time.Time{}, nil)
		w.private.Always(http.StatusServiceUnavailable, "Retry-After", "30")
		for _, path := range []string{
			"/npm/absent", "/npm/absent/1.0.0", "/npm/absent/-/absent-1.0.0.tgz", "/npm/a/2.0.0", "/npm/a/-/a-2.0.0.tgz",
		} {
			w.want(w.get(path), 503, 30)
		}
		w.want(w.get("/npm/a/1.0.0"), 200, -1)
		w.want(w.get(fileA), 200, -1)
		w.private.Answer(nil)
		w.want(w.get("/npm/absent/-/absent-1.0.0.tgz"), 404, -1)
		w.want(w.get("/npm/a/2.0.0"), 200, -1)
	})
}

// R93: a file that the private listing names is not replaced by a public one of the same name while
// it cannot be had, also on a mount that goes on without its private upstream.
func TestPrivateFileIsNotReplaced(t *testing.T) {
	for _, mode := range []string{"", ", privateFailure: degrade"} {
		inWorld(t, withPrivate+mode+"\n", func(w *world) {
			w.public.Publish("a", "1.0.0", longAgo, nil)
			w.private.Publish("a", "1.0.0", time.Time{}, nil)
			w.private.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, ".tgz") {
					return false
				}
				rw.Header().Set("Retry-After", "30")
				rw.WriteHeader(http.StatusServiceUnavailable)
				return true
			})
			w.want(w.get(fileA), 503, 30)
			w.sent(0)
			w.private.Answer(nil)
			w.want(w.get(fileA), 200, -1)
			w.sent(0)
		})
	}
}
