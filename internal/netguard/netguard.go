// Package netguard knows which addresses lie on internal networks. It resolves nothing and dials
// nothing.
package netguard

import (
	"net/netip"
	"strings"
)

// internalRanges are the networks where something of ours may listen (IANA special-purpose address
// registries). Ranges that are set aside for documents and benchmarks lead nowhere, and transparent
// proxies hand out addresses of theirs for public names.
func internalRanges() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.168.0.0/16", "224.0.0.0/4", "240.0.0.0/4",
		"::/127", "100::/64", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	} {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// Internal reports whether an address lies on an internal or special network, also as an IPv4
// address inside an IPv6 one (mapped, compatible, NAT64, 6to4).
func Internal(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	for _, p := range internalRanges() {
		if p.Contains(ip) {
			return true
		}
	}
	if v4, ok := embedded(ip); ok {
		return Internal(v4)
	}
	return false
}

// embedded is the IPv4 address that an IPv6 one leads to.
func embedded(ip netip.Addr) (netip.Addr, bool) {
	if ip.Is4() {
		return netip.Addr{}, false
	}
	b := ip.As16()
	at := -1
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(ip), netip.MustParsePrefix("::/96").Contains(ip):
		at = 12
	case netip.MustParsePrefix("64:ff9b:1::/48").Contains(ip):
		// local NAT64: RFC 8215, address in the last 32 bits for /96 translators
		at = 12
	case netip.MustParsePrefix("2002::/16").Contains(ip):
		at = 2
	}
	if at < 0 {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b[at : at+4])), true
}

// Numeric reports whether a host name ends in a label that some readers take for a number ("127.1",
// "0x7f.1", "2130706433"), so that they would take the name for an address. Real addresses are for
// netip.ParseAddr.
func Numeric(host string) bool {
	label := host[strings.LastIndexByte(host, '.')+1:]
	digits, isHex := strings.CutPrefix(strings.ToLower(label), "0x")
	return label != "" && !strings.ContainsFunc(digits, func(r rune) bool {
		return !('0' <= r && r <= '9' || isHex && 'a' <= r && r <= 'f')
	})
}
