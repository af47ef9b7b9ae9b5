package search

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Profile is an API version that the client speaks.
type Profile string

// The profiles.
const (
	ProfilePreview Profile = "2026-08-01-preview"
	ProfileGA      Profile = "2026-10-01"
)

// ParseProfile accepts exactly the profiles that the client speaks.
func ParseProfile(text string) (Profile, error) {
	switch p := Profile(text); p {
	case ProfilePreview, ProfileGA:
		return p, nil
	}
	return "", fmt.Errorf("api version %q: use %s or %s", text, ProfilePreview, ProfileGA)
}

// Endpoint is a checked service address. The zero value is not usable.
type Endpoint struct{ base string }

// String gives the address without a final slash.
func (e Endpoint) String() string { return e.base }

const searchDomain = ".search.windows.net"

// ParseEndpoint checks a service address (S41): https, one label of 1 to 60 lower-case letters,
// digits and inner hyphens under search.windows.net, no port but 443, and nothing after it. With
// emulator it may also be an http or https loopback address.
func ParseEndpoint(text string, emulator bool) (Endpoint, error) {
	bad := func(reason string) (Endpoint, error) {
		return Endpoint{}, &Error{Code: CodeEndpointInvalid, Err: Reason(reason)}
	}
	u, err := url.Parse(text)
	if err != nil || len(text) > 300 {
		return bad("it is not a URL")
	}
	if u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#") || u.Opaque != "" {
		return bad("it must end after the host: no path, query, fragment or user name")
	}
	if loopback(u.Hostname()) {
		if !emulator {
			return bad("a loopback address needs --emulator")
		}
		if (u.Scheme != "http" && u.Scheme != "https") || !goodPort(u) {
			return bad("a loopback address is http or https with a port between 1 and 65535")
		}
		return Endpoint{base: u.Scheme + "://" + u.Host}, nil
	}
	label, found := strings.CutSuffix(u.Host, searchDomain)
	if !found {
		label, found = strings.CutSuffix(u.Host, searchDomain+":443")
	}
	if u.Scheme != "https" || !found || !serviceLabel(label) {
		return bad("use https://NAME.search.windows.net")
	}
	return Endpoint{base: "https://" + label + searchDomain}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func goodPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.Atoi(u.Port())
	return err == nil && n >= 1 && n <= 65535
}

func serviceLabel(label string) bool {
	if len(label) < 1 || len(label) > 60 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for _, c := range []byte(label) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Collection names a kind of resource in addresses.
type Collection string

// The collections: two that the tool writes, and the four kinds of children that a knowledge source
// generates.
const (
	KnowledgeSources Collection = "knowledgesources"
	KnowledgeBases   Collection = "knowledgebases"
	Indexes          Collection = "indexes"
	Indexers         Collection = "indexers"
	Skillsets        Collection = "skillsets"
	DataSources      Collection = "datasources"
)

// Service is an endpoint with a profile: everything that addresses depend on.
type Service struct {
	Endpoint Endpoint
	Profile  Profile
}

// CollectionURL is the list address of a collection.
func (s Service) CollectionURL(c Collection) string { return s.url("/" + string(c)) }

// ResourceURL is the exact address of one resource (S42), or a name-invalid error.
func (s Service) ResourceURL(c Collection, name string) (string, error) {
	key, err := escapeName(name)
	if err != nil {
		return "", err
	}
	return s.url("/" + string(c) + key), nil
}

// SourceStatusURL is the address of a source's status.
func (s Service) SourceStatusURL(source string) (string, error) {
	return s.under(KnowledgeSources, source, "/status")
}

// UploadURL is the address that takes the files of a source.
func (s Service) UploadURL(source string) (string, error) {
	return s.under(KnowledgeSources, source, "/files")
}

// FilePageSize is the page size of inventories (S60).
const FilePageSize = 200

// InventoryURL is the address of the first page of a source's files (S60).
func (s Service) InventoryURL(source string) (string, error) {
	address, err := s.UploadURL(source)
	if err != nil {
		return "", err
	}
	return address + "&pageSize=" + strconv.Itoa(FilePageSize), nil
}

func (s Service) under(c Collection, name, rest string) (string, error) {
	key, err := escapeName(name)
	if err != nil {
		return "", err
	}
	return s.url("/" + string(c) + key + rest), nil
}

func (s Service) url(path string) string {
	return s.Endpoint.base + path + "?api-version=" + string(s.Profile)
}

// escapeName turns a name into ('…'): quotes doubled, then every byte but the unreserved ones
// percent-encoded (S42).
func escapeName(name string) (string, error) {
	if n := utf8.RuneCountInString(name); n < 1 || n > 128 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", &Error{Code: CodeNameInvalid, Err: Reason("a name must have 1 to 128 printable characters")}
	}
	var b strings.Builder
	b.WriteString("('")
	for _, c := range []byte(strings.ReplaceAll(name, "'", "''")) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	b.WriteString("')")
	return b.String(), nil
}

// Trail checks the continuation links of one list (S61). It belongs to one inventory and is not for
// concurrent use.
type Trail struct {
	first   *url.URL
	visited map[string]bool
}

// NewTrail begins at the address of the first page, which counts as visited.
func NewTrail(first string) (*Trail, error) {
	u, err := url.Parse(first)
	if err != nil {
		return nil, continuation("the first page has no URL")
	}
	return &Trail{first: u, visited: map[string]bool{first: true}}, nil
}

// Follow checks a link and marks it as visited. The link must then be used exactly as given.
func (t *Trail) Follow(link string) error {
	if t.visited[link] {
		return continuation("the service gave the same link twice")
	}
	if err := sameList(t.first, link); err != nil {
		return err
	}
	t.visited[link] = true
	return nil
}

// sameList checks everything about a link but its novelty: it continues the list and leads nowhere
// else.
func sameList(first *url.URL, link string) error {
	for _, c := range []byte(link) {
		if c <= ' ' || c >= 0x7f {
			return continuation("the link is not plain ASCII")
		}
	}
	u, err := url.Parse(link)
	if err != nil || len(link) > 8<<10 {
		return continuation("the link is not a URL")
	}
	query, err := url.ParseQuery(u.RawQuery)
	version := query["api-version"]
	switch {
	case err != nil || len(version) != 1 || version[0] != first.Query().Get("api-version"):
		return continuation("the link lacks the same api-version")
	case u.User != nil || strings.Contains(link, "#"):
		return continuation("the link contains a user name or a fragment")
	case u.Scheme != first.Scheme || !strings.EqualFold(hostPort(u), hostPort(first)) || u.Path != first.Path:
		return continuation("the link leads to another scheme, host, port or path")
	}
	return nil
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func continuation(reason string) error {
	return &Error{Code: CodeContinuationInvalid, Err: Reason(reason)}
}
