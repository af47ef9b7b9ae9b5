package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// SetToken replaces the token that every request must carry from now on; with "" none is asked for.
func (a *Admin) SetToken(token string) {
	if token == "" {
		a.token.Store(nil)
		return
	}
	digest := sha256.Sum256([]byte(token))
	a.token.Store(&digest)
}

// guard stands in front of all that operators reach. Browsers send what the page of a stranger
// wants, also under a name of the stranger's own that leads to this listener (DNS rebinding): names
// that are not this listener's are refused, and so is what another site's page would change. A
// request with the token is nobody's but an operator's, whatever name it uses.
func (a *Admin) guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "another site's page may not send this request to the admin listener", http.StatusForbidden)
	}))
	inner := origin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		token := a.token.Load()
		switch {
		case token == nil && !a.ownHost(r.Host):
			http.Error(w, "this listener does not answer to the name in Host; use its IP address or localhost, "+
				"set the setting admin to that name, or set admin.tokenFile", http.StatusMisdirectedRequest)
		case token != nil && !carries(r, *token):
			h.Set("WWW-Authenticate", `Basic realm="ecluse admin"`)
			http.Error(w, "the admin listener requires the token of admin.tokenFile (as a bearer token, or as the password)", http.StatusUnauthorized)
		default:
			inner.ServeHTTP(w, r)
		}
	})
}

// ownHost reports whether a Host field names this listener: loopback, the configured host, or where
// it listens on all addresses, any address. An address cannot be rebound, only a name can.
func (a *Admin) ownHost(host string) bool {
	host, own := hostOf(host), hostOf(a.opts.Listen)
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "":
		return false
	case host == own, host == "localhost", err == nil && ip.IsLoopback():
		return true
	}
	at, atErr := netip.ParseAddr(own)
	return err == nil && (own == "" || atErr == nil && at.IsUnspecified())
}

// hostOf is the host of host:port, host or [host], in one spelling.
func hostOf(text string) string {
	host, _, err := net.SplitHostPort(text)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// carries reports whether a request has the token: as a bearer token, or as a password, which
// browsers can be asked for.
func carries(r *http.Request, want [sha256.Size]byte) bool {
	scheme, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token := strings.TrimSpace(credential)
	switch strings.ToLower(scheme) {
	case "bearer":
	case "basic":
		raw, err := base64.StdEncoding.DecodeString(token)
		if err != nil {
			return false
		}
		_, token, _ = strings.Cut(string(raw), ":")
	default:
		return false
	}
	digest := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(digest[:], want[:]) == 1
}
