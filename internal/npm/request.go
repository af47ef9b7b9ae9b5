package npm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// RouteKind says what a request path below the mount asks for.
type RouteKind uint8

// The kinds of routes. The zero value is RouteUnknown.
const (
	// RouteUnknown is a well-formed path that the protocol does not have.
	RouteUnknown RouteKind = iota
	// RouteListing is a package's document, "/name".
	RouteListing
	// RouteVersion is one version's object, "/name/1.0.0" or "/name/tag"; Version holds the version
	// or tag.
	RouteVersion
	// RouteArtifact is a file, "/name/-/name-1.0.0.tgz"; File holds its name and Version the
	// version in it.
	RouteArtifact
	// RoutePing is "/-/ping".
	RoutePing
	// RouteSearch is "/-/v1/search" and its predecessor "/-/all".
	RouteSearch
	// RouteAdvisories is the bulk question of audits, RouteAudit the older one with the whole tree.
	RouteAdvisories
	RouteAudit
	// RouteKeys is the keys that versions are signed with, RouteAttestations what is attested of a
	// version.
	RouteKeys
	RouteAttestations
	// RouteWhoami asks who the caller is.
	RouteWhoami
	// RouteTags is a package's dist-tags.
	RouteTags
	// RouteChange is what else there is of one package (tags one by one, access, "-rev"); Rest is
	// its path at a registry, escaped.
	RouteChange
	// RouteService is any other endpoint below "/-/" (login, tokens, hooks).
	RouteService
)

// Route is a parsed request path. Fields that the kind does not name are empty.
type Route struct {
	Kind    RouteKind
	Package registry.Package
	// File is the artifact's name, decoded.
	File string
	// Version is a version, or for RouteVersion also a tag, decoded.
	Version string
	// Rest is a path, escaped.
	Rest string
}

// ErrPath is wrapped by the errors of ParsePath; the answer to such a request is 404.
var ErrPath = errors.New("not a path of the npm registry protocol")

// maxPath bounds an escaped path: name, file name and every byte escaped.
const maxPath = 4096

// ParsePath reads the escaped request path below the mount ([net/url.URL.EscapedPath]). The path is
// split on its literal slashes and each segment is decoded exactly once, so "/@scope%2fname",
// "/@scope%2Fname", "/@scope/name" and "/%40scope%2fname" are one package, and "/@scope%252fname"
// is none. An error means that the path is malformed or names something impossible (bad escapes,
// traversal, invalid names); a mere unknown shape is RouteUnknown.
func ParsePath(escaped string) (Route, error) {
	segments, err := decode(escaped)
	if err != nil {
		return Route{}, err
	}
	if segments[0] == "-" && len(segments) > 1 {
		return service(segments[1:])
	}
	name, rest := segments[0], segments[1:]
	if strings.HasPrefix(name, "@") && !strings.Contains(name, "/") {
		if len(rest) == 0 && plain(name[1:]) {
			return Route{}, nil // "/@scope" alone
		} else if len(rest) == 0 {
			return Route{}, fmt.Errorf("%w: %.64q", ErrPath, name)
		}
		name, rest = name+"/"+rest[0], rest[1:]
	}
	if name, err = ParseName(name); err != nil {
		return Route{}, fmt.Errorf("%w: %v", ErrPath, err)
	}
	route := Route{Package: registry.Package{Ecosystem: Ecosystem, Name: name}}
	switch {
	case len(rest) == 0:
		route.Kind = RouteListing
	case len(rest) == 1 && rest[0] != "-":
		if len(rest[0]) > maxVersion || !plain(strings.ReplaceAll(rest[0], "+", "-")) {
			return Route{}, fmt.Errorf("%w: %.64q is neither a version nor a tag", ErrPath, rest[0])
		}
		route.Kind, route.Version = RouteVersion, rest[0]
	case len(rest) == 2 && rest[0] == "-":
		version, ok := VersionOfFile(name, rest[1])
		if !ok {
			return Route{}, fmt.Errorf("%w: %.64q is not the name of an artifact of %s", ErrPath, rest[1], name)
		}
		route.Kind, route.File, route.Version = RouteArtifact, rest[1], version
	case len(rest) == 2 && rest[0] == "-rev":
		route.Kind, route.Rest = RouteChange, ListingPath(name)+escapeAll(rest)
	case len(rest) == 4 && rest[0] == "-" && rest[2] == "-rev":
		route.Kind, route.Rest = RouteChange, ArtifactPath(name, rest[1])+escapeAll(rest[2:])
	default:
		return Route{}, nil
	}
	return route, nil
}

// decode splits an escaped path and decodes its segments. Only the first segment may hold an
// encoded slash (a scoped name); one trailing slash is ignored.
func decode(escaped string) ([]string, error) {
	if len(escaped) > maxPath {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrPath, maxPath)
	}
	trimmed, ok := strings.CutPrefix(escaped, "/")
	if !ok {
		return nil, fmt.Errorf("%w: no leading slash", ErrPath)
	}
	segments := strings.Split(strings.TrimSuffix(trimmed, "/"), "/")
	for i, raw := range segments {
		segment, err := url.PathUnescape(raw)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: bad percent-encoding in %.64q", ErrPath, raw)
		case segment == "", segment == ".", segment == "..":
			return nil, fmt.Errorf("%w: empty or relative segment", ErrPath)
		case i > 0 && strings.Contains(segment, "/") && (segments[0] != "-" || segment[0] != '@'):
			// services take "@scope/name" further back
			return nil, fmt.Errorf("%w: encoded slash in %.64q", ErrPath, raw)
		}
		segments[i] = segment
	}
	return segments, nil
}

// service tells the endpoints below "/-/" apart.
func service(segments []string) (Route, error) {
	switch path := strings.Join(segments, "/"); {
	case path == "ping":
		return Route{Kind: RoutePing}, nil
	case path == "whoami":
		return Route{Kind: RouteWhoami}, nil
	case path == "v1/search", path == "all", strings.HasPrefix(path, "all/"):
		return Route{Kind: RouteSearch}, nil
	case path == "npm/v1/security/advisories/bulk":
		return Route{Kind: RouteAdvisories}, nil
	case path == "npm/v1/security/audits", path == "npm/v1/security/audits/quick":
		return Route{Kind: RouteAudit}, nil
	case path == "npm/v1/keys":
		return Route{Kind: RouteKeys}, nil
	case strings.HasPrefix(path, "npm/v1/attestations/"):
		return attestations(strings.TrimPrefix(path, "npm/v1/attestations/"))
	case segments[0] == "package" && len(segments) > 2:
		return ofPackage(segments[1:])
	}
	return Route{Kind: RouteService}, nil
}

// attestations reads "name@version".
func attestations(of string) (Route, error) {
	i := strings.LastIndexByte(of, '@')
	name, err := ParseName(of[:max(i, 0)])
	if err != nil || !ValidVersion(of[i+1:]) {
		return Route{}, fmt.Errorf("%w: %.64q is not a package with a version", ErrPath, of)
	}
	return Route{Kind: RouteAttestations, Package: registry.Package{Ecosystem: Ecosystem, Name: name}, Version: of[i+1:]}, nil
}

// ofPackage reads what stands behind "/-/package/": a name, with its slash encoded or not, and
// more.
func ofPackage(segments []string) (Route, error) {
	name, rest := segments[0], segments[1:]
	if strings.HasPrefix(name, "@") && !strings.Contains(name, "/") {
		name, rest = name+"/"+rest[0], rest[1:]
	}
	name, err := ParseName(name)
	if err != nil {
		return Route{}, fmt.Errorf("%w: %v", ErrPath, err)
	}
	route := Route{Kind: RouteChange, Package: registry.Package{Ecosystem: Ecosystem, Name: name}}
	if len(rest) == 1 && rest[0] == "dist-tags" {
		route.Kind = RouteTags
	}
	route.Rest = "/-/package" + ListingPath(name) + escapeAll(rest)
	return route, nil
}

func escapeAll(segments []string) string {
	var out strings.Builder
	for _, s := range segments {
		out.WriteString("/" + url.PathEscape(s))
	}
	return out.String()
}

// AttestationsPath is where the attestations of a version are; without a version it is what these
// paths begin with.
func AttestationsPath(name, version string) string {
	return "/-/npm/v1/attestations" + ListingPath(name) + "@" + version
}

// The representations of a listing.
const (
	// FormFull is the whole document.
	FormFull = "full"
	// FormAbbreviated is the document with only what installing needs.
	FormAbbreviated = "abbreviated"
	// FormTags is the dist-tags alone.
	FormTags = "tags"
)

const (
	typeFull        = "application/json"
	typeAbbreviated = "application/vnd.npm.install-v1+json"
)

// ContentType is the media type of a form; "" for a form that there is not.
func ContentType(form string) string {
	switch form {
	case FormFull:
		return typeFull
	case FormAbbreviated:
		return typeAbbreviated
	}
	return ""
}

// maxAccept bounds an Accept field; a longer one gets the full form.
const maxAccept = 4096

// Negotiate chooses the form for an Accept field value (several fields joined by commas). The
// abbreviated form must be asked for by name and at least as strongly as JSON, by the quality
// values of RFC 9110, section 12.5.1; of equal ones the first named wins. Anything else, also no
// field at all, gets the full form, which carries the publish times that age gates of clients need.
func Negotiate(accept string) (form string) {
	if len(accept) > maxAccept {
		return FormFull
	}
	var abbreviated, full quality
	for i, part := range strings.Split(accept, ",") {
		media, params, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(media)) {
		case typeAbbreviated:
			abbreviated.offer(3, q(params), i)
		case typeFull:
			full.offer(3, q(params), i)
		case "application/*":
			full.offer(2, q(params), i)
		case "*/*":
			full.offer(1, q(params), i)
		}
	}
	if abbreviated.q > full.q || abbreviated.q > 0 && abbreviated.q == full.q && (full.rank < 3 || abbreviated.at < full.at) {
		return FormAbbreviated
	}
	return FormFull
}

// quality is the most specific media range that matches a type.
type quality struct {
	rank, q, at int
}

func (b *quality) offer(rank, q, at int) {
	if rank > b.rank {
		*b = quality{rank, q, at}
	}
}

// q reads the quality value, in thousandths. A malformed one counts as 0: what cannot be understood
// is not preferred.
func q(params string) int {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return 0
		}
		return int(f * 1000)
	}
	return 1000
}

// ErrorBody is a refusal in npm's dialect: a JSON object with the reason in "error".
func ErrorBody(message string) []byte {
	body, _ := json.Marshal(struct { // strings cannot fail
		Error string `json:"error"`
	}{message})
	return body
}
