package upstream

import (
	"net/url"
	"testing"
)

// Whatever the upstream's address, what is told by the beginning of an address is what reading the
// whole of it says.
func FuzzOwns(f *testing.F) {
	for _, base := range []string{"https://files.pythonhosted.org", "http://127.0.0.1:9/x/", "https://H.example:443/", "http://[::1]:80", "https://u:p@h/", "http://[fe80::1%25a]/"} {
		for _, address := range []string{
			"https://files.pythonhosted.org/packages/ab/x-1.0.tar.gz", "http://127.0.0.1:9/x#y?z", "https://h.example/x", "http://[::1]:80/a%zz",
			"https://files.pythonhosted.org@evil.example/x", "https://files.pythonhosted.org:443/x", "https://files.pythonhosted.org.evil.example/x",
			"http://127.0.0.1:9\\@evil.example/", "https://u:p@h/x", "http://[fe80::1%25a]/x", "https://files.pythonhosted.org/x\x00", "",
		} {
			f.Add(base, address, false)
			f.Add(base, address, true)
		}
	}
	client := New(Options{})
	f.Cleanup(client.Close)
	f.Fuzz(func(t *testing.T, base, address string, below bool) {
		u, err := url.Parse(base)
		if err != nil {
			return
		}
		p, err := client.Public(u, Encoded)
		if err != nil {
			return
		}
		if below {
			address = p.root + address
		}
		if _, owned := p.Owned(address); p.Owns(address) != owned {
			t.Fatalf("%q of %q: %t, want %t", address, base, !owned, owned)
		}
	})
}

func TestOwns(t *testing.T) {
	client := New(Options{})
	defer client.Close()
	p, err := client.Public(&url.URL{Scheme: "https", Host: "files.example", Path: "/x/"}, Encoded)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"https://files.example/a/b.whl": true, "https://files.example:443/a": true, "https://FILES.example/a": true, "https://files.example": true,
		"https://files.example/a%2Bb?c#d": true, "https://files.example/a%zz": false, "http://files.example/a": false,
		"https://files.example:444/a": false, "https://files.example@evil.example/a": false, "https://u@files.example/a": false,
		"https://files.example.evil.example/a": false, "/a": false, "https://files.example/\n": false,
	} {
		if got := p.Owns(address); got != want {
			t.Errorf("%q: %t", address, got)
		}
	}
	addresses := testing.AllocsPerRun(10, func() { p.Owns("https://files.example/packages/ab/cd/x-1.0.tar.gz") })
	if addresses > 0 {
		t.Errorf("%v allocations for a plain address", addresses)
	}
}
