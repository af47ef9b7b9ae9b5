package pypi

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	for path, want := range map[string]Route{
		"/simple/":     {Kind: RouteIndex},
		"/simple":      {Kind: RouteIndex, Redirect: "/simple/"},
		"/legacy/":     {Kind: RouteUpload},
		"/legacy":      {Kind: RouteUpload},
		"/simple/foo/": {Kind: RouteListing, Package: pkg("foo")},
		"/simple/foo":  {Kind: RouteListing, Package: pkg("foo"), Redirect: "/simple/foo/"},
		// C21
		"/simple/Fluffy.Server/":                 {Kind: RouteListing, Package: pkg("fluffy-server"), Redirect: "/simple/fluffy-server/"},
		"/simple/a__b":                           {Kind: RouteListing, Package: pkg("a-b"), Redirect: "/simple/a-b/"},
		"/simple/f%6fo/":                         {Kind: RouteListing, Package: pkg("foo"), Redirect: "/simple/foo/"},
		"/files/foo/foo-1.0.tar.gz":              {Kind: RouteFile, Package: pkg("foo"), File: "foo-1.0.tar.gz"},
		"/files/Foo_Bar/foo_bar-1.0.tar.gz":      {Kind: RouteFile, Package: pkg("foo-bar"), File: "foo_bar-1.0.tar.gz"},
		"/files/foo/foo-1.0-py3-none-any.whl":    {Kind: RouteFile, Package: pkg("foo"), File: "foo-1.0-py3-none-any.whl"},
		"/files/t/t-1%2Bcu1-py3-none-any.whl":    {Kind: RouteFile, Package: pkg("t"), File: "t-1+cu1-py3-none-any.whl"},
		"/files/t/t-1+cu1-py3-none-any.whl":      {Kind: RouteFile, Package: pkg("t"), File: "t-1+cu1-py3-none-any.whl"},
		"/files/f/f-1-py3-none-any.whl.metadata": {Kind: RouteCompanion, Package: pkg("f"), File: "f-1-py3-none-any.whl"},
		"/files/foo/":                            {},
		"/files":                                 {},
		"/files/foo/foo-1.0.tar.gz/":             {},
		"/simple/foo/bar/":                       {},
		"/simple/foo/foo-1.0.tar.gz":             {},
		"/pypi/foo/json":                         {},
		"/other":                                 {},
	} {
		got, err := ParsePath(path)
		if err != nil || got != want {
			t.Errorf("ParsePath(%q) = %+v, %v, want %+v", path, got, err, want)
		}
	}
	for _, path := range []string{
		"", "simple/", "/", "//", "/simple//", "/simple//foo/", "/simple/../foo/", "/simple/%2e%2e/", "/simple/./", "/simple/%2e/", "/simple/a%2fb/", "/simple/%zz/",
		"/simple/-/", "/simple/a%00/", "/simple/a b/", "/simple/f%25oo/", "/simple/" + strings.Repeat("a", 300) + "/", "/" + strings.Repeat("a", 5000),
		"/files/foo/bar-1.0.tar.gz", "/files/foo/..%2f..%2fetc%2fpasswd", "/files/foo/%2e%2e", "/files/foo/foo-1.0.tar.gz.asc", "/files/-/foo-1.0.tar.gz",
		"/files/foo/foo-1.0.tar.gz.metadata.metadata", "/files/foo/foo-1.0.tar.gz%00", "/files/foo/foo-1.0.tar.gz%3fx", "/files/foo/foo-1%252e0.tar.gz",
	} {
		if got, err := ParsePath(path); !errors.Is(err, ErrPath) || got != (Route{}) {
			t.Errorf("ParsePath(%q) = %+v, %v", path, got, err)
		}
	}
}

// The links that pages carry lead to the files that they name, and a redirect leads to where none
// is needed.
func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"/simple/Foo", "/files/foo/foo-1.0.tar.gz", "/files/foo/foo-1%2B2-py3-none-any.whl.metadata", "/simple/%2e%2e/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		route, err := ParsePath(path)
		if err != nil {
			if route != (Route{}) || !errors.Is(err, ErrPath) {
				t.Fatalf("%+v with %v", route, err)
			}
			return
		}
		if route.Redirect != "" {
			again, err := ParsePath(route.Redirect)
			if again.Redirect != "" || err != nil || again.Kind != route.Kind || again.Package != route.Package {
				t.Fatalf("%q is redirected to %q, which is %+v, %v", path, route.Redirect, again, err)
			}
		}
		if route.File != "" {
			link := FilePath(route.Package.Name, route.File)
			again, err := ParsePath(link)
			if err != nil || again.File != route.File || again.Package != route.Package || again.Kind != RouteFile {
				t.Fatalf("the link %q is %+v, %v", link, again, err)
			}
			if u, err := url.Parse("https://gate.example/pypi" + link); err != nil || u.EscapedPath() != "/pypi"+link {
				t.Fatalf("%q changes in a URL: %v", link, err)
			}
		}
	})
}

// C46: the project is put below the index's base exactly once.
func TestListingPath(t *testing.T) {
	if got := ListingPath("Foo.Bar"); got != "/foo-bar/" || Normalize("Foo.Bar") != "foo-bar" {
		t.Error(got)
	}
}
