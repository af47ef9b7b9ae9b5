// Package packument reads npm's listing documents ("packuments") and renders views of them: one
// strict pass that keeps spans and facts, and answers spliced from the document's own bytes.
package packument

import (
	"strings"
	"time"
	"unsafe"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// document is a scanned packument: the bytes, where the parts of it that views touch are, and the
// facts. It is a [registry.Document] and immutable.
type document struct {
	name     string // the package's
	body     []byte
	text     string // the same; spans refer to it
	versions []registry.Version
	entries  []entry // entries[i] belongs to versions[i]
	spans    []listing.Span
	names    listing.Names
	dropped  int

	top      []member
	tags     []tag
	tagIndex map[string]int
	// members of "time" that stay beside the versions and modified: created, unpublished
	stamps  []listing.Span
	changed stamp
}

// entry is where a version is in the text.
type entry struct {
	member    listing.Span // "1.0.0":{…}
	value     uint32       // start of the object in member
	tarball   listing.Span // the address in it, with its quotes
	attested  listing.Span // the address of its attestations, with its quotes; empty for none
	published listing.Span // "1.0.0":"2020-…", the member of "time"; empty when there is none
	spans     [2]uint32    // the range of document.spans that the abbreviated form keeps
	rank      rank
	flags     flags
}

type flags uint8

const (
	flagDeprecated flags = 1 << iota
	flagStable           // semver, and no prerelease
	flagBad              // not to be served; only while scanning
)

// member is one member of the top-level object.
type member struct {
	kind  topKind
	span  listing.Span // key and value
	value uint32       // start of the value
}

type topKind uint8

const (
	topOther topKind = iota
	topName
	topVersions
	topTime
	topTags
	topModified
	topHidden // bookkeeping of a registry that names its own upstreams; never served
)

// tag is one dist-tag.
type tag struct {
	key     string // as spelled in the text, with quotes
	name    string
	version string
}

// stamp is the time of the last change of the package, as spelled and as understood.
type stamp struct {
	raw string // with quotes; empty when the document gives none
	at  time.Time
}

// Versions implements [registry.Document].
func (d *document) Versions() []registry.Version { return d.versions }

// Lookup implements [registry.Document].
func (d *document) Lookup(version string) int {
	return d.names.Lookup(version, d.version)
}

func (d *document) version(i int) string { return d.versions[i].Version }

// Dropped implements [registry.Document].
func (d *document) Dropped() int { return d.dropped }

// Source implements [registry.Document].
func (d *document) Source() []byte { return d.body }

// Cost implements [registry.Document]: the text, the index and the facts.
func (d *document) Cost() int64 {
	const perVersion = unsafe.Sizeof(registry.Version{}) + unsafe.Sizeof(registry.Artifact{})
	n := cap(d.body) + int(perVersion)*cap(d.versions) + int(unsafe.Sizeof(entry{}))*cap(d.entries) + 8*cap(d.spans) + 64*(len(d.top)+2*len(d.tags)) +
		int(unsafe.Sizeof(*d))
	for i := range d.versions {
		v := &d.versions[i]
		a := &v.Artifacts[0]
		n += listing.Beside(d.text, v.Version) + listing.Beside(d.text, v.License) + listing.Beside(d.text, a.URL)
		if !strings.HasSuffix(a.URL, a.File) { // else it is a part of that
			n += listing.Beside(d.text, a.File)
		}
		for _, digest := range a.Digests {
			n += int(unsafe.Sizeof(digest)) + len(digest.Sum)
		}
	}
	return int64(n+n/64) + d.names.Cost() // the heap rounds sizes up
}
