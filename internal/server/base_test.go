package server

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// C37: what a proxy says of the address that the client used counts only from the proxies that are
// trusted, and only what the proxy itself added.
func TestForwardedAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	const proxy, stranger = "10.1.2.3:1234", "192.0.2.7:1234"
	for _, c := range []struct {
		name, peer, proto, host, want string
		trusted                       []netip.Prefix
	}{
		{"both", proxy, "https", "npm.example.com", "https://npm.example.com", trusted},
		{"with a port", proxy, "https", "npm.example.com:8443", "https://npm.example.com:8443", trusted},
		{"over IPv6", "[2001:db8::7]:1234", "https", "[2001:db8::1]:8443", "https://[2001:db8::1]:8443", trusted},
		{"an IPv4 peer on an IPv6 socket", "[::ffff:10.1.2.3]:1234", "https", "npm.example.com", "https://npm.example.com", trusted},
		{"the scheme alone", proxy, "HTTPS", "", "https://gate.test", trusted},
		{"the host alone", proxy, "", "npm.example.com", "http://npm.example.com", trusted},
		{"what the client claimed comes first", proxy, "http, https", "attacker.example, npm.example.com", "https://npm.example.com", trusted},
		{"a stranger", stranger, "https", "attacker.example", "http://gate.test", trusted},
		{"nobody is trusted", proxy, "https", "attacker.example", "http://gate.test", nil},
		{"no address", "@", "https", "attacker.example", "http://gate.test", trusted},
		{"another scheme", proxy, "javascript", "npm.example.com", "http://npm.example.com", trusted},
		{"a path", proxy, "https", "npm.example.com/x", "https://gate.test", trusted},
		{"user information", proxy, "https", "user@npm.example.com", "https://gate.test", trusted},
		{"a quotation mark", proxy, "https", "npm.example.com\"", "https://gate.test", trusted},
		{"a query", proxy, "https", "npm.example.com?x", "https://gate.test", trusted},
		{"no name", proxy, "https", ":443", "https://gate.test", trusted},
	} {
		inWorld(t, Options{TrustedProxies: c.trusted}, func(w *world) {
			w.Public.Publish("a", "1.0.0", longAgo, nil)
			r := request(w.T.Context(), "/npm/a")
			r.Host, r.RemoteAddr = "gate.test", c.peer
			for name, value := range map[string]string{"X-Forwarded-Proto": c.proto, "X-Forwarded-Host": c.host} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			rec := newRecorder()
			w.server.Handler().ServeHTTP(rec, r)
			if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `"`+c.want+fileA+`"`) {
				t.Errorf("%s: %d %.400s, want a link to %s", c.name, rec.Code, rec.Body, c.want)
			}
		})
	}
	inWorld(t, Options{TrustedProxies: trusted, PublicURL: "https://set.example.com"}, func(w *world) {
		r := request(w.T.Context(), "/npm/a")
		r.RemoteAddr = proxy
		r.Header.Set("X-Forwarded-Host", "npm.example.com")
		if got := w.server.base(r); got != "https://set.example.com" {
			t.Errorf("with publicURL: %s", got)
		}
	})
}
