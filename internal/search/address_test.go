package search_test

import (
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/search"
)

// S41: which service addresses are taken, and which are not.
func TestEndpoint(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, c := range []struct {
		text     string
		emulator bool
		want     string // "" = refused
	}{
		{"https://demo.search.windows.net", false, "https://demo.search.windows.net"},
		{"https://demo.search.windows.net:443", false, "https://demo.search.windows.net"},
		{"https://a.search.windows.net", false, "https://a.search.windows.net"},
		{"https://my-svc-2.search.windows.net", false, "https://my-svc-2.search.windows.net"},
		{"https://" + long + ".search.windows.net", false, "https://" + long + ".search.windows.net"},
		{"https://" + long + "a.search.windows.net", false, ""},
		{"https://demo.search.windows.net", true, "https://demo.search.windows.net"},
		{"http://demo.search.windows.net", true, ""},
		{"http://demo.search.windows.net", false, ""},
		{"https://demo.search.windows.net/", false, ""},
		{"https://demo.search.windows.net:444", false, ""},
		{"https://demo.search.windows.net:", false, ""},
		{"https://demo.search.windows.net?x=1", false, ""},
		{"https://demo.search.windows.net?", false, ""},
		{"https://demo.search.windows.net#", false, ""},
		{"https://me@demo.search.windows.net", false, ""},
		{"https://Demo.search.windows.net", false, ""},
		{"https://-demo.search.windows.net", false, ""},
		{"https://demo-.search.windows.net", false, ""},
		{"https://de_mo.search.windows.net", false, ""},
		{"https://dé.search.windows.net", false, ""},
		{"https://.search.windows.net", false, ""},
		{"https://a.b.search.windows.net", false, ""},
		{"https://demo.search.windows.net.evil.test", false, ""},
		{"https://evil.test/demo.search.windows.net", false, ""},
		{"https://search.windows.net", false, ""},
		{"https://demo.search.azure.us", false, ""},
		{"demo.search.windows.net", false, ""},
		{"", false, ""},
		{"http://127.0.0.1:8910", true, "http://127.0.0.1:8910"},
		{"http://127.0.0.1:8910", false, ""},
		{"https://localhost:8910", true, "https://localhost:8910"},
		{"http://[::1]:8910", true, "http://[::1]:8910"},
		{"http://127.0.0.1:8910/", true, ""},
		{"http://127.0.0.1:0", true, ""},
		{"http://127.0.0.1:70000", true, ""},
		{"http://192.0.2.1:8910", true, ""},
		{"http://localhost.evil.test:80", true, ""},
		{"ftp://127.0.0.1", true, ""},
	} {
		got, err := search.ParseEndpoint(c.text, c.emulator)
		if c.want == "" {
			if err == nil {
				t.Errorf("%q (emulator %v) was taken as %q", c.text, c.emulator, got)
				continue
			}
			wantCode(t, err, search.CodeEndpointInvalid)
			continue
		}
		if err != nil || got.String() != c.want {
			t.Errorf("%q: %q, %v", c.text, got, err)
		}
	}
}

func service(t *testing.T) search.Service {
	t.Helper()
	endpoint, err := search.ParseEndpoint("https://demo.search.windows.net", false)
	if err != nil {
		t.Fatal(err)
	}
	return search.Service{Endpoint: endpoint, Profile: search.ProfileGA}
}

// S42: how names get into addresses.
func TestNames(t *testing.T) {
	s := service(t)
	for name, key := range map[string]string{
		"manuals":                "('manuals')",
		"a b":                    "('a%20b')",
		"o'neill":                "('o%27%27neill')",
		"a/b?c#d%e":              "('a%2Fb%3Fc%23d%25e')",
		"..":                     "('..')",
		"é":                      "('%C3%A9')",
		"x')/files('y":           "('x%27%27%29%2Ffiles%28%27%27y')",
		strings.Repeat("é", 128): "('" + strings.Repeat("%C3%A9", 128) + "')",
	} {
		got, err := s.ResourceURL(search.KnowledgeSources, name)
		if want := "https://demo.search.windows.net/knowledgesources" + key + "?api-version=2026-10-01"; err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"", strings.Repeat("a", 129), "a\x00b", "a\nb", "\xff"} {
		_, err := s.ResourceURL(search.KnowledgeSources, name)
		wantCode(t, err, search.CodeNameInvalid)
	}
}

// S42: what the client writes, the emulator reads back, whatever the name.
func TestNamesRoundTrip(t *testing.T) {
	b := newBed(t)
	for _, name := range []string{"o'neill", "a/b", "x')/files('y", "mañana %41", ".."} {
		definition := `{"kind":"file","fileParameters":{}}`
		if _, err := b.client.Put(t.Context(), search.KnowledgeSources, name, []byte(definition), search.IfAbsent(), search.Bounds{}); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		got, err := b.client.Get(t.Context(), search.KnowledgeSources, name, search.Bounds{})
		if err != nil || got.Definition["name"] != name {
			t.Errorf("%q came back as %v, %v", name, got, err)
		}
	}
}

// S60: the address of the inventory.
func TestInventoryURL(t *testing.T) {
	got, err := service(t).InventoryURL("manuals")
	if want := "https://demo.search.windows.net/knowledgesources('manuals')/files?api-version=2026-10-01&pageSize=200"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// S61: which continuation links are followed, and which are not.
func TestTrail(t *testing.T) {
	const path = "https://demo.search.windows.net/knowledgesources('manuals')/files"
	first := path + "?api-version=2026-10-01&pageSize=200"
	for link, ok := range map[string]bool{
		path + "?api-version=2026-10-01&$skiptoken=abc":                                                             true,
		path + "?$skiptoken=a%20b&api-version=2026-10-01":                                                           true,
		"https://demo.search.windows.net:443/knowledgesources('manuals')/files?api-version=2026-10-01&$skiptoken=1": true,
		"https://demo.search.windows.net/knowledgesources(%27manuals%27)/files?api-version=2026-10-01&$skiptoken=1": true,
		"https://DEMO.search.windows.net/knowledgesources('manuals')/files?api-version=2026-10-01&$skiptoken=1":     true,
		first: false, // visited
		path + "?api-version=2026-08-01-preview&$skiptoken=1":                                           false,
		path + "?$skiptoken=1":                                                                          false,
		path + "?api-version=2026-10-01&api-version=2026-10-01&$skiptoken=":                             false,
		path + "?api-version=2026-10-01&x=%zz":                                                          false,
		path + "?api-version=2026-10-01#f":                                                              false,
		path + "?api-version=2026-10-01&x=é":                                                            false,
		path + "?api-version=2026-10-01&x= y":                                                           false,
		path + "/?api-version=2026-10-01&$skiptoken=1":                                                  false,
		"http://demo.search.windows.net/knowledgesources('manuals')/files?api-version=2026-10-01":       false,
		"https://demo.search.windows.net:8443/knowledgesources('manuals')/files?api-version=2026-10-01": false,
		"https://me@demo.search.windows.net/knowledgesources('manuals')/files?api-version=2026-10-01":   false,
		"https://evil.test/knowledgesources('manuals')/files?api-version=2026-10-01":                    false,
		"https://demo.search.windows.net/knowledgesources('others')/files?api-version=2026-10-01":       false,
		"/knowledgesources('manuals')/files?api-version=2026-10-01":                                     false,
		"": false,
		path + "?api-version=2026-10-01&x=" + strings.Repeat("a", 9000): false,
	} {
		trail, err := search.NewTrail(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := trail.Follow(link); (err == nil) != ok {
			t.Errorf("Follow(%q) = %v, want ok %v", link, err, ok)
		} else if !ok {
			wantCode(t, err, search.CodeContinuationInvalid)
		} else if trail.Follow(link) == nil {
			t.Errorf("%q was followed twice", link)
		}
	}
}

// S61: no link that passes may lead to another host, whatever its spelling.
func FuzzTrail(f *testing.F) {
	const first = "https://demo.search.windows.net/knowledgesources('m')/files?api-version=2026-10-01&pageSize=200"
	f.Add("https://demo.search.windows.net/knowledgesources('m')/files?api-version=2026-10-01&$skiptoken=1")
	f.Add("https://demo.search.windows.net\\@evil.test/knowledgesources('m')/files?api-version=2026-10-01")
	f.Add("//evil.test/knowledgesources('m')/files?api-version=2026-10-01")
	f.Fuzz(func(t *testing.T, link string) {
		trail, err := search.NewTrail(first)
		if err != nil {
			t.Fatal(err)
		}
		if trail.Follow(link) != nil {
			return
		}
		lower := strings.ToLower(link)
		if !strings.HasPrefix(lower, "https://demo.search.windows.net/") && !strings.HasPrefix(lower, "https://demo.search.windows.net:443/") {
			t.Fatalf("%q was followed", link)
		}
	})
}
