package packument

import (
	"errors"
	"fmt"
	"time"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Bounds of a listing beside those of package listing. The largest known have a few thousand
// versions and some hundred tags.
const (
	maxVersions = 100_000
	maxTags     = 10_000
	maxTop      = 4_096
	maxTimes    = 2 * maxVersions
	maxAddress  = 8_192
)

// Scan reads a listing document of pkg, full or abbreviated, in one strict pass. It keeps body,
// which must not be changed any more.
//
// The document as a whole is refused, with an error that wraps [registry.ErrMalformed], when it is
// not one JSON object of valid UTF-8, when its name is not pkg's, when "versions" is no object, or
// when a member that policy depends on is there twice; and with one that wraps
// [registry.ErrTooLarge] when it breaks a bound. A single version is dropped and counted when
// nothing can be served for it safely: no "dist" with a "tarball", a name or version in it that
// disagrees, an impossible version, or a member that policy depends on (the version's key, its
// publish time, "dist" and others) given twice, of which different readers would take different
// ones.
func Scan(pkg registry.Package, body []byte) (registry.Document, error) {
	s := newScan(pkg, body)
	defer s.leave()
	s.document()
	if err := s.End(); err != nil {
		return nil, refusal(pkg, err)
	}
	s.finish()
	return s.doc, nil
}

func newScan(pkg registry.Package, body []byte) scan {
	scanner := listing.NewScanner(body)
	return scan{
		Scanner: scanner, scratch: takeScratch(), name: pkg.Name, prefix: npm.FilePrefix(pkg.Name),
		doc: &document{name: pkg.Name, body: body, text: scanner.Doc(), tagIndex: map[string]int{}},
	}
}

func refusal(pkg registry.Package, err error) error {
	sentinel := registry.ErrMalformed
	if e, ok := errors.AsType[*listing.Error](err); ok && e.Limit {
		sentinel = registry.ErrTooLarge
	}
	return fmt.Errorf("listing of %s: %w: %v", pkg, sentinel, err)
}

// scan is the state of one pass. Everything is kept in a few growing arrays, and strings are looked
// at while they are in the near cache, once.
type scan struct {
	*listing.Scanner
	*scratch
	name   string // the package's
	prefix string // of its artifacts' names
	doc    *document
	named  bool
	seen   [topHidden]bool // kinds of members of the document that may be there once
	bad    int             // versions that cannot be served
}

// rawTime is a member of "time".
type rawTime struct {
	name  string
	at    time.Time
	span  listing.Span
	start uint32 // of the value
	text  bool   // the value is a string
}

func (s *scan) document() {
	if !s.Object() {
		s.Fail(s.Pos(), "not an object")
		return
	}
	for {
		key, ok := s.Member()
		if !ok {
			break
		}
		s.member(key)
	}
	if !s.named {
		s.Fail(0, "no name")
	}
}

// member reads one member of the document, whose key was read.
func (s *scan) member(key string) {
	start, m := s.Key().Start, member{kind: topKindOf(key), value: uint32(s.Pos())}
	if m.kind != topOther && m.kind != topHidden {
		if s.seen[m.kind] {
			s.Fail(int(start), fmt.Sprintf("member %q twice", key))
			return
		}
		s.seen[m.kind] = true
	}
	s.top(m.kind)
	m.span = s.Since(start)
	if len(s.doc.top) == maxTop {
		s.Limit(int(start), "too many members")
		return
	}
	s.doc.top = append(s.doc.top, m)
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

// top consumes the value of a member of the document.
func (s *scan) top(kind topKind) {
	start := s.Pos()
	switch kind {
	case topName:
		name, ok := s.Text()
		if !ok || name != s.name {
			s.Fail(start, fmt.Sprintf("the document is for %.64q", name))
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
	s.reserve(len(s.doc.text))
	for {
		version, ok := s.Member()
		if !ok {
			return
		}
		if len(s.rawVersions) == maxVersions {
			s.Limit(s.Pos(), "more than 100000 versions")
			return
		}
		s.version(version)
	}
}

// spoil withdraws version i.
func (s *scan) spoil(i int) {
	if e := &s.doc.entries[i]; e.flags&flagBad == 0 {
		e.flags |= flagBad
		s.bad++
	}
}

// version reads one version's object.
func (s *scan) version(version string) {
	start := s.Key().Start
	s.rawVersions = append(s.rawVersions, rawVersion{version: version, hash: listing.Hash(version)})
	r := &s.rawVersions[len(s.rawVersions)-1]
	r.value = uint32(s.Pos())
	r.spans[0] = uint32(len(s.spans))
	if s.Object() {
		s.fields(r)
	} else {
		s.Skip()
	}
	r.member = s.Since(start)
	r.spans[1] = uint32(len(s.spans))
	r.digests = uint32(len(s.kinds))
	r.file = s.file(version, r.address)
	core := readCore(version)
	if r.rank = core.rank(); core.known && !core.prerelease {
		r.flags |= flagStable
	}
	if r.address == "" || !npm.ValidVersion(version) {
		r.flags |= flagBad
	}
	if r.flags&flagBad != 0 {
		s.bad++
	}
}

// fields reads the members of a version's object and notes the spans of those that the abbreviated
// form keeps.
func (s *scan) fields(r *rawVersion) {
	var seen field
	open := false // the member before is kept
	for {
		key, ok := s.Member()
		if !ok {
			return
		}
		start, f := s.Key().Start, fieldOf(key)
		s.value(r, f)
		if seen&f&fieldOnce != 0 {
			r.flags |= flagBad
		}
		seen |= f
		keep, span := f&fieldKeep != 0, s.Since(start)
		switch {
		case keep && open:
			s.spans[len(s.spans)-1].End = span.End
		case keep:
			s.spans = append(s.spans, span)
		}
		open = keep
	}
}

// value consumes the value of one member of a version and adds what it says.
func (s *scan) value(r *rawVersion, f field) {
	switch f &^ fieldKeep {
	case fieldName:
		if name, ok := s.Text(); !ok || name != s.name {
			r.flags |= flagBad
		}
	case fieldVersion:
		if version, ok := s.Text(); !ok || version != r.version {
			r.flags |= flagBad
		}
	case fieldDist:
		s.dist(r)
	case fieldScripts:
		s.scripts(r)
	case fieldInstallScript, fieldGyp:
		c := s.Peek()
		if s.Skip(); c != 'f' && c != 'n' {
			r.scripts = true
		}
	case fieldLicense:
		r.license = s.license()
	case fieldDeprecated:
		if v := s.Skip().Of(s.doc.text); v != "" && v != `""` && v != "false" && v != "null" {
			r.flags |= flagDeprecated
		}
	default:
		s.Skip()
	}
}

func (s *scan) dist(r *rawVersion) {
	if !s.Object() {
		s.Skip()
		return
	}
	var seen [3]bool
	var integrity, shasum string
	for {
		key, ok := s.Member()
		if !ok {
			break
		}
		start, which := uint32(s.Pos()), 0
		switch key {
		case "tarball":
			if address, ok := s.Text(); ok && len(address) <= maxAddress {
				r.address, r.tarball = address, s.Since(start)
			}
		case "attestations":
			s.attestations(r)
			continue
		case "integrity":
			which = 1
			integrity, _ = s.Text()
		case "shasum":
			which = 2
			shasum, _ = s.Text()
		default:
			s.Skip()
			continue
		}
		if seen[which] {
			r.flags |= flagBad
		}
		seen[which] = true
	}
	s.digests(integrity, shasum)
}

// attestations finds the address of what is attested of a version.
func (s *scan) attestations(r *rawVersion) {
	if !s.Object() {
		s.Skip()
		return
	}
	for {
		key, ok := s.Member()
		if !ok {
			return
		}
		if start := uint32(s.Pos()); key == "url" && s.Peek() == '"' {
			s.Skip()
			r.attested = s.Since(start)
			continue
		}
		s.Skip()
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
				r.scripts = true
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
		var value string
		if value, t.text = s.Text(); t.text {
			t.at = parseTime(value)
		}
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
		// the last one counts, as in every JSON reader that clients use
		if i, again := s.doc.tagIndex[name]; again {
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
