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
		if !addressBytes[rest[i]] {
			return false
		}
	}
	return true
}

// addressBytes are the bytes of plain addresses. A table, because digits and letters alternate in digests too quickly for branches.
var addressBytes = bytesOf("/-_.")

// bytesOf is the set of letters, digits and some other bytes.
func bytesOf(others string) (set [256]bool) {
	for c := range set {
		set[c] = alnum(byte(c)) || strings.IndexByte(others, byte(c)) >= 0
	}
	return set
}
