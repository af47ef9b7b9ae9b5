package packument

import (
	"slices"
	"sync"

	"github.com/ecluse-gate/ecluse/internal/listing"
)

// scratch is the working memory of one scan. Later scans reuse it, because clearing new memory
// takes longer than filling it. What outlives the scan is copied into slices of the right size.
type scratch struct {
	rawVersions []rawVersion
	spans       []listing.Span // of the members that the abbreviated form keeps
	// of the digests of all versions, one after the other: places in algorithms
	kinds []uint8
	sums  []byte // these digests
	times []rawTime
}

// rawVersion is a version as it was read.
type rawVersion struct {
	entry
	version, license string
	address, file    string // of its artifact
	digests          uint32 // where its share of the digests ends
	scripts          bool   // it runs scripts at installation
	hash             uint64 // of its key
}

// maxScratch bounds in versions what is kept for later scans.
const maxScratch = 32_768

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// takeScratch returns an unused, empty one.
func takeScratch() *scratch {
	s, _ := scratches.Get().(*scratch) // there is nothing else in the pool
	return s
}

// reserve makes room for the versions that so many bytes are likely to hold.
func (s *scratch) reserve(size int) {
	n := size/1400 + 16
	s.rawVersions, s.spans = slices.Grow(s.rawVersions, n), slices.Grow(s.spans, 4*n)
	// a sha512 and a sha1 each
	s.kinds, s.sums = slices.Grow(s.kinds, 2*n), slices.Grow(s.sums, 84*n)
}

// leave gives the scratch to a later scan. It keeps nothing of this one's document.
func (s *scratch) leave() {
	if cap(s.rawVersions) > maxScratch || cap(s.times) > 2*maxScratch || cap(s.spans) > 16*maxScratch || cap(s.kinds) > 4*maxScratch {
		return
	}
	clear(s.rawVersions)
	clear(s.times)
	*s = scratch{s.rawVersions[:0], s.spans[:0], s.kinds[:0], s.sums[:0], s.times[:0]}
	scratches.Put(s)
}
