package segment

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// Window is the largest window, in bytes, that a reader of [Body.Zstd] needs. A client may refuse
// more than 8 MB (RFC 9659); frames are seldom much longer than this, and a compressor takes as
// much memory.
const Window = 256 << 10

// level is that of DEFLATE. With a dictionary it takes up to half as long again as the first one
// without, and packs real listings to a half or two thirds of that.
const level = 2

// head is a gzip header without a name or a time, for a fast compressor on an unknown system; tail
// is the last block, which is empty.
const (
	head = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
	tail = "\x03\x00"
)

// member puts the gzip form together. The checksum of the whole is combined from those of the
// segments.
func (b *Body) member() []byte {
	parts := make([][]byte, 0, len(b.segments)+2)
	parts = append(parts, []byte(head))
	var crc uint32
	for i, r := range b.segments {
		parts = append(parts, r.deflate.get(func() []byte { return compress(&deflaters, b.dictionary(i), b.plain[b.start(i):r.end]) }))
		crc = multiply(r.shift, crc) ^ r.key.crc
	}
	end := binary.LittleEndian.AppendUint32([]byte(tail), crc)
	end = binary.LittleEndian.AppendUint32(end, uint32(len(b.plain))) //nolint:gosec // RFC 1952: the size modulo 2^32
	// which clears no memory that it fills
	return bytes.Join(append(parts, end), nil)
}

// row puts the Zstandard form together: frames in a row are one content (RFC 8878, section 3).
func (b *Body) zstdFrames() []byte {
	packed := make([][]byte, len(b.frames))
	for i, f := range b.frames {
		packed[i] = f.get(func() []byte { return compress(&framers, nil, b.plain[b.start(f.from):b.segments[f.to-1].end]) })
	}
	return bytes.Join(packed, nil)
}

// compressor is a writer with its output. It takes about a megabyte, which is why it is used again.
type compressor struct {
	buf   bytes.Buffer
	dict  []byte
	begin func(size int)
	write func(plain []byte) (int, error)
	end   func() error
}

// The pools hold nothing that one user leaves to the next but memory. Levels and windows are
// constants that the library knows.
var (
	// deflaters end with a sync flush, so that the result may stand behind any other that ends with
	// the dictionary.
	deflaters = sync.Pool{New: func() any {
		c := &compressor{}
		w, _ := flate.NewWriter(&c.buf, level)
		c.begin, c.write, c.end = func(int) { w.ResetDict(&c.buf, c.dict) }, w.Write, w.Flush
		return c
	}}
	// framers make a frame that names its size and ends with a checksum.
	framers = sync.Pool{New: func() any {
		c := &compressor{}
		w, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(Window), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true), zstd.WithZeroFrames(true))
		c.begin, c.write, c.end = func(size int) { w.ResetContentSize(&c.buf, int64(size)) }, w.Write, w.Close
		return c
	}}
	// turns bounds how many segments are compressed at once: more than there are processors would
	// take memory and gain nothing.
	turns = make(chan struct{}, runtime.GOMAXPROCS(0))
)

// compress makes a packed form of some bytes.
func compress(pool *sync.Pool, dictionary, plain []byte) []byte {
	turns <- struct{}{}
	defer func() { <-turns }()
	c, _ := pool.Get().(*compressor) // nothing else is put there
	defer pool.Put(c)
	c.buf.Reset()
	c.dict = append(c.dict[:0], dictionary...) // a copy, so that the writer holds no body
	c.begin(len(plain))
	_, _ = c.write(plain) // a bytes.Buffer does not fail
	_ = c.end()
	return bytes.Clone(c.buf.Bytes())
}
