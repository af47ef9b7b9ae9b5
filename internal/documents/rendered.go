package documents

import (
	"encoding/base64"
	"sync"

	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/segment"
)

// minPacked is the size below which packing a body costs more than it saves.
const minPacked = 1 << 10

// Encoding is a content coding of a listing (RFC 9110 section 8.4.1).
type Encoding string

// The encodings. The plain one is the zero value.
const (
	Identity Encoding = ""
	Gzip     Encoding = "gzip"
	Zstd     Encoding = "zstd"
)

// Rendered is one representation of a listing with its strong validators. It is immutable and safe
// for concurrent use.
type Rendered struct {
	body        *segment.Body
	contentType string
	tag         string
	packed      *packed
}

// packed tells, when a body has been packed for its first reader in an encoding, that it costs more
// now.
type packed struct {
	gzip, zstd sync.Once
	tell       func() // nil: nobody counts
}

// ContentType is the media type of the listing.
func (r *Rendered) ContentType() string { return r.contentType }

// Packs reports whether the body is large enough to be packed; one that is not has no encoding but
// Identity.
func (r *Rendered) Packs() bool { return len(r.body.Plain()) >= minPacked }

// ETag is the strong entity tag of the listing in an encoding. It costs no packing.
func (r *Rendered) ETag(e Encoding) string {
	if e == Identity {
		return `"` + r.tag + `"`
	}
	return `"` + r.tag + "-" + string(e) + `"`
}

// Body is the listing in an encoding, packed when it is first asked for; nobody may change it.
func (r *Rendered) Body(e Encoding) []byte {
	var body []byte
	var once *sync.Once
	switch e {
	case Gzip:
		body, once = r.body.Gzip(), &r.packed.gzip
	case Zstd:
		body, once = r.body.Zstd(), &r.packed.zstd
	default:
		return r.body.Plain()
	}
	if r.packed.tell != nil {
		once.Do(r.packed.tell)
	}
	return body
}

// Marked is the same representation under tags of its own.
func (r *Rendered) Marked() *Rendered {
	c := *r
	c.tag = "d" + c.tag
	return &c
}

// As is the same representation under another media type that its form may have.
func (r *Rendered) As(contentType string) *Rendered {
	c := *r
	c.contentType = contentType
	return &c
}

// NewRendered is a rendering that nobody keeps. It takes over from prior, which may be nil, what
// did not change; what is packed of that counts for prior as well.
func NewRendered(out registry.Rendering, prior *Rendered) *Rendered {
	var from *segment.Body
	p := &packed{}
	if prior != nil {
		from, p.tell = prior.body, prior.packed.tell
	}
	body := segment.New(out.Body, out.Cuts, from)
	sum := body.Sum()
	return &Rendered{body: body, contentType: out.ContentType, packed: p, tag: base64.RawURLEncoding.EncodeToString(sum[:18])}
}
