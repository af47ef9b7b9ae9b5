// Package npm holds what changes when the npm registry protocol changes: package names and their
// spellings in paths, file names, content negotiation, and the error dialect. It opens no socket
// and decides nothing. Listing documents are in its package packument, documents of releases in
// publication.
package npm

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Ecosystem is the ecosystem's name in [registry.Package].
const Ecosystem = "npm"

// maxName bounds a package name, scope included (npm's own limit).
const maxName = 214

// maxVersion bounds a version or tag (the length limit of npm's semver).
const maxVersion = 256

// ErrName is wrapped by the errors of ParseName.
var ErrName = errors.New("not an npm package name")

// ParseName validates a package name, "name" or "@scope/name", and returns it unchanged. Names that
// new packages may not have any more but old ones have (upper case, the marks ~'!()*) are accepted;
// whatever is not safe in a URL or a path is not.
func ParseName(s string) (string, error) {
	if s == "" || len(s) > maxName {
		return "", fmt.Errorf("%w: %d characters, allowed are 1 to %d", ErrName, len(s), maxName)
	}
	name := s
	if s[0] == '@' {
		scope, rest, found := strings.Cut(s[1:], "/")
		if !found || !plain(scope) {
			return "", fmt.Errorf("%w: %.64q has no valid scope", ErrName, s)
		}
		name = rest
	} else if s[0] == '.' || s[0] == '_' || s == "node_modules" || s == "favicon.ico" {
		return "", fmt.Errorf("%w: %.64q", ErrName, s)
	}
	if !plain(name) {
		return "", fmt.Errorf("%w: %.64q", ErrName, s)
	}
	return s, nil
}

// plain reports whether s is one path segment of URL-safe characters and not a relative one.
func plain(s string) bool {
	if s == "" || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		if !alnum(s[i]) && strings.IndexByte("-_.!~*'()", s[i]) < 0 {
			return false
		}
	}
	return true
}

func alnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// ValidVersion reports whether a version's spelling can be served: it goes into file names and
// URLs, so only the characters of semver (and "_", "~" of old loose versions) are allowed, and it
// begins with a digit or "v" and a digit.
func ValidVersion(s string) bool {
	if len(s) > maxVersion {
		return false
	}
	rest := strings.TrimPrefix(s, "v")
	if rest == "" || rest[0] < '0' || rest[0] > '9' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case alnum(c), c == '.', c == '-', c == '+', c == '_', c == '~':
		default:
			return false
		}
	}
	return true
}

// FilePrefix is what the conventional names of a package's artifacts begin with, "name-" without
// the scope.
func FilePrefix(name string) string { return name[strings.IndexByte(name, '/')+1:] + "-" }

// FileName is the conventional name of a version's artifact, "name-1.0.0.tgz".
func FileName(name, version string) string { return FilePrefix(name) + version + ".tgz" }

// VersionOfFile is the inverse of FileName.
func VersionOfFile(name, file string) (version string, ok bool) {
	rest, ok := strings.CutPrefix(file, FilePrefix(name))
	if !ok {
		return "", false
	}
	version, ok = strings.CutSuffix(rest, ".tgz")
	return version, ok && ValidVersion(version)
}

// ListingPath is the outbound path of a listing. The slash of a scoped name is encoded, as npm
// itself sends it.
func ListingPath(name string) string { return "/" + escape(name, "%2f") }

// ArtifactPath is the conventional outbound path of an artifact, with a literal slash in scoped
// names as in every "tarball" address. Without a file it is what these paths begin with.
func ArtifactPath(name, file string) string {
	return "/" + escape(name, "/") + "/-/" + url.PathEscape(file)
}

// escape makes a name fit for a path, with the slash of a scoped name as given.
func escape(name, slash string) string {
	scope, rest, scoped := strings.Cut(name, "/")
	if !scoped {
		return url.PathEscape(name)
	}
	return url.PathEscape(scope) + slash + url.PathEscape(rest)
}
