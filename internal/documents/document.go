package documents

import (
	"log/slog"
	"net/url"
	"time"

	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Document is one public document with the validators that came with it; both change together or
// not at all (C61). It is never changed.
type Document struct {
	registry.Document // nil while it is packed, which no caller sees

	of      *Documents
	name    string
	packed  []byte // the body of the document while it is packed; see Memory
	etag    string
	fetched time.Time // when the body was read
	checked time.Time // when an upstream last confirmed it
	// it comes from an earlier process, and no upstream has confirmed it in this one
	earlier bool

	contentType string // of the body
	url         *url.URL
	elsewhere   map[int]bool // entries whose file lies on a host that is not asked
	size        int          // of the body, while it is packed
	share       *quota.Share // what it took while it was read; nil, or long given back
	renderings  *renderings  // shared by documents of the same body; nil while it is packed
}

// Checked is when the upstream last confirmed the document.
func (e *Document) Checked() time.Time { return e.checked }

// Earlier reports whether the document comes from an earlier process and no upstream has confirmed
// it in this one.
func (e *Document) Earlier() bool { return e.earlier }

// Elsewhere reports whether the file of an entry lies on a host that is not asked.
func (e *Document) Elsewhere(i int) bool { return e.elsewhere[i] }

// CountElsewhere is the number of entries whose file lies on a host that is not asked.
func (e *Document) CountElsewhere() int { return len(e.elsewhere) }

// cost is the memory that a document takes, without its renderings.
func (e *Document) cost() int64 {
	// the entry, its key, its address and its place in the store; an element of elsewhere
	const fixed, each = 512, 32
	n := fixed + int64(len(e.etag)+len(e.contentType)+each*len(e.elsewhere)+cap(e.packed))
	if e.Document != nil {
		n += e.Document.Cost()
	}
	return n
}

// scan reads a body and gives the document, without its validators and times.
func (d *Documents) scan(name string, src registry.Source) (*Document, error) {
	doc, err := d.opts.Protocol.Scan(d.pkg(name), src)
	if err != nil {
		return nil, err
	}
	return &Document{Document: doc, of: d, name: name, contentType: src.ContentType, url: src.URL, renderings: &renderings{}}, nil
}

// unreachable finds the entries whose files lie on hosts that are not configured, where only links
// count, and says so once for the document.
func (d *Documents) unreachable(name string, doc registry.Document) map[int]bool {
	if d.opts.Owned == nil {
		return nil
	}
	var out map[int]bool
	example := ""
	for i, v := range doc.Versions() {
		if len(v.Artifacts) > 0 {
			if d.opts.Owned(v.Artifacts[0].URL) {
				continue
			}
			example = v.Artifacts[0].File
		}
		if out == nil {
			out = map[int]bool{}
		}
		out[i] = true
	}
	if len(out) > 0 {
		d.opts.Logger.Warn("files on hosts that are not configured are not served", obs.Ecosystem(d.opts.Protocol.Name), obs.Package(name),
			slog.Int("count", len(out)), slog.String("example", example))
	}
	return out
}
