package npm

import (
	"errors"
	"fmt"
	"time"

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
	return scanWith(pkg, body, halving{large, middle})
}

func scanWith(pkg registry.Package, body []byte, how halving) (registry.Document, error) {
	if doc := how.halves(pkg, body); doc != nil {
		return doc, nil
	}
	s := newScan(pkg, body, listing.NewScanner(body))
	s.document()
	if err := s.End(); err != nil {
		return nil, refusal(pkg, err)
	}
	s.finish()
	return s.doc, nil
}

func newScan(pkg registry.Package, body []byte, scanner *listing.Scanner) scan {
	return scan{
		Scanner: scanner, name: pkg.Name, prefix: base(pkg.Name) + "-",
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

// scan is the state of one pass. Everything is kept in a few growing arrays, and strings are looked at while they are in the near
// cache, once.
type scan struct {
	*listing.Scanner
	name   string // the package's
	prefix string // of its artifacts' names
	doc    *document
	named  bool
	half   *half // the second one; nil if there is none
	second bool  // this is the second half
	joined bool  // the second half has been adopted

	// One element per version, next to those of doc.versions and doc.entries.
	artifacts []registry.Artifact
	ends      []ends

	files   []byte // the artifacts' names, one after the other
	digests digests
	times   []rawTime
	bad     int // versions that cannot be served
}

// ends says where a version's share of the arrays ends.
type ends struct{ files, digests uint32 }

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
	n := s.expected()
	if s.half != nil {
		n /= 2
	}
	s.reserve(n)
	for s.half == nil || s.Pos() != s.half.at {
		if !s.nextVersion() {
			return
		}
	}
	s.adopt(s.half)
}

// expected is about how many versions the document has.
func (s *scan) expected() int { return min(len(s.doc.text)/1400+16, 4096) }

// nextVersion reads one member of "versions", if there is one more.
func (s *scan) nextVersion() bool {
	version, ok := s.Member()
	if !ok {
		return false
	}
	if len(s.doc.versions) == maxVersions {
		s.Limit(s.Pos(), "more than 100000 versions")
		return false
	}
	e, a, facts := s.version(version)
	if e.flags&flagBad != 0 {
		s.bad++
	}
	s.doc.entries = append(s.doc.entries, e)
	s.doc.versions = append(s.doc.versions, facts)
	s.artifacts = append(s.artifacts, a)
	s.files = append(append(append(s.files, s.prefix...), version...), ".tgz"...)
	s.ends = append(s.ends, ends{uint32(len(s.files)), uint32(len(s.digests.all))})
	if !s.second {
		s.index(len(s.doc.versions) - 1)
	}
	return true
}

// index notes the place of version i, and spoils both if its key was there before.
func (s *scan) index(i int) {
	if first, again := s.doc.names.Add(s.doc.version(i), s.doc.version); again {
		s.spoil(first)
		s.spoil(i)
	}
}

// reserve makes room for n versions.
func (s *scan) reserve(n int) {
	s.doc.versions, s.doc.entries = make([]registry.Version, 0, n), make([]entry, 0, n)
	s.doc.runs = make([]listing.Span, 0, 4*n)
	s.artifacts, s.ends = make([]registry.Artifact, 0, n), make([]ends, 0, n)
	s.files = make([]byte, 0, n*(len(s.name)+16))
	s.digests = digests{all: make([]registry.Digest, 0, 2*n), sums: make([]byte, 0, 84*n)} // a sha512 and a sha1 each
}

// spoil withdraws version i.
func (s *scan) spoil(i int) {
	if e := &s.doc.entries[i]; e.flags&flagBad == 0 {
		e.flags |= flagBad
		s.bad++
	}
}

// version reads one version's object.
func (s *scan) version(version string) (entry, registry.Artifact, registry.Version) {
	start := s.Key().Start
	r := reading{version: version}
	r.value = uint32(s.Pos())
	r.runs[0] = uint32(len(s.doc.runs))
	if s.Object() {
		s.fields(&r)
	} else {
		s.Skip()
	}
	r.member = s.Since(start)
	r.runs[1] = uint32(len(s.doc.runs))
	if r.bad || r.artifact.URL == "" || !validVersion(version) {
		r.flags |= flagBad
	}
	return r.entry, r.artifact, registry.Version{Version: version, InstallScripts: r.scripts, License: r.license}
}

// reading is the version that is being read.
type reading struct {
	entry
	version      string
	license      string
	artifact     registry.Artifact
	scripts, bad bool
}

// fields reads the members of a version's object and notes the runs of those that the abbreviated form keeps.
func (s *scan) fields(r *reading) {
	var seen field
	open := false // the member before is kept
	for {
		key, ok := s.Member()
		if !ok {
			return
		}
		from := s.Key().Start
		f := fieldOf(key)
		if seen&f&fieldOnce != 0 {
			r.bad = true
		}
		seen |= f
		s.field(r, f)
		keep := f&fieldKeep != 0
		switch {
		case keep && open:
			s.doc.runs[len(s.doc.runs)-1].End = s.Since(from).End
		case keep:
			s.doc.runs = append(s.doc.runs, s.Since(from))
		}
		open = keep
	}
}

// field consumes the value of one member of a version.
func (s *scan) field(r *reading, f field) {
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
			r.scripts = true
		}
		s.Skip()
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

func (s *scan) dist(r *reading) {
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
				r.artifact.URL, r.tarball = address, s.Since(start)
			}
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
		r.bad = r.bad || seen[which]
		seen[which] = true
	}
	s.digests.add(integrity, shasum)
}

// scripts looks for the scripts that run at installation.
func (s *scan) scripts(r *reading) {
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
