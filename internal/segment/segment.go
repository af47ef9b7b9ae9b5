// Package segment keeps a body in runs, so that a body that differs from an earlier one in a few runs costs little more than those.
// Each run has its checksums and, once somebody asked, its compressed form; one gzip member is put together from them.
//
// The package knows nothing of what a body says. Its caller says where runs begin; a run is taken over from an earlier body only when
// its bytes are equal, so a cut at a strange place can cost time but never correctness.
package segment

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/klauspost/compress/flate"
)

// Small is the size in bytes up to which a body is one run: to compress it anew takes about a millisecond, and the parts of a small body
// pack worse than the whole.
const Small = 128 << 10

// Body is a body and its runs. It is immutable as seen from outside and safe for concurrent use.
type Body struct {
	plain []byte
	runs  []placed
	sum   [sha256.Size]byte

	once   sync.Once
	packed []byte
	size   atomic.Int64 // of packed
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

	once   sync.Once
	packed []byte       // raw DEFLATE (RFC 1951), ending at a byte's end and without a last block
	size   atomic.Int64 // of packed
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
func (b *Body) Gzip() []byte {
	b.once.Do(b.pack)
	return b.packed
}

// Cost is the number of bytes of memory that the body takes now, runs that it shares with others included.
func (b *Body) Cost() int64 {
	n := int64(unsafe.Sizeof(*b)) + int64(len(b.plain)) + b.size.Load()
	for _, r := range b.runs {
		n += int64(unsafe.Sizeof(r)) + int64(unsafe.Sizeof(*r.run)) + r.size.Load()
	}
	return n
}

// head is a gzip header without a name or a time, for a fast compressor on an unknown system; tail is the last block, which is empty.
const (
	head = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
	tail = "\x03\x00"
)

// pack puts the member together. The checksum of the whole is combined from those of the runs.
func (b *Body) pack() {
	start, length := 0, len(head)+len(tail)+8
	for _, r := range b.runs {
		r.compress(b.plain[start:r.end])
		start = r.end
		length += len(r.packed)
	}
	out := append(make([]byte, 0, length), head...)
	var crc uint32
	for _, r := range b.runs {
		out = append(out, r.packed...)
		crc = multiply(r.shift, crc) ^ r.key.crc
	}
	out = append(out, tail...)
	out = binary.LittleEndian.AppendUint32(out, crc)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b.plain))) //nolint:gosec // RFC 1952: the size modulo 2^32
	b.packed = out
	b.size.Store(int64(len(out)))
}

// compress makes the packed form of a run, whose bytes are plain, unless it is there.
func (r *run) compress(plain []byte) {
	r.once.Do(func() {
		r.packed = compress(plain)
		r.size.Store(int64(len(r.packed)))
	})
}

// compressor is a writer with its output. It takes most of a megabyte, which is why it is used again.
type compressor struct {
	buf bytes.Buffer
	w   *flate.Writer
}

// compressors holds nothing that one user leaves to the next but memory.
var compressors = sync.Pool{New: func() any {
	c := &compressor{}
	c.w, _ = flate.NewWriter(&c.buf, flate.BestSpeed) // the level is a constant that the library knows
	return c
}}

// compress starts with an empty dictionary and ends with a sync flush, so that the result may stand behind any other.
func compress(plain []byte) []byte {
	c, _ := compressors.Get().(*compressor) // nothing else is put there
	defer compressors.Put(c)
	c.buf.Reset()
	c.w.Reset(&c.buf)
	_, _ = c.w.Write(plain) // a bytes.Buffer does not fail
	_ = c.w.Flush()
	return bytes.Clone(c.buf.Bytes())
}
