package npm

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

// C26, area scoped-encoding: every spelling of a scoped name is the same package; the path is
// matched escaped and decoded once.
func TestScopedSpellings(t *testing.T) {
	for _, path := range []string{"/@angular%2fcommon", "/@angular%2Fcommon", "/@angular/common", "/%40angular%2fcommon", "/%40angular/common", "/@angular%2fcommon/", "/@an%67ular%2fcommon"} {
		route, err := ParsePath(path)
		if err != nil || route.Kind != RouteListing || route.Package.Name != "@angular/common" {
			t.Errorf("ParsePath(%q) = %+v, %v", path, route, err)
		}
	}
	for _, path := range []string{"/@angular/common/-/common-1.0.0.tgz", "/@angular%2fcommon/-/common-1.0.0.tgz", "/%40angular%2Fcommon/-/common%2d1.0.0.tgz"} {
		route, err := ParsePath(path)
		if err != nil || route.Kind != RouteArtifact || route.Package.Name != "@angular/common" || route.File != "common-1.0.0.tgz" || route.Version != "1.0.0" {
			t.Errorf("ParsePath(%q) = %+v, %v", path, route, err)
		}
	}
}

// What is about one package leads to one spelling of its path at a registry.
func TestRoutesOfPackages(t *testing.T) {
	for path, want := range map[string]struct {
		kind                RouteKind
		name, version, rest string
	}{
		"/-/package/x/dist-tags":                      {RouteTags, "x", "", "/-/package/x/dist-tags"},
		"/-/package/@a%2fb/dist-tags":                 {RouteTags, "@a/b", "", "/-/package/@a%2fb/dist-tags"},
		"/-/package/@a/b/dist-tags/":                  {RouteTags, "@a/b", "", "/-/package/@a%2fb/dist-tags"},
		"/-/package/@a%2Fb/dist-tags/next%20one":      {RouteChange, "@a/b", "", "/-/package/@a%2fb/dist-tags/next%20one"},
		"/-/package/x/access":                         {RouteChange, "x", "", "/-/package/x/access"},
		"/x/-rev/1-a":                                 {RouteChange, "x", "", "/x/-rev/1-a"},
		"/@a/b/-rev/1-a":                              {RouteChange, "@a/b", "", "/@a%2fb/-rev/1-a"},
		"/@a%2fb/-/b-1.0.0.tgz/-rev/2-c":              {RouteChange, "@a/b", "", "/@a/b/-/b-1.0.0.tgz/-rev/2-c"},
		"/-/npm/v1/attestations/x@1.0.0":              {RouteAttestations, "x", "1.0.0", ""},
		"/-/npm/v1/attestations/@a%2fb@1.0.0-rc.1%2b": {RouteAttestations, "@a/b", "1.0.0-rc.1+", ""},
		"/-/npm/v1/attestations/@a/b@1.0.0":           {RouteAttestations, "@a/b", "1.0.0", ""},
	} {
		route, err := ParsePath(path)
		if err != nil || route.Kind != want.kind || route.Package.Name != want.name || route.Version != want.version || route.Rest != want.rest {
			t.Errorf("%s: %+v, %v; want %+v", path, route, err, want)
		}
	}
	for _, path := range []string{
		"/-/npm/v1/attestations/x", "/-/npm/v1/attestations/@a%2fb", "/-/npm/v1/attestations/x@latest", "/-/npm/v1/attestations/x@1.0.0@y",
		"/-/package/.x/dist-tags", "/-/package/@a/../dist-tags",
	} {
		if route, err := ParsePath(path); !errors.Is(err, ErrPath) || route != (Route{}) {
			t.Errorf("%s: %+v, %v", path, route, err)
		}
	}
}

// C26: nothing is decoded twice, and no spelling leads out of the mount.
func TestPathsThatAreNone(t *testing.T) {
	for _, path := range []string{
		"", "x", "/@angular%252fcommon", "/%2540angular/common", "/..", "/x/..", "/x/../y", "/%2e%2e", "/%2e%2e%2fetc", "/x/%2e%2e/y", "/@a/..%2f..%2fetc", "/x%2fy",
		"/x/-/..%2fy-1.0.0.tgz", "/x/-/x-1.0.0%2f..%2fy.tgz", "/x/-/y-1.0.0.tgz", "/x/-/x-1.0.0.tgz%00", "/x%00", "/x%", "/x%zz", "//x", "/x//y", "/.git", "/x/%5c", "/x\\y",
		"/x/1.0.0%252f", "/@a%2fb%2fc", "/@a/b%2f-%2fb-1.0.0.tgz", "/" + strings.Repeat("a", 215), "/x/" + strings.Repeat("1", 257), "/" + strings.Repeat("%61", 2000), "/x/^1.0.0",
		"/node_modules", "/favicon.ico", "/-/v1%2fsearch", "/-/%2e%2e/ping",
	} {
		if route, err := ParsePath(path); !errors.Is(err, ErrPath) || route != (Route{}) {
			t.Errorf("ParsePath(%q) = %+v, %v", path, route, err)
		}
	}
}

func TestRoutes(t *testing.T) {
	for path, want := range map[string]Route{
		"/-/ping":                            {Kind: RoutePing},
		"/-/ping/":                           {Kind: RoutePing},
		"/-/v1/search":                       {Kind: RouteSearch},
		"/-/all":                             {Kind: RouteSearch},
		"/-/npm/v1/security/audits/quick":    {Kind: RouteAudit},
		"/-/npm/v1/security/audits":          {Kind: RouteAudit},
		"/-/npm/v1/security/advisories/bulk": {Kind: RouteAdvisories},
		"/-/npm/v1/security/other":           {Kind: RouteService},
		"/-/npm/v1/keys":                     {Kind: RouteKeys},
		"/-/npm/v1/hooks":                    {Kind: RouteService},
		"/-/whoami":                          {Kind: RouteWhoami},
		"/-/package/x":                       {Kind: RouteService},
		"/-/user/org.couchdb.user:x":         {Kind: RouteService},
		"/@scope":                            {},
		"/x/1.0.0/y":                         {},
		"/x/-":                               {},
		"/x/-/x-1.0.0.tgz/y":                 {},
	} {
		if route, err := ParsePath(path); err != nil || route != want {
			t.Errorf("ParsePath(%q) = %+v, %v; want %+v", path, route, err, want)
		}
	}
	for path, version := range map[string]string{"/x/1.0.0": "1.0.0", "/x/latest": "latest", "/@a%2fb/1.0.0-rc.1": "1.0.0-rc.1", "/@a/b/next": "next", "/x/1.0.0%2bb": "1.0.0+b"} {
		if route, err := ParsePath(path); err != nil || route.Kind != RouteVersion || route.Version != version {
			t.Errorf("ParsePath(%q) = %+v, %v", path, route, err)
		}
	}
}

// Whatever the path is, what comes out is safe to put into a URL or a file name, and goes back in
// as the same.
func FuzzParsePath(f *testing.F) {
	for _, path := range []string{"/@a%2fb", "/@a/b/-/b-1.0.0.tgz", "/x/1.0.0", "/%2e%2e/x", "/-/ping", "/@a%252fb", "/x/-/x-1.0.0.tgz"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		route, err := ParsePath(path)
		if err != nil || route.Package.Name == "" {
			return
		}
		if strings.Contains(route.Package.Name, "..") && strings.Contains(route.Package.Name, "/..") && strings.HasSuffix(route.Package.Name, "/..") {
			t.Fatalf("%q leads out: %q", path, route.Package.Name)
		}
		again := ListingPath(route.Package.Name)
		if route.Kind == RouteArtifact {
			again = ArtifactPath(route.Package.Name, route.File)
		} else if route.Kind == RouteVersion {
			again += "/" + url.PathEscape(route.Version)
		}
		if second, err := ParsePath(again); err != nil || second != route {
			t.Fatalf("%q is %+v, and %q of it is %+v, %v", path, route, again, second, err)
		}
	})
}
