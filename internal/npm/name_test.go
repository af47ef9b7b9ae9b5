package npm

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	for _, name := range []string{
		"a", "lodash", "left-pad", "JSONStream", "express.js", "x_y", "~tilde", "a'b", "semver!", "1", "-", "@a/b", "@scope/name", "@Scope/Name",
		"@s/.dot", "@s/_under", "@types/node", strings.Repeat("a", 214), "@s/node_modules",
	} {
		if got, err := ParseName(name); err != nil || got != name {
			t.Errorf("ParseName(%q) = %q, %v", name, got, err)
		}
	}
	for _, name := range []string{
		"", ".", "..", ".a", "_a", "a/b", "@", "@/", "@/a", "@a", "@a/", "@a/b/c", "@a/..", "@../b", "@./b", "a b", "a\x00", "a%2fb", "%40a/b", "a\\b",
		"é", "@é/b", "a?b", "a#b", "a:b", "a@1", "node_modules", "favicon.ico", strings.Repeat("a", 215), "a\n", "../etc/passwd",
	} {
		if _, err := ParseName(name); !errors.Is(err, ErrName) {
			t.Errorf("ParseName(%q) = %v", name, err)
		}
	}
}

// Names, files and paths are inverse to each other.
func TestPathsAreInverse(t *testing.T) {
	for _, name := range []string{"left-pad", "@acme/x", "JSONStream", "~tilde", "@s/a(b)", "a-1.0.0", "@Scope/.dot"} {
		for _, version := range []string{"1.0.0", "0.0.1-beta.1", "1.0.0-1", "10.20.30+build.5", "2.0.0-rc-1"} {
			file := FileName(name, version)
			if got, ok := VersionOfFile(name, file); !ok || got != version {
				t.Errorf("VersionOfFile(%q, %q) = %q, %v", name, file, got, ok)
			}
			route, err := ParsePath(ArtifactPath(name, file))
			if err != nil || route.Kind != RouteArtifact || route.Package.Name != name || route.File != file || route.Version != version {
				t.Errorf("ParsePath(%q) = %+v, %v", ArtifactPath(name, file), route, err)
			}
		}
		route, err := ParsePath(ListingPath(name))
		if err != nil || route.Kind != RouteListing || route.Package.Name != name || route.Package.Ecosystem != "npm" {
			t.Errorf("ParsePath(%q) = %+v, %v", ListingPath(name), route, err)
		}
		if _, err := url.Parse("https://r.example" + ListingPath(name)); err != nil {
			t.Error(err)
		}
	}
	if got := ListingPath("@scope/name"); got != "/@scope%2fname" {
		t.Errorf("ListingPath = %q", got)
	}
	if got := ArtifactPath("@scope/name", "name-1.0.0.tgz"); got != "/@scope/name/-/name-1.0.0.tgz" {
		t.Errorf("ArtifactPath = %q", got)
	}
}

func TestVersionOfFile(t *testing.T) {
	for _, file := range []string{"", "x", "x-1.0.0", "x-.tgz", "x-1.0.0.tar.gz", "y-1.0.0.tgz", "x-latest.tgz", "x-1/../2.tgz", "x-1.0.0%2f.tgz", "x-1 .tgz", "x--1.0.0.tgz"} {
		if version, ok := VersionOfFile("x", file); ok {
			t.Errorf("VersionOfFile(x, %q) = %q", file, version)
		}
	}
	if _, ok := VersionOfFile("@s/x", "s-1.0.0.tgz"); ok {
		t.Error("the scope is taken for the name")
	}
}
