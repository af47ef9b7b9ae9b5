// Package segment keeps a body in runs, so that a body that differs from an earlier one in a few runs costs little more than those.
// Each run has its checksums and, once somebody asked, its compressed forms; one gzip member or a row of Zstandard frames is put together
// from them.
//
// The package knows nothing of what a body says. Its caller says where runs begin; a run is taken over from an earlier body only when
// its bytes are equal, so a cut at a strange place can cost time but never correctness.
package segment

import (
	"bytes"
	"crypto/sha256"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Small is the size in bytes up to which a body is one run: to compress it anew takes about a millisecond, and the parts of a small body
// pack worse than the whole.
const Small = 128 << 10

// Body is a body and its runs. It is immutable as seen from outside and safe for concurrent use.
type Body struct {
	plain []byte
	runs  []placed
	sum   [sha256.Size]byte

	gzip, zstd form
}

// placed is a run and where in its body it ends.
type placed struct {
	*run
	end int
}

// run is what is known of some bytes. Bodies that hold the same bytes share it.
type run struct {
	key   key
	shift uint32 // see shift
	sum   [sha256.Size]byte

	deflate form // raw DEFLATE (RFC 1951), ending at a byte's end and without a last block
	zstd    form // a frame (RFC 8878)
}

// key finds runs that may be the same.
type key struct {
	length int
	crc    uint32
}

// New makes a body of its bytes, which may not be changed any more. Cuts are the offsets where a run ends and the next begins, rising;
// those that are not inside the body are ignored. Runs that prior, which may be nil, has as well are taken over from it; prior itself is
// not held.
func New(plain []byte, cuts []int, prior *Body) *Body {
	if len(plain) <= Small {
		cuts = nil
	}
	known := newKnown(prior)
	b := &Body{plain: plain, runs: make([]placed, 0, len(cuts)+1)}
	sums := sha256.New()
	start := 0
	add := func(end int) {
		r := known.take(plain[start:end])
		b.runs = append(b.runs, placed{r, end})
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
	return b
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

// take gives the known run of these bytes, or a new one. Most runs follow each other as they did before, and need no checksum to be found.
func (k *known) take(plain []byte) *run {
	if k.is(k.next, plain) {
		k.next++
		return k.runs[k.next-1].run
	}
	at := key{len(plain), crc32.ChecksumIEEE(plain)}
	if i, ok := k.index[at]; ok && k.is(i, plain) {
		k.next = i + 1
		return k.runs[i].run
	}
	k.next++ // in the place of the one that was expected
	return &run{key: at, shift: shift(len(plain)), sum: sha256.Sum256(plain)}
}

func (k *known) is(i int, plain []byte) bool {
	return i < len(k.runs) && bytes.Equal(k.runs[i].plain, plain)
}

// Plain is the body as it was given; nobody may change it.
func (b *Body) Plain() []byte { return b.plain }

// Sum identifies the body: the SHA-256 of the SHA-256 of each run. Different bytes have different sums; the same bytes cut elsewhere have
// another sum.
func (b *Body) Sum() [sha256.Size]byte { return b.sum }

// Gzip is the body as one member of gzip (RFC 1952), made when it is first asked for; nobody may change it.
func (b *Body) Gzip() []byte { return b.gzip.get(b.member) }

// Zstd is the body as Zstandard (RFC 8878): one frame for each run, made when it is first asked for; nobody may change it. No frame needs a
// window of more than [Window] to be read.
func (b *Body) Zstd() []byte { return b.zstd.get(b.frames) }

// Cost is the number of bytes of memory that the body takes now, runs that it shares with others included.
func (b *Body) Cost() int64 {
	n := int64(unsafe.Sizeof(*b)) + int64(len(b.plain)) + b.gzip.size.Load() + b.zstd.size.Load()
	for _, r := range b.runs {
		n += int64(unsafe.Sizeof(r)) + int64(unsafe.Sizeof(*r.run)) + r.deflate.size.Load() + r.zstd.size.Load()
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
