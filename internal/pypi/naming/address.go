package naming

import (
	"net/url"
	"strings"
)

// maxAddress bounds the address of a file.
const maxAddress = 8_192

// Absolute reads an address against a base, which may be nil, and returns it absolute and without fragment and credential; empty when there
// is no address that could be asked.
func Absolute(base *url.URL, address string) string {
	if plainAddress(address) {
		return address
	}
	if len(address) > maxAddress {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "" {
		return ""
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	out := u.String()
	if len(out) > maxAddress {
		return ""
	}
	return out
}

// plainAddress recognises the addresses of most files, which need no work: absolute, of plain characters, without port, query and dots as
// segments.
func plainAddress(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok || rest == "" || rest[0] == '/' || len(s) > maxAddress || strings.Contains(rest, "/.") {
		return false
	}
	for i := range len(rest) {
		if c := rest[i]; !alnum(c) && c != '/' && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
