package documents

import (
	"bytes"
	"iter"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Memory holds the public documents of all mounts and their renderings under one bound. When room
// is short, those that were used least recently lose their renderings first, are then kept packed,
// and go at last.
type Memory struct {
	store *cache.Store[key, *Document]
	bound int64
	codec codec
}

type key struct{ ecosystem, name string }

// NewMemory returns an empty memory that holds up to maxBytes.
func NewMemory(maxBytes int64) *Memory {
	m := &Memory{store: cache.NewStore[key, *Document](maxBytes), bound: maxBytes}
	m.store.Demote(cache.Demotion[*Document]{Trim: trim, Compress: m.pack})
	return m
}

// Bound is how many bytes the documents may take.
func (m *Memory) Bound() int64 { return m.bound }

// Size returns how many documents are kept and their cost in bytes, renderings included.
func (m *Memory) Size() (n int, bytes int64) { return m.store.Size() }

// Cold returns how many of the documents take as little room as they can, most of them packed, and
// their part of the cost.
func (m *Memory) Cold() (n int, bytes int64) { return m.store.Cold() }

// Close returns when no document is being packed. No gate may use the memory any more.
func (m *Memory) Close() { m.store.Wait() }

// Listings yields the public documents that are kept, for a dry run of other rules. Those that are
// packed stay so.
func (m *Memory) Listings() iter.Seq2[registry.Package, registry.Document] {
	all := m.store.All()
	return func(yield func(registry.Package, registry.Document) bool) {
		for _, e := range all {
			if e.Document == nil {
				var err error
				if e, err = m.unpack(e); err != nil {
					continue
				}
			}
			if !yield(e.of.pkg(e.name), e.Document) {
				return
			}
		}
	}
}

// trim is a document without its renderings.
func trim(e *Document) (*Document, int64, bool) {
	bare := *e
	bare.renderings = &renderings{}
	return &bare, bare.cost(), true
}

// minPackedSource is the size of a body below which packing saves too little.
const minPackedSource = 8 << 10

// pack is a document with the packed body in place of what was read from it. All else that came
// with the body stays with it (C61).
func (m *Memory) pack(e *Document) (*Document, int64, bool) {
	body := e.Source()
	if len(body) < minPackedSource {
		return nil, 0, false
	}
	packed := *e
	packed.Document, packed.renderings, packed.packed, packed.size = nil, nil, m.codec.pack(body), len(body)
	return &packed, packed.cost(), true
}

// unpack is the document that was packed, read again.
func (m *Memory) unpack(e *Document) (*Document, error) {
	body, err := m.codec.unpack(e.packed)
	if err != nil {
		return nil, err
	}
	again, err := e.of.scan(e.name, registry.Source{Body: body, ContentType: e.contentType, URL: e.url})
	if err != nil {
		return nil, err
	}
	plain := *e
	plain.Document, plain.renderings, plain.packed = again.Document, again.renderings, nil
	return &plain, nil
}

// codec packs bodies. What it needs is made when it is first used.
type codec struct {
	writer, reader sync.Once
	enc            *zstd.Encoder
	dec            *zstd.Decoder
}

// packWindow is how far back a packed body may refer: a listing repeats itself from one version to
// the next.
const packWindow = 1 << 20

// maxUnpacked is more than any document has that was packed here.
const maxUnpacked = 4 << 30

func (c *codec) pack(body []byte) []byte {
	c.writer.Do(func() { // the options are constants that the library knows
		c.enc, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true))
	})
	return bytes.Clone(c.enc.EncodeAll(body, make([]byte, 0, len(body)/3)))
}

func (c *codec) unpack(packed []byte) ([]byte, error) {
	c.reader.Do(func() {
		c.dec, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxUnpacked))
	})
	return c.dec.DecodeAll(packed, nil)
}
