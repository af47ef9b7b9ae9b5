package npm

import (
	"errors"
	"fmt"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Bounds of a listing beside those of package listing. The largest known have a few thousand versions and some hundred tags.
const (
	maxVersions = 100_000
	maxTags     = 10_000
	maxTop      = 4_096
	maxTimes    = 2 * maxVersions
	maxAddress  = 8_192
)

// Scan reads a listing document of pkg, full or abbreviated, in one strict pass. It keeps body, which must not be changed any more.
//
// The document as a whole is refused, with an error that wraps [registry.ErrMalformed], when it is not one JSON object of valid UTF-8,
// when its name is not pkg's, when "versions" is no object, or when a member that policy depends on is there twice; and with one that
// wraps [registry.ErrTooLarge] when it breaks a bound. A single version is dropped and counted when nothing can be served for it
// safely: no "dist" with a "tarball", a name or version in it that disagrees, an impossible version, or a member that policy depends on
// (the version's key, its publish time, "dist" and others) given twice, of which different readers would take different ones.
func Scan(pkg registry.Package, body []byte) (registry.Document, error) {
	s := scan{Scanner: listing.NewScanner(body), name: pkg.Name, doc: &document{name: pkg.Name, tagIndex: map[string]int{}}}
	s.doc.text = s.Doc()
	s.document()
	if err := s.End(); err != nil {
		return nil, refusal(pkg, err)
	}
	s.finish()
	return s.doc, nil
}

func refusal(pkg registry.Package, err error) error {
	sentinel := registry.ErrMalformed
	if e, ok := errors.AsType[*listing.Error](err); ok && e.Limit {
		sentinel = registry.ErrTooLarge
	}
	return fmt.Errorf("listing of %s: %w: %v", pkg, sentinel, err)
}

// scan is the state of one pass.
type scan struct {
	*listing.Scanner
	name string // the package's
	doc  *document

	raw   []rawVersion
	times []rawTime
	named bool
}

// rawVersion is a member of "versions" before it is known whether it can be served.
type rawVersion struct {
	entry
	version, address, integrity, shasum string
	bad                                 bool
}

// rawTime is a member of "time".
type rawTime struct {
	name, value string
	text        bool // the value is a string
	span        listing.Span
	start       uint32 // of the value
}

func (s *scan) document() {
	if !s.Object() {
		s.Fail(s.Pos(), "not an object")
		return
	}
	var seen [topHidden]bool
	for {
		key, ok := s.Member()
		if !ok {
			break
		}
		start, m := s.Key().Start, member{kind: topKindOf(key), value: uint32(s.Pos())}
		if m.kind != topOther && m.kind != topHidden {
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
	if !s.named {
		s.Fail(0, "no name")
	}
}

func topKindOf(key string) topKind {
	switch key {
	case "name":
		return topName
	case "versions":
		return topVersions
	case "time":
		return topTime
	case "dist-tags":
		return topTags
	case "modified":
		return topModified
	case "_distfiles", "_uplinks":
		return topHidden
	}
	return topOther
}

// member consumes the value of a top-level member.
func (s *scan) member(kind topKind) {
	start := s.Pos()
	switch kind {
	case topName:
		name, ok := s.Text()
		if !ok || name != s.name {
			s.Fail(start, fmt.Sprintf("the document is about %.64q", name))
		}
		s.named = true
	case topVersions:
		if !s.Object() {
			s.Fail(start, "versions is not an object")
			return
		}
		s.versions()
	case topTime:
		s.time()
	case topTags:
		s.tags()
	case topModified:
		if value, ok := s.Text(); ok && s.doc.changed.raw == "" {
			s.doc.changed = stamp{raw: s.Since(uint32(start)).Of(s.doc.text), at: parseTime(value)}
		}
	default:
		s.Skip()
	}
}

func (s *scan) versions() {
	s.raw = make([]rawVersion, 0, min(len(s.doc.text)/1024, 4096))
	for {
		version, ok := s.Member()
		if !ok {
			return
		}
		if len(s.raw) == maxVersions {
			s.Limit(s.Pos(), "more than 100000 versions")
			return
		}
		s.raw = append(s.raw, rawVersion{version: version})
		s.version(&s.raw[len(s.raw)-1])
	}
}

// version reads one version's object.
func (s *scan) version(r *rawVersion) {
	start := s.Key().Start
	r.value = uint32(s.Pos())
	r.runs[0] = uint32(len(s.doc.runs))
	var seen field
	if s.Object() {
		open := false // the member before is kept
		for {
			key, ok := s.Member()
			if !ok {
				break
			}
			from := s.Key().Start
			f := fieldOf(key)
			if seen&f&fieldOnce != 0 {
				r.bad = true
			}
			seen |= f
			s.field(r, f)
			keep := f&fieldKeep != 0
			switch span := s.Since(from); {
			case keep && open:
				s.doc.runs[len(s.doc.runs)-1].End = span.End
			case keep:
				s.doc.runs = append(s.doc.runs, span)
			}
			open = keep
		}
	} else {
		s.Skip()
	}
	r.member = s.Since(start)
	r.runs[1] = uint32(len(s.doc.runs))
	r.bad = r.bad || r.address == "" || !validVersion(r.version)
}

// field consumes the value of one member of a version.
func (s *scan) field(r *rawVersion, f field) {
	switch f &^ fieldKeep {
	case fieldName:
		name, ok := s.Text()
		r.bad = r.bad || !ok || name != s.name
	case fieldVersion:
		version, ok := s.Text()
		r.bad = r.bad || !ok || version != r.version
	case fieldDist:
		s.dist(r)
	case fieldScripts:
		s.scripts(r)
	case fieldInstallScript, fieldGyp:
		if c := s.Peek(); c != 'f' && c != 'n' {
			r.flags |= flagScripts
		}
		s.Skip()
	case fieldDeprecated:
		if span := s.Skip(); span.Len() > 0 && deprecated(span.Of(s.doc.text)) {
			r.flags |= flagDeprecated
		}
	default:
		s.Skip()
	}
}

func deprecated(value string) bool { return value != `""` && value != "false" && value != "null" }

func (s *scan) dist(r *rawVersion) {
	if !s.Object() {
		s.Skip()
		return
	}
	var seen [3]bool
	once := func(i int) {
		r.bad = r.bad || seen[i]
		seen[i] = true
	}
	for {
		key, ok := s.Member()
		if !ok {
			return
		}
		start := uint32(s.Pos())
		switch key {
		case "tarball":
			once(0)
			if address, ok := s.Text(); ok && len(address) <= maxAddress {
				r.address, r.tarball = address, s.Since(start)
			}
		case "integrity":
			once(1)
			r.integrity, _ = s.Text()
		case "shasum":
			once(2)
			r.shasum, _ = s.Text()
		default:
			s.Skip()
		}
	}
}

// scripts looks for the scripts that run at installation.
func (s *scan) scripts(r *rawVersion) {
	if !s.Object() {
		s.Skip()
		return
	}
	for {
		key, ok := s.Member()
		if !ok {
			return
		}
		span := s.Skip()
		switch key {
		case "preinstall", "install", "postinstall":
			if span.Len() > len(`""`) && s.doc.text[span.Start] == '"' {
				r.flags |= flagScripts
			}
		}
	}
}

func (s *scan) time() {
	if !s.Object() {
		s.Skip()
		return
	}
	for {
		name, ok := s.Member()
		if !ok {
			return
		}
		if len(s.times) == maxTimes {
			s.Limit(s.Pos(), "more than 200000 times")
			return
		}
		t := rawTime{name: name, start: uint32(s.Pos())}
		key := s.Key().Start
		t.value, t.text = s.Text()
		t.span = s.Since(key)
		s.times = append(s.times, t)
	}
}

func (s *scan) tags() {
	if !s.Object() {
		s.Skip()
		return
	}
	for {
		name, ok := s.Member()
		if !ok {
			return
		}
		key := s.Key().Of(s.doc.text)
		version, ok := s.Text()
		if !ok {
			continue
		}
		t := tag{key: key, name: name, version: version}
		if i, again := s.doc.tagIndex[name]; again { // the last one counts, as in every JSON reader that clients use
			s.doc.tags[i] = t
			continue
		}
		if len(s.doc.tags) == maxTags {
			s.Limit(s.Pos(), "more than 10000 tags")
			return
		}
		s.doc.tagIndex[name] = len(s.doc.tags)
		s.doc.tags = append(s.doc.tags, t)
	}
}
