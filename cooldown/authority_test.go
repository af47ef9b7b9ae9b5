package cooldown_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/cooldown"
)

func mustParse(tb testing.TB, s string) cooldown.Authority {
	tb.Helper()
	a, err := cooldown.ParseAuthority(s, 443)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// R24 R25 R26 R27: the spellings of one destination are one key.
func TestOneAuthorityManySpellings(t *testing.T) {
	for want, spellings := range map[string][]string{
		"registry.example:443": {
			"registry.example", "REGISTRY.Example", "registry.example.", "registry.example:443", "Registry.Example.:443", "https://registry.example", "HTTPS://registry.example/", "https://registry.example:443/a/b?c#d",
			"https://user:pass@registry.example/x", "https://user@name:p@registry.example", "https://registry.example?x=://other.example", "https://registry.example#@other.example:99", "registry.example/path:99",
		},
		"registry.example:8443":      {"registry.example:8443", "https://registry.example:8443/"},
		"registry.example:80":        {"http://registry.example", "http://registry.example:80/x"},
		"127.0.0.1:443":              {"127.0.0.1", "[::ffff:127.0.0.1]", "::ffff:127.0.0.1", "[::ffff:7f00:1]:443", "https://127.0.0.1/"},
		"[2001:db8::1]:443":          {"2001:db8::1", "[2001:db8::1]", "[2001:DB8:0:0:0:0:0:1]:443", "2001:0db8:0000:0000:0000:0000:0000:0001", "https://[2001:db8:0::1]/x"},
		"[::1]:4873":                 {"[::1]:4873", "http://[0:0:0:0:0:0:0:1]:4873/"},
		"xn--mnchen-3ya.example:443": {"xn--mnchen-3ya.example", "XN--MNCHEN-3YA.example."},
		"1e100.example:443":          {"1e100.example"},
		"a_b.example:443":            {"a_b.example"},
	} {
		for _, spelling := range spellings {
			a, err := cooldown.ParseAuthority(spelling, 443)
			if err != nil || a.String() != want {
				t.Errorf("%q: %v %v, want %s", spelling, a, err, want)
			}
		}
	}
}

// R25 R26: what is ambiguous, or no authority at all, is refused with a reason.
func TestRefusedAuthorities(t *testing.T) {
	for _, s := range []string{
		"", "https://", "https:///path", ":443", "host:", "https://host:/", "host:0", "host:0443", "host:00", "host:65536", "host:99999999999999999999", "host:+1", "host:-1", "host:4 4", "host:４４３", "host:http",
		"127.0.0.01", "0127.0.0.1", "127.1", "127.0.0.1.", "0x7f.0.0.1", "0x7f000001", "2130706433", "256.0.0.1", "1.2.3.4.5", "[::ffff:127.0.0.01]",
		"[::1", "[::1]443", "[::1]:", "[]", "[127.0.0.1]", "[host]", "::1::", "1:2:3", "a..b", ".a", "a..", ".", "..", "a b", "a\tb", "a\nb", "a%62", "münchen.example", "a,b", "a\x00", "host\\x", "https://a@", "a.example/?u=https://b.example", "user@a.example://b", strings.Repeat("a", 300),
	} {
		if a, err := cooldown.ParseAuthority(s, 443); err == nil {
			t.Errorf("%.40q: %v, want an error", s, a)
		} else if len(err.Error()) > 500 {
			t.Errorf("%.40q: an error of %d bytes", s, len(err.Error()))
		}
	}
	if a, err := cooldown.ParseAuthority("host", 0); err == nil {
		t.Errorf("no port and no default: %v", a)
	}
}

// R25 R26 R27: another port or host is another authority; the scheme is not part of the key.
func TestDifferentAuthorities(t *testing.T) {
	seen := map[cooldown.Authority]string{}
	for _, s := range []string{"a.example", "a.example:444", "b.example", "a.example.other", "[::1]", "127.0.0.1"} {
		a := mustParse(t, s)
		if other, ok := seen[a]; ok {
			t.Errorf("%s and %s are the same", s, other)
		}
		seen[a] = s
	}
	if mustParse(t, "http://a.example:443") != mustParse(t, "https://a.example") {
		t.Error("the scheme is part of the key")
	}
}

// R24: the authority of a request is where its URL goes, and the URL type's own quirks do not get
// in the way.
func TestAuthorityOf(t *testing.T) {
	for raw, want := range map[string]string{
		"https://Registry.Example/x":         "registry.example:443",
		"http://registry.example":            "registry.example:80",
		"https://user:pw@registry.example:8": "registry.example:8",
		"https://[::ffff:10.0.0.1]/":         "10.0.0.1:443",
		"https://[fe80::1%25eth0]:80/":       "[fe80::1%eth0]:80",
		"https://reg%69stry.example/":        "",
		"https://registry.example:/":         "",
		"https://registry.example:0443/":     "",
		"ftp://registry.example/":            "",
		"/relative":                          "",
		"https:registry.example":             "",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			continue
		}
		a, err := cooldown.AuthorityOf(u)
		if got := a.String(); want == "" && err == nil || want != "" && (err != nil || got != want) {
			t.Errorf("%s: %s %v, want %q", raw, got, err, want)
		}
	}
}

// The key of a request costs nothing when it is spelled as usual.
func TestAuthorityOfAllocatesNothing(t *testing.T) {
	for _, raw := range []string{"https://registry.example/x", "https://registry.example:8443/x", "http://127.0.0.1:4873/x"} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = cooldown.AuthorityOf(u) }); n != 0 {
			t.Errorf("%s: %v allocations", raw, n)
		}
	}
}

// FuzzParseAuthority: never a panic; what is accepted prints as something that reads back as
// itself.
func FuzzParseAuthority(f *testing.F) {
	for _, s := range []string{"a.example:1", "[::1]:2", "https://u@h:3/", "::ffff:1.2.3.4", "1.2.3.4", "h.", "fe80::1%eth0", "http://a://b"} {
		f.Add(s, uint16(443))
	}
	f.Fuzz(func(t *testing.T, s string, port uint16) {
		a, err := cooldown.ParseAuthority(s, port)
		if err != nil {
			return
		}
		if a.Port == 0 || a.Host == "" {
			t.Fatalf("%q: %#v", s, a)
		}
		again, err := cooldown.ParseAuthority(a.String(), 1)
		if err != nil || again != a {
			t.Fatalf("%q is %v, which reads as %v %v", s, a, again, err)
		}
	})
}
