// Package page reads the pages of projects in a Python index and renders views of them, in both
// forms (PEP 503 HTML, PEP 691 JSON), from one document that keeps the text, spans and facts.
//
// Both forms become one document: an HTML page is read into the JSON form first. One entry of a
// document is one file, so that a file that was added later to an old release is judged by its own
// age.
package page

import (
	"reflect"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// document is a scanned project page: its JSON text (of an HTML page, the text it was read into),
// where the parts of it that views touch are, and the facts. It is a [registry.Document] and
// immutable. One entry is one file.
type document struct {
	name     string // the project's
	body     []byte // what was read, if text is the same; else nil
	text     string // spans refer to it
	versions []registry.Version
	entries  []entry // entries[i] belongs to versions[i]
	patches  []patch
	names    listing.Names
	dropped  int

	top      []member
	releases []release
	meta     listing.Span // the object; empty when there is none
	api      listing.Span // the value of its api-version, with quotes
	minor    int          // of that version, 1.minor
	status   status
	tracks   []string // addresses of the same project elsewhere, as both sides say it (PEP 708)
	located  []string
	serial   int64
}

// entry is where a file is in the text. Spans of values are empty when the member is missing or
// null.
type entry struct {
	object     listing.Span
	requires   listing.Span
	yanked     listing.Span
	core       listing.Span // what is advertised of a companion, under whichever key
	signature  listing.Span
	provenance listing.Span
	patches    [2]uint32 // the range of document.patches inside object, in order
	release    uint32    // index in document.releases
	adds       adds
}

// adds are the members that a rendering adds to a file's object.
type adds uint8

const (
	addHashes adds = 1 << iota
	addCore
	addLegacyCore
)

// patch replaces a piece of the text. One without a replacement stands for the file's link.
type patch struct {
	span listing.Span
	with string
}

// release is a version that files belong to.
type release struct {
	key string // that equal versions share
	// JSON, with quotes: as the page's own list has it, else as the first file has it
	spelling string
}

// status is the project's (PEP 792).
type status struct{ status, reason string }

// member is one member of the top-level object.
type member struct {
	kind  topKind
	span  listing.Span // key and value
	value uint32       // start of the value
}

type topKind uint8

const (
	topOther topKind = iota
	topMeta
	topName
	topFiles
	topVersions
	topStatus
	topLocated
	topLast
)

// Versions implements [registry.Document]: one entry for each file, with the release that it
// belongs to as the version.
func (d *document) Versions() []registry.Version { return d.versions }

// Lookup implements [registry.Document]; the key is a file's name.
func (d *document) Lookup(file string) int { return d.names.Lookup(file, d.file) }

func (d *document) file(i int) string { return d.versions[i].Artifacts[0].File }

// Dropped implements [registry.Document].
func (d *document) Dropped() int { return d.dropped }

// Source implements [registry.Document]. A page that came as HTML is kept as the JSON text that it
// was read into.
func (d *document) Source() []byte { return d.body }

// Cost implements [registry.Document]: the text, the index and the facts.
func (d *document) Cost() int64 {
	perFile := reflect.TypeFor[registry.Version]().Size() + reflect.TypeFor[registry.Artifact]().Size() + reflect.TypeFor[entry]().Size()
	cost := int64(max(cap(d.body), len(d.text))) + int64(perFile)*int64(len(d.versions)) +
		int64(reflect.TypeFor[patch]().Size())*int64(cap(d.patches)) +
		64*int64(len(d.top)+len(d.releases)) + int64(reflect.TypeFor[document]().Size())
	last := ""
	for i := range d.versions {
		v := &d.versions[i]
		a := &v.Artifacts[0]
		cost += digestCost(a.Digests) + int64(listing.Beside(d.text, a.File)+listing.Beside(d.text, a.URL))
		if v.Version != last { // the files of a release share it
			last = v.Version
			cost += int64(listing.Beside(d.text, last))
		}
		if a.Companion != nil {
			cost += int64(reflect.TypeFor[registry.Companion]().Size()) + digestCost(a.Companion.Digests)
		}
	}
	return cost + cost/64 + d.names.Cost() // the heap rounds sizes up
}

func digestCost(digests []registry.Digest) (cost int64) {
	for _, g := range digests {
		cost += int64(reflect.TypeFor[registry.Digest]().Size()) + int64(len(g.Sum))
	}
	return cost
}

// Serial is the number of the last change of the project as the page gives it (the index's own
// counter, in the JSON form as "_last-serial", in HTML as a comment); false when it gives none. A
// page with a lower one than that of an earlier page is old (C22).
func Serial(doc registry.Document) (serial int64, ok bool) {
	d, isPyPI := doc.(*document)
	if !isPyPI || d.serial == 0 {
		return 0, false
	}
	return d.serial, true
}

// Proof is the address of the provenance of entry i of a page; empty when it names none.
func Proof(doc registry.Document, i int) string {
	d, isPyPI := doc.(*document)
	if !isPyPI || i < 0 || i >= len(d.entries) {
		return ""
	}
	return d.string(d.entries[i].provenance)
}
