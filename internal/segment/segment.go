// Package segment keeps a body in runs, so that a body that differs from an earlier one in a few
// runs costs little more than those. Each run has its checksums and, once requested, its compressed
// forms; one gzip member or a row of Zstandard frames is put together from them.
//
// The package knows nothing of what a body says. Its caller says where runs begin; a run is taken
// over from an earlier body only when its bytes are equal, so a cut at a strange place can cost
// time but never correctness.
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

// Small is the size in bytes up to which a body is one run: to compress it again takes about a
// millisecond, and the parts of a small body pack worse than the whole.
const Small = 128 << 10

// Body is a body and its runs. It is immutable as seen from outside and safe for concurrent use.
type Body struct {
	plain  []byte
	runs   []placed
	frames []frame
	sum    [sha256.Size]byte

	gzip, zstd form
}

// placed is a run in its body.
type placed struct {
	*run
	end int
	// deflate is raw DEFLATE (RFC 1951), ending at a byte's end and without a last block. It may
	// refer to the run's dictionary, so bodies share it only where that is the same as well.
	deflate *form
}

// frame is some runs in a row as one frame of Zstandard (RFC 8878), which bodies share that have
// all of them.
type frame struct {
	from, to int // the first run, and the one behind the last
	*form
}

const (
	// reach is how far a run may refer back behind its beginning, in bytes. DEFLATE could twice as
	// far; this packs as well and costs less.
	reach = 16 << 10
	// framed is about how many runs are one frame: frames cannot refer to each other, and what
	// repeats in a listing is often further away than one run. A frame ends behind a run whose
	// checksum this divides, so that runs that come and go before it move no other.
	framed = 8
)

// run is what is known of some bytes. Bodies that hold the same bytes share it.
type run struct {
	key   key
	shift uint32 // see shift
	sum   [sha256.Size]byte
}

// key finds runs that may be the same.
type key struct {
	length int
	crc    uint32
}

// New makes a body of its bytes, which may not be changed any more. Cuts are the offsets where a
// run ends and the next begins, rising; those that are not inside the body are ignored. Runs that
// prior, which may be nil, has as well are taken over from it; prior itself is not held.
func New(plain []byte, cuts []int, prior *Body) *Body {
	if len(plain) <= Small {
		cuts = nil
	}
	known := newKnown(prior)
	b := &Body{plain: plain, runs: make([]placed, 0, len(cuts)+1)}
	sums := sha256.New()
	start := 0
	var at []int // where prior has each run; -1 is nowhere
	add := func(end int) {
		r, place := known.take(plain[start:end])
		b.runs, at = append(b.runs, placed{run: r, end: end}), append(at, place)
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
	for i := range b.runs {
		if at[i] >= 0 && b.sameBefore(i, prior, at[i]) {
			b.runs[i].deflate = prior.runs[at[i]].deflate
		} else {
			b.runs[i].deflate = &form{}
		}
	}
	from := 0
	for i := range b.runs {
		if to := i + 1; i == 0 || to == len(b.runs) || b.runs[i].key.crc%framed == 0 || to-from == 2*framed {
			f := prior.frame(at[from], b.runs[from:to])
			if f == nil {
				f = &form{}
			}
			b.frames = append(b.frames, frame{from, to, f})
			from = to
		}
	}
}

// sameBefore reports whether run i has the same dictionary as another body's.
func (b *Body) sameBefore(i int, other *Body, at int) bool {
	if i > 1 && at > 1 && b.runs[i-1].run == other.runs[at-1].run && b.runs[i-1].key.length >= reach {
		return true
	}
	return bytes.Equal(b.dictionary(i), other.dictionary(at))
}

// dictionary is what stands before a run, as far as it may refer to it. What stands before all
// items, the first run, is left out: it changes in most bodies, and the second run would change
// with it.
func (b *Body) dictionary(i int) []byte {
	if i < 2 {
		return nil
	}
	return b.plain[max(b.runs[0].end, b.start(i)-reach):b.start(i)]
}

// start is where a run begins.
func (b *Body) start(i int) int {
	if i == 0 {
		return 0
	}
	return b.runs[i-1].end
}

// frame gives the packed form of a frame of just these runs, of which the first one is at a place,
// or nil.
func (b *Body) frame(at int, runs []placed) *form {
	if at < 0 {
		return nil
	}
	i, ok := slices.BinarySearchFunc(b.frames, at, func(f frame, at int) int { return f.from - at })
	if !ok || b.frames[i].to != at+len(runs) {
		return nil
	}
	for k := range runs {
		if runs[k].run != b.runs[at+k].run {
			return nil
		}
	}
	return b.frames[i].form
}

// known is the runs of a body with their bytes, in order and by key.
type known struct {
	runs  []knownRun
	index map[key]int
	next  int // the run that is expected next
}

type knownRun struct {
	*run
	plain []byte
}

func newKnown(b *Body) *known {
	k := &known{}
	if b == nil {
		return k
	}
	k.index = make(map[key]int, len(b.runs))
	start := 0
	for i, r := range b.runs {
		k.runs = append(k.runs, knownRun{r.run, b.plain[start:r.end]})
		k.index[r.key] = i
		start = r.end
	}
	return k
}

// take gives the known run of these bytes and its place, or a new one and -1. Most runs follow each
// other as they did before, and need no checksum to be found.
func (k *known) take(plain []byte) (r *run, place int) {
	if k.is(k.next, plain) {
		k.next++
		return k.runs[k.next-1].run, k.next - 1
	}
	at := key{len(plain), crc32.ChecksumIEEE(plain)}
	if i, ok := k.index[at]; ok && k.is(i, plain) {
		k.next = i + 1
		return k.runs[i].run, i
	}
	k.next++ // in the place of the one that was expected
	return &run{key: at, shift: shift(len(plain)), sum: sha256.Sum256(plain)}, -1
}

func (k *known) is(i int, plain []byte) bool {
	return i < len(k.runs) && bytes.Equal(k.runs[i].plain, plain)
}

// Plain is the body as it was given; it must not be changed.
func (b *Body) Plain() []byte { return b.plain }

// Sum identifies the body: the SHA-256 of the SHA-256 of each run. Different bytes have different
// sums; the same bytes cut elsewhere have another sum.
func (b *Body) Sum() [sha256.Size]byte { return b.sum }

// Gzip is the body as one member of gzip (RFC 1952), made when it is first asked for; it must not
// be changed.
func (b *Body) Gzip() []byte { return b.gzip.get(b.member) }

// Zstd is the body as Zstandard (RFC 8878): a frame for each few runs, made when it is first asked
// for; it must not be changed. No frame needs a window of more than [Window] to be read.
func (b *Body) Zstd() []byte { return b.zstd.get(b.row) }

// Cost is the number of bytes of memory that the body takes now, runs that it shares with others
// included.
func (b *Body) Cost() int64 {
	n := int64(unsafe.Sizeof(*b)) + int64(len(b.plain)) + b.gzip.size.Load() + b.zstd.size.Load()
	for _, r := range b.runs {
		n += int64(unsafe.Sizeof(r)) + int64(unsafe.Sizeof(*r.run)) + int64(unsafe.Sizeof(*r.deflate)) + r.deflate.size.Load()
	}
	for _, f := range b.frames {
		n += int64(unsafe.Sizeof(f)) + int64(unsafe.Sizeof(*f.form)) + f.size.Load()
	}
	return n
}

// form is a packed form, made when it is first asked for.
type form struct {
	once  sync.Once
	bytes []byte
	size  atomic.Int64 // for those who only count
}

func (f *form) get(pack func() []byte) []byte {
	f.once.Do(func() {
		f.bytes = pack()
		f.size.Store(int64(len(f.bytes)))
	})
	return f.bytes
}
