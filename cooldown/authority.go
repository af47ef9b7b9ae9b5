package cooldown

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Authority is a destination that is dialled: the key of all state. Two authorities are the same if
// and only if they are equal (==). Make one with ParseAuthority or AuthorityOf, which bring host
// names and addresses into their one canonical form.
type Authority struct {
	// Host is a lower-case DNS name without a trailing dot (punycode as given), or an IP address in
	// canonical form without brackets.
	Host string
	// Port is 1 to 65535.
	Port uint16
}

// String is "host:port", with brackets around an IPv6 address.
func (a Authority) String() string {
	port := strconv.Itoa(int(a.Port))
	if strings.Contains(a.Host, ":") {
		return "[" + a.Host + "]:" + port
	}
	return a.Host + ":" + port
}

const (
	portHTTP  = 80
	portHTTPS = 443
)

// ParseAuthority reads "host", "host:port", "[ipv6]:port", a bare IP address or a URL, of which
// only scheme, host and port are used (RFC 3986 section 3.2). A missing port means 443 for https,
// 80 for http and otherwise defaultPort; with a defaultPort of 0 it is an error. Userinfo is
// ignored; a caller that must refuse it has to check for itself.
func ParseAuthority(s string, defaultPort uint16) (Authority, error) {
	rest := s
	if scheme, after, ok := strings.Cut(s, "://"); ok {
		if strings.ContainsAny(scheme, "/?#@:[] ") {
			return Authority{}, fmt.Errorf("authority %q: no scheme before ://", bounded(s))
		}
		rest = after
		switch strings.ToLower(scheme) {
		case "https":
			defaultPort = portHTTPS
		case "http":
			defaultPort = portHTTP
		}
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	a, err := parseHostPort(rest, defaultPort)
	if err != nil {
		return Authority{}, fmt.Errorf("authority %q: %w", bounded(rest), err)
	}
	return a, nil
}

// AuthorityOf is the authority that a request for an http or https URL dials. It allocates nothing
// for a host in canonical form.
func AuthorityOf(u *url.URL) (Authority, error) {
	var port uint16
	switch u.Scheme {
	case "https":
		port = portHTTPS
	case "http":
		port = portHTTP
	default:
		return Authority{}, fmt.Errorf("authority of a URL with scheme %q: want http or https", bounded(u.Scheme))
	}
	a, err := parseHostPort(u.Host, port)
	if err != nil {
		return Authority{}, fmt.Errorf("authority %q: %w", bounded(u.Host), err)
	}
	return a, nil
}

// bounded cuts foreign text for an error message.
func bounded(s string) string {
	const limit = 300
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}

func parseHostPort(s string, port uint16) (Authority, error) {
	host, digits, explicit, err := splitHostPort(s)
	if err != nil {
		return Authority{}, err
	}
	if explicit {
		if port, err = parsePort(digits); err != nil {
			return Authority{}, err
		}
	}
	if port == 0 {
		return Authority{}, errors.New("no port: write host:port")
	}
	if s[0] == '[' {
		host, err = canonicalIPv6(host)
	} else {
		host, err = canonicalHost(host)
	}
	return Authority{Host: host, Port: port}, err
}

// splitHostPort takes off the port and the brackets. A bare IPv6 address, full of colons, has no
// port.
func splitHostPort(s string) (host, port string, explicit bool, err error) {
	if s == "" {
		return "", "", false, errors.New("no host")
	}
	if s[0] == '[' {
		host, after, closed := strings.Cut(s[1:], "]")
		if !closed {
			return "", "", false, errors.New("no closing bracket")
		}
		port, explicit = strings.CutPrefix(after, ":")
		if after != "" && !explicit {
			return "", "", false, fmt.Errorf("%q after the closing bracket", bounded(after))
		}
		return host, port, explicit, nil
	}
	host, port, explicit = strings.Cut(s, ":")
	if strings.Contains(port, ":") {
		return s, "", false, nil
	}
	return host, port, explicit, nil
}

// parsePort reads a decimal port from 1 to 65535 without leading zeros (RFC 3986 allows more; two
// spellings of one port would be two keys, or one key for what is refused by others).
func parsePort(digits string) (uint16, error) {
	n := 0
	for i := range len(digits) {
		c := digits[i] - '0'
		if c > 9 || n > 65535 {
			return 0, fmt.Errorf("port %q: want a number from 1 to 65535", bounded(digits))
		}
		n = n*10 + int(c)
	}
	if n < 1 || n > 65535 || digits[0] == '0' {
		return 0, fmt.Errorf("port %q: want a number from 1 to 65535 without leading zeros", bounded(digits))
	}
	return uint16(n), nil
}

func canonicalIPv6(host string) (string, error) {
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Is4() {
		return "", errors.New("no IPv6 address between the brackets")
	}
	if strings.ContainsFunc(addr.Zone(), notUnreserved) {
		return "", errors.New("odd character in the zone of the IPv6 address: want letters, digits, - . _ ~")
	}
	return addr.Unmap().String(), nil
}

// notUnreserved is true of what a zone identifier may not consist of (RFC 6874 section 2).
func notUnreserved(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("-._~", r)
}

// canonicalHost is the one spelling of a DNS name or of an IP address without brackets.
func canonicalHost(host string) (string, error) {
	if strings.Contains(host, ":") {
		return canonicalIPv6(host)
	}
	name := strings.TrimSuffix(host, ".")
	if name == "" || len(name) > 253 {
		return "", fmt.Errorf("host of %d characters: want 1 to 253", len(name))
	}
	upper, label := false, 0 // label is where the last one begins
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		case c >= 'A' && c <= 'Z':
			upper = true
		case c == '.':
			if i == label || i == len(name)-1 {
				return "", errors.New("empty label in the host name")
			}
			label = i + 1
		case c >= 0x80:
			return "", errors.New("host name with non-ASCII characters: write it in punycode (xn--…)")
		default:
			return "", fmt.Errorf("character %q in the host name", c)
		}
	}
	if upper {
		name = strings.ToLower(name)
	}
	if !looksNumeric(name[label:]) {
		return name, nil
	}
	// Resolvers differ on 127.1, 0x7f.1 and 010.0.0.1; only the four plain octets have one meaning.
	if _, err := netip.ParseAddr(host); err != nil {
		return "", errors.New("ambiguous IPv4 address: want four decimal octets without leading zeros")
	}
	return host, nil
}

// looksNumeric reports whether the last label would make a resolver read the name as an IPv4
// address: digits only, or hexadecimal.
func looksNumeric(label string) bool {
	if label[0] < '0' || label[0] > '9' {
		return false
	}
	if rest, hex := strings.CutPrefix(label, "0x"); hex {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
