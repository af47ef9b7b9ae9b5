package server

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// base is the address under which this client reaches the gate: what is configured, or what the
// client used, since clients refuse files of another origin than their registry's (C37).
func (s *Server) base(r *http.Request) string {
	if s.opts.PublicURL != "" {
		return s.opts.PublicURL
	}
	scheme, host := "http", r.Host
	if s.trusts(r.RemoteAddr) {
		if proto := strings.ToLower(forwarded(r.Header, "X-Forwarded-Proto")); proto == "http" || proto == "https" {
			scheme = proto
		}
		if name := forwarded(r.Header, "X-Forwarded-Host"); isHost(name) {
			host = name
		}
	}
	return scheme + "://" + host
}

// trusts reports whether the peer at an address is one of the proxies.
func (s *Server) trusts(peer string) bool {
	at, err := netip.ParseAddrPort(peer)
	if err != nil {
		return false
	}
	ip := at.Addr().Unmap().WithZone("")
	for _, p := range s.opts.TrustedProxies {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// forwarded is the value that the proxy itself added: the last one. What stands before it is what
// the proxy was told.
func forwarded(h http.Header, name string) string {
	values := h.Values(name)
	if len(values) == 0 {
		return ""
	}
	last := values[len(values)-1]
	return strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
}

// isHost reports whether a text is host or host:port and nothing else.
func isHost(text string) bool {
	u, err := url.Parse("http://" + text + "/")
	return err == nil && u.Host == text && u.Hostname() != "" && u.User == nil && !strings.ContainsAny(text, "\"'<>&")
}
