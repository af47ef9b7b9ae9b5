package page

import (
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// rawFile is an element of "files" before it is known whether it can be served.
type rawFile struct {
	entry
	file, address string
	published     time.Time
	digests       []registry.Digest
	companion     *registry.Companion
	bad           bool
}

// field is a member of a file's object that the specification knows.
type field uint16

const (
	fieldFile field = 1 << iota
	fieldURL
	fieldHashes
	fieldRequires
	fieldCore       // PEP 714
	fieldDistInfo   // PEP 691, which some installers cannot read
	fieldLegacyCore // as the best known index spells it
	fieldSignature
	fieldYanked
	fieldSize
	fieldUploaded
	fieldProvenance
	fieldCompanion = fieldCore | fieldDistInfo | fieldLegacyCore
)

func fieldOf(key string) field {
	switch key {
	case "filename":
		return fieldFile
	case "url":
		return fieldURL
	case "hashes":
		return fieldHashes
	case "requires-python":
		return fieldRequires
	case "core-metadata":
		return fieldCore
	case "dist-info-metadata":
		return fieldDistInfo
	case "data-dist-info-metadata":
		return fieldLegacyCore
	case "gpg-sig":
		return fieldSignature
	case "yanked":
		return fieldYanked
	case "size":
		return fieldSize
	case "upload-time":
		return fieldUploaded
	case "provenance":
		return fieldProvenance
	}
	return 0
}

func (s *scan) files() {
	guess := min(len(s.doc.text)/400, 4096)
	s.raw, s.doc.patches = make([]rawFile, 0, guess), make([]patch, 0, guess)
	s.sums.digests, s.sums.bytes = make([]registry.Digest, 0, 2*guess), make([]byte, 0, 64*guess)
	for s.Element() {
		if len(s.raw) == maxFiles {
			s.Limit(s.Pos(), "more than 100000 files")
			return
		}
		s.raw = append(s.raw, rawFile{})
		s.rawFile(&s.raw[len(s.raw)-1])
	}
}

// rawFile reads one file's object.
func (s *scan) rawFile(r *rawFile) {
	start := uint32(s.Pos())
	first := len(s.doc.patches)
	r.patches[0] = uint32(first)
	var seen field
	var companions companions
	if s.Object() {
		for {
			key, ok := s.Member()
			if !ok {
				break
			}
			f := fieldOf(key)
			r.bad = r.bad || seen&f != 0
			seen |= f
			if f&fieldCompanion != 0 {
				s.companion(r, f, &companions)
			} else {
				s.field(r, f)
			}
		}
	} else {
		s.Skip()
	}
	if s.Peek() == 0 { // the page is refused or cut off: spans say nothing any more
		return
	}
	r.object = s.Since(start)
	if seen&fieldHashes == 0 {
		r.adds |= addHashes
	}
	s.settle(r, &companions)
	r.patches[1] = uint32(len(s.doc.patches))
	r.bad = r.bad || r.address == "" || r.file == ""
}

// field consumes the value of one member.
func (s *scan) field(r *rawFile, f field) {
	start, c := uint32(s.Pos()), s.Peek()
	switch f {
	case fieldFile:
		r.file, _ = s.Text()
	case fieldURL:
		if address, ok := s.Text(); ok {
			r.address = s.links.Absolute(address)
		}
		s.doc.patches = append(s.doc.patches, patch{span: s.Since(start)})
	case fieldHashes:
		if c == 'n' {
			s.doc.patches = append(s.doc.patches, patch{s.Skip(), "{}"})
			return
		}
		var ok bool
		r.digests, ok = s.hashes()
		r.bad = r.bad || !ok
	case fieldRequires:
		r.requires = s.optional(r, c == '"')
	case fieldSignature:
		r.signature = s.optional(r, c == 't' || c == 'f')
	case fieldYanked:
		r.yanked = s.optional(r, c == 't' || c == 'f' || c == '"')
	case fieldSize:
		span := s.optional(r, '0' <= c && c <= '9')
		r.bad = r.bad || strings.ContainsAny(span.Of(s.doc.text), ".eE")
	case fieldUploaded:
		s.uploaded(r)
	case fieldProvenance:
		s.provenance(r)
	default:
		s.Skip()
	}
}

// optional consumes a value that may be null. When it is of no kind that the specification allows,
// the file is bad.
func (s *scan) optional(r *rawFile, allowed bool) listing.Span {
	null := s.Peek() == 'n'
	span := s.Skip()
	if null {
		return listing.Span{}
	}
	r.bad = r.bad || !allowed
	return span
}

// uploaded reads the time of the upload: RFC 3339, in any offset and with any fraction. A string
// that is none leaves the age unknown.
func (s *scan) uploaded(r *rawFile) {
	if s.Peek() == 'n' {
		s.Skip()
		return
	}
	value, ok := s.Text()
	r.bad = r.bad || !ok
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		r.published = t.UTC()
	}
}

// provenance keeps the link to a file's attestations (PEP 740) when it can be asked for: absolute,
// and without a credential in it. Clients get one that leads through the gate.
func (s *scan) provenance(r *rawFile) {
	if s.Peek() != '"' {
		r.provenance = s.optional(r, false)
		return
	}
	start := uint32(s.Pos())
	address, _ := s.Text()
	var outside naming.Links
	span, with := s.Since(start), "null"
	if address != "" && outside.Absolute(address) == address {
		r.provenance, with = span, pypi.ProofSuffix
	}
	s.doc.patches = append(s.doc.patches, patch{span, with})
}

// hashes reads an object of digests.
func (s *scan) hashes() (digests []registry.Digest, ok bool) {
	if !s.Object() {
		s.Skip()
		return nil, false
	}
	first := len(s.sums.digests)
	ok = true
	for {
		algorithm, more := s.Member()
		if !more {
			break
		}
		value, text := s.Text()
		ok = ok && text && s.sums.add(algorithm, value)
	}
	digests, once := s.sums.since(first)
	return digests, ok && once
}
