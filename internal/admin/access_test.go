package admin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/admin"
)

// at asks an admin API under a Host, with header fields by name and value in turn.
func (w *world) at(method, host, path string, header ...string) *httptest.ResponseRecorder {
	w.T.Helper()
	r := httptest.NewRequestWithContext(w.T.Context(), method, path, strings.NewReader("[]"))
	r.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	return rec
}

// A name that is not the listener's own is how a page of a stranger reaches it after rebinding: it
// is refused on every path, with a sentence.
func TestOwnHostsAlone(t *testing.T) {
	for _, c := range []struct {
		listen, host string
		own          bool
	}{
		{"127.0.0.1:4874", "127.0.0.1:4874", true},
		{"127.0.0.1:4874", "localhost:4874", true},
		{"127.0.0.1:4874", "LOCALHOST.", true},
		{"127.0.0.1:4874", "127.9.9.9", true},
		{"127.0.0.1:4874", "[::1]:4874", true},
		{"127.0.0.1:4874", "attacker.example:4874", false},
		{"127.0.0.1:4874", "localhost.attacker.example", false},
		{"127.0.0.1:4874", "127.0.0.1.attacker.example", false},
		{"127.0.0.1:4874", "192.0.2.7:4874", false},
		{"127.0.0.1:4874", "", false},
		{"gate.example:4874", "gate.example:4874", true},
		{"gate.example:4874", "Gate.Example", true},
		{"gate.example:4874", "attacker.example", false},
		{"192.0.2.7:4874", "192.0.2.7:4874", true},
		{"192.0.2.7:4874", "192.0.2.8:4874", false},
		{"0.0.0.0:4874", "192.0.2.7:4874", true},
		{"[::]:4874", "[2001:db8::7]:4874", true},
		{":4874", "192.0.2.7:4874", true},
		{":4874", "attacker.example:4874", false},
	} {
		inWorld(t, admin.Options{Listen: c.listen}, func(w *world) {
			for _, path := range []string{"/", "/metrics", "/api/v1/authorities", "/elsewhere"} {
				rec := w.at(http.MethodGet, c.host, path)
				if own := rec.Code != http.StatusMisdirectedRequest; own != c.own {
					t.Errorf("%s asked as %q for %s: %d", c.listen, c.host, path, rec.Code)
				}
				if !c.own && !strings.Contains(rec.Body.String(), "does not answer to the name") {
					t.Errorf("no sentence: %s", rec.Body)
				}
			}
		})
	}
}

// What another site's page sends in an operator's browser changes nothing; the command and the
// listener's own page do.
func TestCrossSiteWrites(t *testing.T) {
	inWorld(t, admin.Options{Listen: "127.0.0.1:4874"}, func(w *world) {
		const own = "127.0.0.1:4874"
		for _, c := range []struct {
			header []string
			status int
		}{
			{nil, 200}, // not a browser
			{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
			{[]string{"Origin", "http://" + own}, 200},
			{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
			{[]string{"Sec-Fetch-Site", "same-site"}, 403},
			{[]string{"Origin", "https://attacker.example"}, 403},
			{[]string{"Origin", "null"}, 403},
		} {
			rec := w.at(http.MethodPost, own, "/api/v1/preview", c.header...)
			if rec.Code != c.status || c.status == 403 && !strings.Contains(rec.Body.String(), "another site") {
				t.Errorf("%v: %d %s", c.header, rec.Code, rec.Body)
			}
			if rec := w.at(http.MethodGet, own, "/", c.header...); rec.Code != 200 || rec.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("GET with %v: %d %v", c.header, rec.Code, rec.Header())
			}
		}
	})
}

// With a token nothing is shown without it, and with it any name will do; one that was replaced no
// longer counts.
func TestAdminToken(t *testing.T) {
	inWorld(t, admin.Options{Listen: "0.0.0.0:4874", Token: "s3cret"}, func(w *world) {
		ask := func(authorization string) int {
			rec := w.at(http.MethodGet, "gate.example:4874", "/metrics", "Authorization", authorization)
			if (rec.Header().Get("WWW-Authenticate") != "") != (rec.Code == http.StatusUnauthorized) {
				t.Errorf("%q: %v", authorization, rec.Header())
			}
			return rec.Code
		}
		for authorization, want := range map[string]int{
			"": 401, "Bearer": 401, "Bearer wrong": 401, "Bearer s3cret": 200, "bearer s3cret": 200, "Digest s3cret": 401,
			// s3cret:
			"Basic !!": 401, "Basic b3BzOnMzY3JldA==": 200 /* ops:s3cret */, "Basic czNjcmV0Og==": 401,
		} {
			if got := ask(authorization); got != want {
				t.Errorf("%q: %d, want %d", authorization, got, want)
			}
		}
		w.admin.SetToken("other")
		if old, now := ask("Bearer s3cret"), ask("Bearer other"); old != 401 || now != 200 {
			t.Errorf("replaced: %d and %d", old, now)
		}
	})
}
