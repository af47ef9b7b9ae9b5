package pypi

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// RouteKind says what a request path below the mount asks for.
type RouteKind uint8

// The kinds of routes. The zero value is RouteUnknown.
const (
	// RouteUnknown is a well-formed path that the protocol does not have.
	RouteUnknown RouteKind = iota
	// RouteIndex is the list of all projects, "/simple/".
	RouteIndex
	// RouteListing is a project's page, "/simple/name/".
	RouteListing
	// RouteFile is a file, "/files/name/name-1.0-py3-none-any.whl"; File holds its name.
	RouteFile
	// RouteCompanion is the metadata of a file, the same with ".metadata"; File holds the name of
	// the file that it describes.
	RouteCompanion
	// RouteProof is the provenance of a file, the same with ".provenance".
	RouteProof
	// RouteUpload is "/legacy/".
	RouteUpload
)

// Route is a parsed request path. Fields that the kind does not name are empty.
type Route struct {
	Kind    RouteKind
	Package registry.Package
	// File is the name of a file, decoded.
	File string
	// Redirect is the canonical path below the mount, escaped, when the request spells the path
	// another way (RouteIndex and RouteListing). It is empty when there is nothing to redirect.
	Redirect string
}

// ErrPath is wrapped by the errors of ParsePath; the answer to such a request is 404.
var ErrPath = errors.New("not a path of the Python index protocol")

// maxPath bounds an escaped path: project, file name and every byte escaped.
const maxPath = 4096

// ParsePath reads the escaped request path below the mount ([net/url.URL.EscapedPath]). The path is
// split on its literal slashes and each segment is decoded exactly once. An error means that the
// path is malformed or names something impossible (bad escapes, traversal, invalid names, a file of
// another project); a mere unknown shape is RouteUnknown.
func ParsePath(escaped string) (Route, error) {
	segments, slash, err := decode(escaped)
	if err != nil {
		return Route{}, err
	}
	switch {
	case len(segments) == 1 && segments[0] == "simple":
		return Route{Kind: RouteIndex, Redirect: unless(slash, "/simple/")}, nil
	case len(segments) == 1 && segments[0] == "legacy":
		return Route{Kind: RouteUpload}, nil
	case len(segments) == 2 && segments[0] == "simple":
		name, err := naming.ParseName(segments[1])
		if err != nil {
			return Route{}, fmt.Errorf("%w: %v", ErrPath, err)
		}
		path := "/simple/" + name + "/"
		return Route{Kind: RouteListing, Package: pkg(name), Redirect: unless(escaped == path, path)}, nil
	case len(segments) == 3 && segments[0] == "files" && !slash:
		return fileRoute(segments[1], segments[2])
	}
	return Route{}, nil
}

func fileRoute(project, file string) (Route, error) {
	name, err := naming.ParseName(project)
	if err != nil {
		return Route{}, fmt.Errorf("%w: %v", ErrPath, err)
	}
	file, proof := strings.CutSuffix(file, ProofSuffix)
	key, ok := KeyOfFile(name, file)
	if !ok {
		return Route{}, fmt.Errorf("%w: %.64q is not the name of a file of %s", ErrPath, file, name)
	}
	route := Route{Kind: RouteFile, Package: pkg(name), File: key}
	switch {
	case proof && key != file:
		return Route{}, fmt.Errorf("%w: %.64q has no provenance", ErrPath, file)
	case proof:
		route.Kind = RouteProof
	case key != file:
		route.Kind = RouteCompanion
	}
	return route, nil
}

// ProofSuffix is what the path of a file's provenance ends with.
const ProofSuffix = ".provenance"

func pkg(name string) registry.Package { return registry.Package{Ecosystem: Ecosystem, Name: name} }

func unless(fine bool, path string) string {
	if fine {
		return ""
	}
	return path
}

// decode splits an escaped path and decodes its segments, and reports a trailing slash. No segment
// may hold an encoded slash.
func decode(escaped string) (segments []string, slash bool, err error) {
	if len(escaped) > maxPath {
		return nil, false, fmt.Errorf("%w: longer than %d bytes", ErrPath, maxPath)
	}
	trimmed, ok := strings.CutPrefix(escaped, "/")
	if !ok {
		return nil, false, fmt.Errorf("%w: no leading slash", ErrPath)
	}
	trimmed, slash = strings.CutSuffix(trimmed, "/")
	segments = strings.Split(trimmed, "/")
	for i, raw := range segments {
		segment, err := url.PathUnescape(raw)
		switch {
		case err != nil:
			return nil, false, fmt.Errorf("%w: bad percent-encoding in %.64q", ErrPath, raw)
		case segment == "", segment == ".", segment == "..":
			return nil, false, fmt.Errorf("%w: empty or relative segment", ErrPath)
		case strings.Contains(segment, "/"):
			return nil, false, fmt.Errorf("%w: encoded slash in %.64q", ErrPath, raw)
		}
		segments[i] = segment
	}
	return segments, slash, nil
}
