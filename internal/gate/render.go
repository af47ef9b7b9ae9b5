package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// minGzip is the size below which packing a body costs more than it saves.
const minGzip = 1 << 10

// Rendered is one representation of a listing with its strong validators. It is immutable and safe for concurrent use.
type Rendered struct {
	body        []byte
	contentType string
	tag         string
	packed      *packed
}

// packed is the gzip form of a body, made once, when a client first asks for it.
type packed struct {
	once sync.Once
	body []byte
}

// ContentType is the media type of the listing.
func (r *Rendered) ContentType() string { return r.contentType }

// Identity returns the plain body and its strong entity tag.
func (r *Rendered) Identity() (body []byte, etag string) { return r.body, `"` + r.tag + `"` }

// Gzip returns the packed body and its own entity tag; ok is false when the body is too small to be packed.
func (r *Rendered) Gzip() (body []byte, etag string, ok bool) {
	if len(r.body) < minGzip {
		return nil, "", false
	}
	r.packed.once.Do(func() {
		var buf bytes.Buffer
		w, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed) // the level is a constant that the library knows
		_, _ = w.Write(r.body)                            // a bytes.Buffer does not fail
		_ = w.Close()
		r.packed.body = buf.Bytes()
	})
	return r.packed.body, `"` + r.tag + `-gzip"`, true
}

// marked is the same representation under tags of its own.
func (r *Rendered) marked() *Rendered {
	c := *r
	c.tag = "d" + c.tag
	return &c
}

func newRendered(out registry.Rendering) *Rendered {
	sum := sha256.Sum256(out.Body)
	return &Rendered{
		body: out.Body, contentType: out.ContentType, packed: &packed{},
		tag: base64.RawURLEncoding.EncodeToString(sum[:18]),
	}
}

// maxForms bounds the renderings that are kept of one document: a mount has few forms and few names for itself.
const maxForms = 8

// renderings are what was rendered from one public document alone. Each serves until the rules change or the first denied version
// comes of age.
type renderings struct {
	mu     sync.Mutex // guards all below; held while rendering, so that a crowd renders once
	forms  map[formKey]kept
	memory int64
}

type formKey struct{ form, base string }

type kept struct {
	rendered *Rendered
	policy   *policy.Set
	until    time.Time
}

func (r *renderings) cost() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory
}

// renderPublic renders a public document alone, which is the same for every caller and is therefore kept with it.
func (g *Gate) renderPublic(r ListingRequest, e *entry) (*Rendered, error) {
	now, set, key := time.Now(), g.policy.Load(), formKey{r.Form, r.Base}
	rs := e.renderings
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if k, ok := rs.forms[key]; ok && k.policy == set && (k.until.IsZero() || now.Before(k.until)) {
		return k.rendered, nil
	}
	a := g.admit(now, set, r.Name, e)
	if a.count == 0 {
		return nil, g.deniedListing(now, set, r.Name, e)
	}
	out, err := g.Ecosystem.Render(g.view(r, []registry.Part{{Document: e.doc, Keep: a.keep}}))
	if err != nil {
		return nil, err
	}
	grow := func(n int64) {
		g.documents.Grow(g.docKey(r.Name), n, func(other *entry) bool { return other.renderings == rs })
	}
	if _, again := rs.forms[key]; rs.forms == nil || again || len(rs.forms) >= maxForms {
		grow(-rs.memory)
		rs.forms, rs.memory = map[formKey]kept{}, 0
	}
	// What packing will add is charged now: a body packs to less than its own size.
	cost := 2 * int64(len(out.Body))
	rs.forms[key] = kept{newRendered(out), set, a.until}
	rs.memory += cost
	grow(cost)
	return rs.forms[key].rendered, nil
}

// renderMerged renders private and admitted public versions together; private ones win. It is never kept.
func (g *Gate) renderMerged(r ListingRequest, res resolved) (*Rendered, error) {
	parts, err := g.parts(time.Now(), g.policy.Load(), r.Name, res)
	if err != nil {
		return nil, err
	}
	out, err := g.Ecosystem.Render(g.view(r, parts))
	if err != nil {
		return nil, err
	}
	if out.Divergent > 0 {
		g.Metrics.Divergence(g.Ecosystem.Name, out.Divergent)
	}
	return newRendered(out), nil
}

// parts are the documents of a listing with what may be served of each: every private version, and the public ones that the rules
// admit. Nothing to serve at all is an error that says why.
func (g *Gate) parts(now time.Time, set *policy.Set, name string, res resolved) ([]registry.Part, error) {
	var parts []registry.Part
	count := 0
	if res.private != nil {
		keep, n := g.trusted(res.private)
		parts = append(parts, registry.Part{Document: res.private, Keep: keep})
		count = n
	}
	if res.public != nil {
		a := g.admit(now, set, name, res.public)
		parts = append(parts, registry.Part{Document: res.public.doc, Keep: a.keep})
		count += a.count
	}
	switch {
	case count > 0:
		return parts, nil
	case res.public != nil:
		return nil, g.deniedListing(now, set, name, res.public)
	case len(res.private.Versions()) > 0:
		return nil, &Denied{What: name, Verdict: floorVerdict(g.MinTrusted)}
	case res.private.Dropped() > 0:
		return nil, &BadUpstream{Reason: "the private registry's document holds no usable version"}
	}
	return nil, &NotFound{What: "any version of " + name}
}

// trusted is which private versions may be served: all that meet the floor.
func (g *Gate) trusted(doc registry.Document) (keep []bool, count int) {
	keep = make([]bool, len(doc.Versions()))
	for i, v := range doc.Versions() {
		if keep[i] = g.MinTrusted.Meets(v); keep[i] {
			count++
		}
	}
	return keep, count
}

func (g *Gate) view(r ListingRequest, parts []registry.Part) registry.View {
	return registry.View{Package: g.pkg(r.Name), Form: r.Form, Base: r.Base, Parts: parts}
}
