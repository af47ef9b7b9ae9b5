package page

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/pypi/webpage"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Bounds of a page beside those of package listing. The largest projects have some ten thousand
// files.
const (
	maxFiles    = 100_000
	maxReleases = 100_000
	maxTop      = 4_096
)

// Scan reads a project's page, JSON or HTML as its content type says, in one strict pass. It keeps
// src.Body, which must not be changed any more.
//
// The page as a whole is refused, with an error that wraps [registry.ErrMalformed], when it is not
// one JSON object of valid UTF-8 or no HTML page of files, when it is about another project, when
// its version has a major number that is not 1 (PEP 629), when "files" is no array, or when a
// member that matters is there twice; and with one that wraps [registry.ErrTooLarge] when it breaks
// a bound. A single file is dropped and counted when nothing can be served for it safely: a name
// that no file of the project can have, no usable address, a member that the specification knows
// with a value that it does not allow, a member given twice, a digest that the algorithm cannot
// have, or two files of one name with different bytes.
func Scan(pkg registry.Package, src registry.Source) (registry.Document, error) {
	form, err := pypi.FormOf(src)
	if err != nil {
		return nil, refusal(pkg, err)
	}
	doc := &document{name: naming.Normalize(pkg.Name)}
	body := src.Body
	if form == pypi.FormHTML {
		if body, doc.dropped, err = webpage.ToJSON(doc.name, src); err != nil {
			return nil, refusal(pkg, err)
		}
		body = listing.Fit(body)
	} else {
		doc.body = body
	}
	s := scan{Scanner: listing.NewScanner(body), links: naming.NewLinks(src.URL), doc: doc}
	s.doc.text = s.Doc()
	s.document()
	if err := s.End(); err != nil {
		return nil, refusal(pkg, err)
	}
	s.finish()
	return s.doc, nil
}

func refusal(pkg registry.Package, err error) error { return pypi.Refuse("page of "+pkg.String(), err) }

// scan is the state of one pass.
type scan struct {
	*listing.Scanner
	links *naming.Links
	doc   *document

	raw        []rawFile
	sums       sums
	companions []registry.Companion
	releases   map[string]uint32 // key to index in doc.releases
	listed     []string          // "versions", JSON with quotes
	filed      bool              // "files" was there
}

func (s *scan) document() {
	if !s.Object() {
		s.Fail(s.Pos(), "not an object")
		return
	}
	var seen [topLast]bool
	for {
		key, ok := s.Member()
		if !ok {
			break
		}
		start, m := s.Key().Start, member{kind: topKindOf(key), value: uint32(s.Pos())}
		if m.kind != topOther {
			if seen[m.kind] {
				s.Fail(int(start), fmt.Sprintf("member %q twice", key))
				return
			}
			seen[m.kind] = true
		}
		s.member(m.kind)
		if m.span = s.Since(start); len(s.doc.top) == maxTop {
			s.Limit(int(start), "too many members")
			return
		}
		s.doc.top = append(s.doc.top, m)
	}
	if !s.filed {
		s.Fail(0, "no files")
	}
}

func topKindOf(key string) topKind {
	switch key {
	case "meta":
		return topMeta
	case "name":
		return topName
	case "files":
		return topFiles
	case "versions":
		return topVersions
	case "project-status":
		return topStatus
	case "alternate-locations":
		return topLocated
	}
	return topOther
}

// member consumes the value of a top-level member.
func (s *scan) member(kind topKind) {
	start := s.Pos()
	switch kind {
	case topMeta:
		s.meta()
	case topName:
		name, ok := s.Text()
		if !ok || naming.Normalize(name) != s.doc.name {
			s.Fail(start, fmt.Sprintf("the page is for %.64q", name))
		}
	case topFiles:
		if s.filed = s.Array(); !s.filed {
			s.Fail(start, "files is not an array")
			return
		}
		s.files()
	case topVersions:
		s.versionList()
	case topStatus:
		s.status()
	case topLocated:
		s.doc.located = s.texts()
	default:
		s.Skip()
	}
}

// meta reads the metadata of the answer. Without a version it is 1.0 (PEP 629).
func (s *scan) meta() {
	start := uint32(s.Pos())
	if !s.Object() {
		s.Fail(int(start), "meta is not an object")
		return
	}
	for {
		key, ok := s.Member()
		if !ok {
			break
		}
		at := s.Pos()
		switch key {
		case "api-version":
			value, ok := s.Text()
			minor, known := minorOf(value)
			if !ok || !known || !s.doc.api.Empty() {
				s.Fail(at, fmt.Sprintf("the page has protocol version %.32q; only version 1 is supported", value))
				return
			}
			s.doc.api, s.doc.minor = s.Since(uint32(at)), minor
		case "_last-serial":
			if n, err := strconv.ParseInt(s.Skip().Of(s.doc.text), 10, 64); err == nil {
				s.doc.serial = n
			}
		case "tracks":
			s.doc.tracks = s.texts()
		default:
			s.Skip()
		}
	}
	s.doc.meta = s.Since(start)
}

// minorOf reads a version "1.minor" of the protocol.
func minorOf(version string) (minor int, ok bool) {
	rest, ok := strings.CutPrefix(version, "1.")
	if !ok || len(rest) > 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(rest, 10, 16)
	return int(n), err == nil
}

// texts reads an array of strings, up to maxTop of them; other elements are passed over, as is a
// value of another type.
func (s *scan) texts() (list []string) {
	if !s.Array() {
		s.Skip()
		return nil
	}
	for s.Element() {
		if text, ok := s.Text(); ok && len(list) < maxTop {
			list = append(list, text)
		}
	}
	return list
}

// versionList reads the list of releases (PEP 700). Anything but a string in it is passed over.
func (s *scan) versionList() {
	if !s.Array() {
		s.Skip()
		return
	}
	for s.Element() {
		start := uint32(s.Pos())
		if _, ok := s.Text(); !ok {
			continue
		}
		if len(s.listed) == maxReleases {
			s.Limit(int(start), "more than 100000 versions")
			return
		}
		s.listed = append(s.listed, s.Since(start).Of(s.doc.text))
	}
}

func (s *scan) status() {
	if !s.Object() {
		s.Skip()
		return
	}
	for {
		key, ok := s.Member()
		if !ok {
			return
		}
		switch key {
		case "status":
			s.doc.status.status, _ = s.Text()
		case "reason":
			s.doc.status.reason, _ = s.Text()
		default:
			s.Skip()
		}
	}
}
