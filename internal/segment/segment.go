// Package segment keeps a body in segments, so that a body that differs from an earlier one in a
// few segments costs little more than those. Each segment has its checksums and, once requested,
// its compressed forms; one gzip member or a row of Zstandard frames is put together from them.
//
// The package knows nothing of what a body says. Its caller says where segments begin; a segment is
// taken over from an earlier body only when its bytes are equal, so a cut at a strange place can
// cost time but never correctness.
package segment

import (
	"bytes"
	"crypto/sha256"
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Small is the size in bytes up to which a body is one segment: to compress it again takes about a
// millisecond, and the parts of a small body pack worse than the whole.
const Small = 128 << 10

// Body is a body and its segments. It is immutable as seen from outside and safe for concurrent
// use.
type Body struct {
	plain    []byte
	segments []placed
	frames   []frame
	sum      [sha256.Size]byte

	gzip, zstd compressed
}

// placed is a segment in its body.
type placed struct {
	*segment
	end int
	// deflate is raw DEFLATE (RFC 1951), ending at a byte's end and without a last block. It may
	// refer to the segment's dictionary, so bodies share it only where that is the same as well.
	deflate *compressed
}

// frame is some segments in a row as one frame of Zstandard (RFC 8878), which bodies share that
// have all of them.
type frame struct {
	from, to int // the first segment, and the one behind the last
	*compressed
}

const (
	// reach is how far a segment may refer back behind its beginning, in bytes. DEFLATE could twice
	// as far; this packs as well and costs less.
	reach = 16 << 10
	// framed is about how many segments are one frame: frames cannot refer to each other, and what
	// repeats in a listing is often further away than one segment. A frame ends behind a segment
	// whose checksum this divides, so that segments that come and go before it move no other.
	framed = 8
)

// segment is what is known of some bytes. Bodies that hold the same bytes share it.
type segment struct {
	key   key
	shift uint32 // see shift
	sum   [sha256.Size]byte
}

// key finds segments that may be the same.
type key struct {
	length int
	crc    uint32
}

// New makes a body of its bytes, which may not be changed any more. Cuts are the offsets where a
// segment ends and the next begins, rising; those that are not inside the body are ignored.
// Segments that prior, which may be nil, has as well are taken over from it; prior itself is not
// held.
func New(plain []byte, cuts []int, prior *Body) *Body {
	if len(plain) <= Small {
		cuts = nil
	}
	known := newPrior(prior)
	b := &Body{plain: plain, segments: make([]placed, 0, len(cuts)+1)}
	sums := sha256.New()
	start := 0
	var at []int // where prior has each segment; -1 is nowhere
	add := func(end int) {
		r, place := known.take(plain[start:end])
		b.segments, at = append(b.segments, placed{segment: r, end: end}), append(at, place)
		sums.Write(r.sum[:])
		start = end
	}
	for _, cut := range cuts {
		if cut > start && cut < len(plain) {
			add(cut)
		}
	}
	add(len(plain))
	sums.Sum(b.sum[:0])
	b.share(prior, at)
	return b
}

// share takes over the packed forms of prior that are of the same bytes: for DEFLATE, with the same
// before them as far as it may refer to, so that nothing of one body comes to another that does not
// have it (R51).
func (b *Body) share(prior *Body, at []int) {
	for i := range b.segments {
		if at[i] >= 0 && b.sameBefore(i, prior, at[i]) {
			b.segments[i].deflate = prior.segments[at[i]].deflate
		} else {
			b.segments[i].deflate = &compressed{}
		}
	}
	from := 0
	for i := range b.segments {
		if to := i + 1; i == 0 || to == len(b.segments) || b.segments[i].key.crc%framed == 0 || to-from == 2*framed {
			f := prior.frame(at[from], b.segments[from:to])
			if f == nil {
				f = &compressed{}
			}
			b.frames = append(b.frames, frame{from, to, f})
			from = to
		}
	}
}

// sameBefore reports whether segment i has the same dictionary as another body's.
func (b *Body) sameBefore(i int, other *Body, at int) bool {
	if i > 1 && at > 1 && b.segments[i-1].segment == other.segments[at-1].segment && b.segments[i-1].key.length >= reach {
		return true
	}
	return bytes.Equal(b.dictionary(i), other.dictionary(at))
}

// dictionary is what stands before a segment, as far as it may refer to it. What stands before all
// items, the first segment, is left out: it changes in most bodies, and the second segment would
// change with it.
func (b *Body) dictionary(i int) []byte {
	if i < 2 {
		return nil
	}
	return b.plain[max(b.segments[0].end, b.start(i)-reach):b.start(i)]
}

// start is where a segment begins.
func (b *Body) start(i int) int {
	if i == 0 {
		return 0
	}
	return b.segments[i-1].end
}

// frame gives the packed form of a frame of just these segments, of which the first one is at a
// place, or nil.
func (b *Body) frame(at int, segments []placed) *compressed {
	if at < 0 {
		return nil
	}
	i, ok := slices.BinarySearchFunc(b.frames, at, func(f frame, at int) int { return f.from - at })
	if !ok || b.frames[i].to != at+len(segments) {
		return nil
	}
	for k := range segments {
		if segments[k].segment != b.segments[at+k].segment {
			return nil
		}
	}
	return b.frames[i].compressed
}

// priorSegments is the segments of a body with their bytes, in order and by key.
type priorSegments struct {
	segments []priorSegment
	index    map[key]int
	next     int // the segment that is expected next
}

type priorSegment struct {
	*segment
	plain []byte
}

func newPrior(b *Body) *priorSegments {
	k := &priorSegments{}
	if b == nil {
		return k
	}
	k.index = make(map[key]int, len(b.segments))
	start := 0
	for i, r := range b.segments {
		k.segments = append(k.segments, priorSegment{r.segment, b.plain[start:r.end]})
		k.index[r.key] = i
		start = r.end
	}
	return k
}

// take gives the known segment of these bytes and its place, or a new one and -1. Most segments
// follow each other as they did before, and need no checksum to be found.
func (k *priorSegments) take(plain []byte) (r *segment, place int) {
	if k.is(k.next, plain) {
		k.next++
		return k.segments[k.next-1].segment, k.next - 1
	}
	at := key{len(plain), crc32.ChecksumIEEE(plain)}
	if i, ok := k.index[at]; ok && k.is(i, plain) {
		k.next = i + 1
		return k.segments[i].segment, i
	}
	k.next++ // in the place of the one that was expected
	return &segment{key: at, shift: shift(len(plain)), sum: sha256.Sum256(plain)}, -1
}

func (k *priorSegments) is(i int, plain []byte) bool {
	return i < len(k.segments) && bytes.Equal(k.segments[i].plain, plain)
}

// Plain is the body as it was given; it must not be changed.
func (b *Body) Plain() []byte { return b.plain }

// Sum identifies the body: the SHA-256 of the SHA-256 of each segment. Different bytes have
// different sums; the same bytes cut elsewhere have another sum.
func (b *Body) Sum() [sha256.Size]byte { return b.sum }

// Gzip is the body as one member of gzip (RFC 1952), made when it is first asked for; it must not
// be changed.
func (b *Body) Gzip() []byte { return b.gzip.get(b.member) }

// Zstd is the body as Zstandard (RFC 8878): a frame for each few segments, made when it is first
// asked for; it must not be changed. No frame needs a window of more than [Window] to be read.
func (b *Body) Zstd() []byte { return b.zstd.get(b.zstdFrames) }

// Cost is the number of bytes of memory that the body takes now, segments that it shares with
// others included.
func (b *Body) Cost() int64 {
	n := int64(unsafe.Sizeof(*b)) + int64(len(b.plain)) + b.gzip.size.Load() + b.zstd.size.Load()
	for _, r := range b.segments {
		n += int64(unsafe.Sizeof(r)) + int64(unsafe.Sizeof(*r.segment)) + int64(unsafe.Sizeof(*r.deflate)) + r.deflate.size.Load()
	}
	for _, f := range b.frames {
		n += int64(unsafe.Sizeof(f)) + int64(unsafe.Sizeof(*f.compressed)) + f.size.Load()
	}
	return n
}

// compressed is a compressed form, made when it is first asked for.
type compressed struct {
	once  sync.Once
	bytes []byte
	size  atomic.Int64 // for those who only count
}

func (f *compressed) get(pack func() []byte) []byte {
	f.once.Do(func() {
		f.bytes = pack()
		f.size.Store(int64(len(f.bytes)))
	})
	return f.bytes
}
