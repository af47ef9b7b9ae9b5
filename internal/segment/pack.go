package segment

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// Window is the largest window, in bytes, that a reader of [Body.Zstd] needs. A client may refuse more than 8 MB (RFC 9659); runs are seldom
// longer than this, and a compressor takes as much memory.
const Window = 256 << 10

// head is a gzip header without a name or a time, for a fast compressor on an unknown system; tail is the last block, which is empty.
const (
	head = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
	tail = "\x03\x00"
)

// member puts the gzip form together. The checksum of the whole is combined from those of the runs.
func (b *Body) member() []byte {
	packed, length := b.pack(&deflaters, func(r *run) *form { return &r.deflate })
	out := append(make([]byte, 0, len(head)+length+len(tail)+8), head...)
	var crc uint32
	for i, r := range b.runs {
		out = append(out, packed[i]...)
		crc = multiply(r.shift, crc) ^ r.key.crc
	}
	out = append(out, tail...)
	out = binary.LittleEndian.AppendUint32(out, crc)
	return binary.LittleEndian.AppendUint32(out, uint32(len(b.plain))) //nolint:gosec // RFC 1952: the size modulo 2^32
}

// frames puts the Zstandard form together: frames in a row are one content (RFC 8878, section 3).
func (b *Body) frames() []byte {
	packed, length := b.pack(&framers, func(r *run) *form { return &r.zstd })
	out := make([]byte, 0, length)
	for _, frame := range packed {
		out = append(out, frame...)
	}
	return out
}

// pack makes one form of every run, unless it is there, and adds up their lengths.
func (b *Body) pack(pool *sync.Pool, of func(*run) *form) (packed [][]byte, length int) {
	packed = make([][]byte, len(b.runs))
	start := 0
	for i, r := range b.runs {
		plain := b.plain[start:r.end]
		packed[i] = of(r.run).get(func() []byte { return compress(pool, plain) })
		start = r.end
		length += len(packed[i])
	}
	return packed, length
}

// compressor is a writer with its output. It takes about a megabyte, which is why it is used again.
type compressor struct {
	buf   bytes.Buffer
	begin func(size int)
	write func(plain []byte) (int, error)
	end   func() error
}

// The pools hold nothing that one user leaves to the next but memory. Levels and windows are constants that the library knows.
var (
	// deflaters start with an empty dictionary and end with a sync flush, so that the result may stand behind any other.
	deflaters = sync.Pool{New: func() any {
		c := &compressor{}
		w, _ := flate.NewWriter(&c.buf, flate.BestSpeed)
		c.begin, c.write, c.end = func(int) { w.Reset(&c.buf) }, w.Write, w.Flush
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
	// turns bounds how many runs are compressed at once: more than there are processors would take memory and gain nothing.
	turns = make(chan struct{}, runtime.GOMAXPROCS(0))
)

// compress makes one form of a run.
func compress(pool *sync.Pool, plain []byte) []byte {
	turns <- struct{}{}
	defer func() { <-turns }()
	c, _ := pool.Get().(*compressor) // nothing else is put there
	defer pool.Put(c)
	c.buf.Reset()
	c.begin(len(plain))
	_, _ = c.write(plain) // a bytes.Buffer does not fail
	_ = c.end()
	return bytes.Clone(c.buf.Bytes())
}
