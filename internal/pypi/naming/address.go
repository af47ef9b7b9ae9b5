package naming

import (
	"cmp"
	"net/url"
	"strings"
)

// maxAddress bounds the address of a file.
const maxAddress = 8_192

// Links reads the links of a document. It remembers where the last one led from, because those of a
// document mostly lead the same way; it is not safe for concurrent use. The zero value reads
// absolute links alone.
type Links struct {
	base *url.URL
	way  string // the beginning of a relative link: "/", or any number of "../"
	lead string // where that leads to, ending with a slash; empty for nowhere
}

// NewLinks reads links against a base, which may be nil.
func NewLinks(base *url.URL) *Links { return &Links{base: base} }

// Absolute reads a link and returns it absolute and without fragment and credential; empty when
// there is no address that could be asked.
func (l *Links) Absolute(address string) string {
	if plainAddress(address) {
		return address
	}
	if way, rest, ok := cutWay(address); ok && l.base != nil {
		if l.way != way || l.lead == "" {
			l.way, l.lead = way, absolute(l.base, cmp.Or(way, "./"))
		}
		if l.lead != "" && len(l.lead)+len(rest) <= maxAddress {
			return l.lead + rest
		}
	}
	return absolute(l.base, address)
}

// absolute is Absolute without shortcuts.
func absolute(base *url.URL, address string) string {
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

// plainAddress recognises the addresses of most files, which need no work: absolute, of plain
// characters, without query and dots as segments.
func plainAddress(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	if !ok || len(s) > maxAddress {
		return false
	}
	host, path, _ := strings.Cut(rest, "/")
	if name, port, ok := strings.Cut(host, ":"); ok && port != "" && strings.Trim(port, "0123456789") == "" {
		host = name
	}
	return host != "" && plainBytes(host) && path != "" && plainPath(path)
}

// cutWay takes the way from the base off a relative link, when what remains is a plain path that
// leads no way back.
func cutWay(s string) (way, rest string, ok bool) {
	if len(s) > maxAddress {
		return "", "", false
	}
	rest = strings.TrimPrefix(s, "/")
	if len(rest) == len(s) {
		for strings.HasPrefix(rest, "../") {
			rest = rest[len("../"):]
		}
	}
	return s[:len(s)-len(rest)], rest, rest != "" && plainPath(rest)
}

// plainPath reports whether a path, without the slash that it begins with, is of plain characters
// and has no segment that is empty or begins with a dot. The last segment may be empty.
func plainPath(path string) bool {
	before := byte('/')
	for i := range len(path) {
		c := path[i]
		if !addressBytes[c] || before == '/' && (c == '/' || c == '.') {
			return false
		}
		before = c
	}
	return true
}

func plainBytes(s string) bool {
	for i := range len(s) {
		if !addressBytes[s[i]] {
			return false
		}
	}
	return true
}

// addressBytes are the bytes of plain addresses. A table, because digits and letters alternate in
// digests too quickly for branches.
var addressBytes = bytesOf("/-_.")

// bytesOf is the set of letters, digits and some other bytes.
func bytesOf(others string) (set [256]bool) {
	for c := range set {
		set[c] = alnum(byte(c)) || strings.IndexByte(others, byte(c)) >= 0
	}
	return set
}
