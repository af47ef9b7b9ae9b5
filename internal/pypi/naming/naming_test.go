package naming

import (
	"net/url"
	"strings"
	"testing"

	pep440 "github.com/aquasecurity/go-pep440-version"
)

// C21: names are compared as PEP 503 says.
func TestNormalize(t *testing.T) {
	for spelled, want := range map[string]string{
		"foo": "foo", "Fluffy.Server": "fluffy-server", "a__b--c..d": "a-b-c-d", "A-_.B": "a-b", "zope.interface": "zope-interface",
		"x": "x", "": "", "9to5": "9to5", "a-b": "a-b", "a--b": "a-b",
	} {
		if got := Normalize(spelled); got != want {
			t.Errorf("Normalize(%q) = %q, want %q", spelled, got, want)
		}
		if again := Normalize(want); again != want {
			t.Errorf("Normalize(%q) = %q: not idempotent", want, again)
		}
		if name, err := ParseName(spelled); spelled != "" && (err != nil || name != want) {
			t.Errorf("ParseName(%q) = %q, %v", spelled, name, err)
		}
	}
}

func TestParseNameRefuses(t *testing.T) {
	for _, spelled := range []string{"", "-a", "a-", ".", "..", "_", "a b", "a/b", "ä", "a\x00b", "a%20b", "@a/b", "a+b", strings.Repeat("a", 215)} {
		if name, err := ParseName(spelled); err == nil {
			t.Errorf("ParseName(%q) = %q", spelled, name)
		}
	}
}

func TestNormalizeVersion(t *testing.T) {
	for spelled, want := range map[string]string{
		"1": "1", "1.0": "1.0", "01.02": "1.2", "1.0.0": "1.0.0", "v1.0": "1.0", " 1.0 ": "1.0", "2013.3": "2013.3",
		"1.0a": "1.0a0", "1.0-ALPHA.1": "1.0a1", "1.0_beta_2": "1.0b2", "1.0c1": "1.0rc1", "1.0preview3": "1.0rc3", "1.0pre": "1.0rc0",
		"1.0-1": "1.0.post1", "1.0r4": "1.0.post4", "1.0-rev": "1.0.post0", "1.0.POST5": "1.0.post5", "1.0post": "1.0.post0",
		"1.0dev": "1.0.dev0", "1.0-dev01": "1.0.dev1", "1.0a1.post2.dev3": "1.0a1.post2.dev3", "1.0a1-2": "1.0a1.post2",
		"1!2.0": "1!2.0", "0!1.0": "1.0", "01!1.0": "1!1.0", "1.0+Ubuntu-1": "1.0+ubuntu.1", "2.0+cu118": "2.0+cu118", "1+001": "1+1",
		"20230101120000999999999999": "20230101120000999999999999", "1.0.dev20230101": "1.0.dev20230101", "0": "0", "0.0": "0.0",
	} {
		if got, ok := NormalizeVersion(spelled); !ok || got != want {
			t.Errorf("NormalizeVersion(%q) = %q, %v, want %q", spelled, got, ok, want)
		}
		if again, ok := NormalizeVersion(want); !ok || again != want {
			t.Errorf("NormalizeVersion(%q) = %q, %v: not idempotent", want, again, ok)
		}
	}
	for _, spelled := range []string{
		"", "a", "1.", ".1", "1..2", "2004d", "1.0-x", "1.0+", "1.0+a..b", "1.0+a.", "1.0+ä", "1!", "!1", "1.0a1b2", "1.0.post1.post2", "1 .0", "-1",
		"1.0-beta-2-3-4", "1.0.linux-x86", strings.Repeat("1", 129),
	} {
		if got, ok := NormalizeVersion(spelled); ok {
			t.Errorf("NormalizeVersion(%q) = %q", spelled, got)
		}
	}
}

func TestEqualKey(t *testing.T) {
	for _, equal := range [][]string{
		{"1", "1.0", "1.0.0", "v01.00"},
		{"0", "0.0"},
		{"1.0a1", "1a1", "1.0.0alpha1"},
		{"1.0.post1", "1-1", "1.0-1"},
		{"1.0.dev1", "1dev1"},
		{"1!1.0", "1!1"},
		{"1.0+x", "1+X"},
		{"10"},
		{"100"},
		{"1.10", "1.10.0"},
		{"1.0.1"},
		{"2004D", "2004d"},
	} {
		for _, v := range equal {
			if got := EqualKey(v); got != EqualKey(equal[0]) {
				t.Errorf("EqualKey(%q) = %q, that of %q is %q", v, got, equal[0], EqualKey(equal[0]))
			}
		}
	}
	if EqualKey("10") == EqualKey("1") || EqualKey("1.10") == EqualKey("1.1") || EqualKey("1!1") == EqualKey("1") {
		t.Error("different versions have one key")
	}
}

// A second implementation agrees about what is a version and which are equal. It does not normalise
// separators in local versions.
func FuzzNormalizeVersion(f *testing.F) {
	for _, seed := range []string{"1.0", "1!2.0.post3.dev4+a.1", "v1-alpha.5", "2004d", "1.0rc", "1.0-1", "1.0a-1", "1.0--1", "1.0+0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := NormalizeVersion(s)
		if ok {
			if again, ok := NormalizeVersion(got); !ok || again != got {
				t.Fatalf("NormalizeVersion(%q) = %q, then %q, %v", s, got, again, ok)
			}
			if EqualKey(s) != EqualKey(got) {
				t.Fatalf("the keys of %q and %q differ", s, got)
			}
		}
		for i := range len(s) {
			if s[i] > 127 || s[i] < ' ' || len(s) > 18 { // where the other one has other limits
				return
			}
		}
		other, err := pep440.Parse(s)
		if (err == nil) != ok {
			t.Fatalf("NormalizeVersion(%q) = %q, %v; the other implementation says %v", s, got, ok, err)
		}
		if ok && !strings.Contains(s, "+") && other.String() != got {
			t.Fatalf("NormalizeVersion(%q) = %q; the other implementation says %q", s, got, other)
		}
	})
}

func TestAbsolute(t *testing.T) {
	base, err := url.Parse("https://pypi.org/simple/x/")
	if err != nil {
		t.Fatal(err)
	}
	onTheWay := NewLinks(base) // remembers what others led to
	for address, want := range map[string]string{
		"https://files.pythonhosted.org/packages/ab/cd/x-1.0.tar.gz":   "https://files.pythonhosted.org/packages/ab/cd/x-1.0.tar.gz",
		"../../packages/ab/x-1.0.tar.gz":                               "https://pypi.org/packages/ab/x-1.0.tar.gz",
		"x-1.0.tar.gz":                                                 "https://pypi.org/simple/x/x-1.0.tar.gz",
		"/x-1.0.tar.gz#sha256=00":                                      "https://pypi.org/x-1.0.tar.gz",
		"//h.example/x-1.0.tar.gz":                                     "https://h.example/x-1.0.tar.gz",
		"http://h.example/a/../x-1.0.tar.gz":                           "http://h.example/x-1.0.tar.gz",
		"https://user:secret@h.example/x-1.0.tar.gz":                   "https://h.example/x-1.0.tar.gz",
		"https://h.example:8443/x-1.0.tar.gz?sig=a%2Fb":                "https://h.example:8443/x-1.0.tar.gz?sig=a%2Fb",
		"https://h.example/torch-2.0%2Bcu118.whl":                      "https://h.example/torch-2.0%2Bcu118.whl",
		"HTTPS://h.example/x":                                          "https://h.example/x",
		"https://[::1]/x":                                              "https://[::1]/x",
		"ftp://h.example/x-1.0.tar.gz":                                 "",
		"file:///etc/x-1.0.tar.gz":                                     "",
		"javascript:alert(1)//x-1.0.tar.gz":                            "",
		"data:text/html,x-1.0.tar.gz":                                  "",
		"https:x-1.0.tar.gz":                                           "",
		"https:///x-1.0.tar.gz":                                        "",
		"https://h.example:port/x":                                     "",
		"https://h.example/%zz":                                        "",
		"https://h.example/\x00":                                       "",
		"https://" + strings.Repeat("a", maxAddress) + ".example/x.gz": "",
		"https://h.example/?" + strings.Repeat("a", maxAddress):        "",
	} {
		for _, links := range []*Links{NewLinks(base), onTheWay} {
			if got := links.Absolute(address); got != want {
				t.Errorf("Absolute(%.80q) = %q, want %q", address, got, want)
			}
		}
	}
	if got := NewLinks(nil).Absolute("x-1.0.tar.gz"); got != "" {
		t.Errorf("relative to nothing: %q", got)
	}
}

// What is recognised without work is what the work would give, whatever the page's address and
// whatever was read before.
func FuzzAbsolute(f *testing.F) {
	for _, base := range []string{"https://pypi.org/simple/x/", "http://u:p@h:80/a%2Fb/c?q#f", "https://h", "//h/", "/x", "mailto:x", "https://H/*"} {
		f.Add(base, "../../packages/ab/x-1.0.tar.gz", "../../../../x.whl")
		f.Add(base, "https://files.pythonhosted.org/packages/ab/x-1.0.tar.gz", "http://127.0.0.1:8080/x//y")
		f.Add(base, "/x-1.0.tar.gz", "..//x/../y")
		f.Add(base, "x-1.0.tar.gz", "https://h:/x")
		f.Add(base, "http://h:99999/x", "https://-/..")
	}
	f.Fuzz(func(t *testing.T, base, first, second string) {
		u, err := url.Parse(base)
		if err != nil {
			u = nil
		}
		links := NewLinks(u)
		for _, address := range []string{first, second, first} {
			if got, want := links.Absolute(address), absolute(u, address); got != want {
				t.Fatalf("%q against %q: %q, want %q", address, base, got, want)
			}
		}
	})
}
