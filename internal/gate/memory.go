package gate

import (
	"bytes"
	"iter"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Documents is the memory of all mounts: public documents and their renderings. When room is short,
// those that were used least recently lose their renderings first, are then kept packed, and go at
// last.
type Documents struct {
	store    *cache.Store[docKey, *entry]
	versions int64
	scans    map[string]scanner // by ecosystem; fixed before the first use
	codec    codec
}

type docKey struct{ ecosystem, name string }

type scanner func(registry.Package, registry.Source) (registry.Document, error)

// NewDocuments returns an empty memory that holds up to maxBytes.
func NewDocuments(maxBytes int64) *Documents {
	d := &Documents{
		store: cache.NewStore[docKey, *entry](maxBytes), versions: max(maxBytes/32, 1<<20), scans: map[string]scanner{},
	}
	d.store.Demote(cache.Demotion[*entry]{Trim: trim, Compress: d.pack})
	return d
}

// Size returns how many documents are kept and their cost in bytes, renderings included.
func (d *Documents) Size() (n int, bytes int64) { return d.store.Size() }

// Cold returns how many of the documents take as little room as they can, most of them packed, and
// their part of the cost.
func (d *Documents) Cold() (n int, bytes int64) { return d.store.Cold() }

// Close returns when no document is being packed. No gate may use the memory any more.
func (d *Documents) Close() { d.store.Wait() }

// Listings yields the public documents that are kept, for a dry run of other rules. Those that are
// packed stay so.
func (d *Documents) Listings() iter.Seq2[registry.Package, registry.Document] {
	all := d.store.All()
	return func(yield func(registry.Package, registry.Document) bool) {
		for key, e := range all {
			if e.doc == nil {
				var err error
				if e, err = d.unpack(key, e); err != nil {
					continue
				}
			}
			if !yield(registry.Package{Ecosystem: key.ecosystem, Name: key.name}, e.doc) {
				return
			}
		}
	}
}

// trim is an entry without its renderings.
func trim(e *entry) (*entry, int64, bool) {
	bare := *e
	bare.renderings = &renderings{}
	return &bare, bare.cost(), true
}

// minPackedSource is the size of a body below which packing saves too little.
const minPackedSource = 8 << 10

// pack is an entry with the packed body in place of the document. All else that came with the body
// stays with it (C61).
func (d *Documents) pack(e *entry) (*entry, int64, bool) {
	body := e.doc.Source()
	if len(body) < minPackedSource {
		return nil, 0, false
	}
	packed := *e
	packed.doc, packed.renderings, packed.packed = nil, nil, d.codec.pack(body)
	return &packed, packed.cost(), true
}

// unpack is the entry that was packed, read again.
func (d *Documents) unpack(key docKey, e *entry) (*entry, error) {
	body, err := d.codec.unpack(e.packed)
	if err != nil {
		return nil, err
	}
	doc, err := d.scans[key.ecosystem](registry.Package{Ecosystem: key.ecosystem, Name: key.name}, registry.Source{Body: body, ContentType: e.contentType, URL: e.url})
	if err != nil {
		return nil, err
	}
	plain := *e
	plain.doc, plain.renderings, plain.packed = doc, &renderings{}, nil
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

func (c *codec) pack(body []byte) []byte {
	c.writer.Do(func() { // the options are constants that the library knows
		c.enc, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true))
	})
	return bytes.Clone(c.enc.EncodeAll(body, make([]byte, 0, len(body)/3)))
}

func (c *codec) unpack(packed []byte) ([]byte, error) {
	c.reader.Do(func() {
		c.dec, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxDocument))
	})
	return c.dec.DecodeAll(packed, nil)
}
