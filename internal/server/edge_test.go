package server

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/edge"

	"github.com/ecluse-gate/ecluse/internal/config"
)

// R39: a caller without a token of the gate hears 401, whatever the upstreams do, and nothing is
// sent; health needs no token.
func TestEdgeTokens(t *testing.T) {
	tokens := []config.Token{{Name: "ci", Secret: config.NewSecret("s3cret")}, {Name: "dev", Secret: config.NewSecret("other")}}
	inWorld(t, Options{Access: edge.Access{Tokens: tokens}}, func(w *world) {
		w.Public.Publish("a", "1.0.0", longAgo, nil)
		w.Public.Always(http.StatusTooManyRequests, "Retry-After", "600")
		w.Get("/npm/other", "Authorization", "Bearer s3cret")
		basic := func(user, password string) string {
			return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
		}
		for _, c := range []struct {
			authorization string
			status, wait  int
		}{
			{"", 401, -1},
			{"Bearer wrong", 401, -1},
			{"Bearer ", 401, -1},
			{"Basic !!", 401, -1},
			{basic("s3cret", ""), 401, -1},
			{"Bearer s3cret", 503, 600},
			{"bearer other", 503, 600},
			{basic("anyone", "s3cret"), 503, 600},
		} {
			for _, path := range []string{"/npm/a", "/pypi/simple/a/"} {
				if path != "/npm/a" && c.status != 401 {
					continue
				}
				a := w.Get(path, "Authorization", c.authorization)
				w.Want(a, c.status, c.wait)
				if (a.Header.Get("WWW-Authenticate") != "") != (c.status == http.StatusUnauthorized) {
					t.Errorf("%q: header %v", c.authorization, a.Header)
				}
			}
		}
		w.Want(w.Get("/livez"), 200, -1)
		if n := w.Public.Count(); n != 1 {
			t.Errorf("the public upstream saw %d requests", n)
		}
	})
}
