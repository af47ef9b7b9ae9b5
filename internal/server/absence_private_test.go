package server

import (
	"net/http"
	"testing"
	"time"
)

// R93: on a mount that goes on without its private upstream, what the public one does not know is not called absent while nobody could look
// at the private one: neither a package, nor one version, nor a file.
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
