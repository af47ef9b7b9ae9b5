package gate

import (
	"encoding/base64"
	"log/slog"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/policy"
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

// marked is the same representation under tags of its own.
func (r *Rendered) marked() *Rendered {
	c := *r
	c.tag = "d" + c.tag
	return &c
}

// newRendered takes over from prior, which may be nil, what did not change.
func newRendered(out registry.Rendering, prior *segment.Body) *Rendered {
	body := segment.New(out.Body, out.Cuts, prior)
	sum := body.Sum()
	return &Rendered{
		body: body, contentType: out.ContentType, packed: &packed{},
		tag: base64.RawURLEncoding.EncodeToString(sum[:18]),
	}
}

// maxForms bounds the renderings that are kept of one document: a mount has few forms and few names
// for itself.
const maxForms = 8

// renderings are what was rendered from one public document alone. Each serves until the rules
// change or the first denied version comes of age; then the next one takes over from it what did
// not change.
type renderings struct {
	mu     sync.Mutex // guards all below; held while rendering, so that a crowd renders once
	forms  map[formKey]kept
	memory int64 // the sum of the costs
}

type formKey struct{ form, base string }

type kept struct {
	rendered *Rendered
	policy   *policy.Set // nil: of the document before this one, to take over from
	until    time.Time
	cost     int64 // as it is charged
}

func (r *renderings) cost() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory
}

// successor begins the renderings of the next document of the same package: those of this one that
// serve are there to take over from.
func (r *renderings) successor() *renderings {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := &renderings{forms: map[formKey]kept{}}
	for key, k := range r.forms {
		if k.policy != nil {
			k.policy = nil
			next.set(key, k)
		}
	}
	return next
}

// set keeps a rendering in place of the one before, and tells by how much the cost changed.
func (r *renderings) set(key formKey, k kept) int64 {
	before := r.memory
	old, again := r.forms[key]
	if r.forms == nil || !again && len(r.forms) >= maxForms {
		r.forms, r.memory = map[formKey]kept{}, 0
	}
	r.forms[key] = k
	r.memory += k.cost - old.cost
	return r.memory - before
}

// recount brings the charged cost of a rendering up to date, if it is still the one that is kept.
func (r *renderings) recount(key formKey, rendered *Rendered) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.forms[key]
	if k.rendered != rendered {
		return 0
	}
	k.cost = rendered.body.Cost()
	return r.set(key, k)
}

// renderPublic renders a public document alone, which is the same for every caller and is therefore
// kept with it.
func (g *Gate) renderPublic(r ListingRequest, e *entry) (*Rendered, error) {
	now, set := time.Now(), g.policy.Load()
	return g.renderKept(now, set, r, e, func() admission { return g.admit(now, set, r.Name, e) })
}

// renderKept gives the rendering that is kept of a public document, or keeps one of what admit
// admits.
func (g *Gate) renderKept(now time.Time, set *policy.Set, r ListingRequest, e *entry, admit func() admission) (*Rendered, error) {
	key, rs := formKey{r.Form, r.Base}, e.renderings
	rs.mu.Lock()
	defer rs.mu.Unlock()
	last := rs.forms[key]
	if last.policy == set && (last.until.IsZero() || now.Before(last.until)) {
		return last.rendered, nil
	}
	a := admit()
	if a.count == 0 {
		return nil, g.deniedListing(now, set, r.Name, e)
	}
	out, err := g.Ecosystem.Render(g.view(r, []registry.Part{{Document: e.doc, Keep: a.keep}}))
	if err != nil {
		return nil, err
	}
	var prior *segment.Body
	if last.rendered != nil {
		prior = last.rendered.body
	}
	rendered := newRendered(out, prior)
	grow := func(n int64) {
		g.documents.Grow(g.docKey(r.Name), n, func(other *entry) bool { return other.renderings == rs })
	}
	rendered.packed.tell = func() { grow(rs.recount(key, rendered)) }
	grow(rs.set(key, kept{rendered, set, a.until, rendered.body.Cost()}))
	return rendered, nil
}

// renderMerged renders private and admitted public versions together; private ones win. It is kept
// for nobody. What it shares with the rendering of the public document alone, which is kept, is
// taken over from there, and packed for both; nothing else leads from here to there.
func (g *Gate) renderMerged(r ListingRequest, res resolved) (*Rendered, error) {
	now, set := time.Now(), g.policy.Load()
	parts, a, err := g.parts(now, set, r.Name, res)
	if err != nil {
		return nil, err
	}
	out, err := g.Ecosystem.Render(g.view(r, parts))
	if err != nil {
		return nil, err
	}
	if out.Divergent > 0 {
		g.Metrics.Divergence(g.Ecosystem.Name, out.Divergent)
		g.Logger.Warn("the private and the public registry have different files for the same version; serving the private one",
			obs.Ecosystem(g.Ecosystem.Name), obs.Package(r.Name), slog.Int("versions", out.Divergent))
	}
	if a.count == 0 || len(out.Body) <= segment.Small {
		return newRendered(out, nil), nil
	}
	public, err := g.renderKept(now, set, r, res.public, func() admission { return a })
	if err != nil {
		return nil, err
	}
	rendered := newRendered(out, public.body)
	rendered.packed.tell = public.packed.tell
	return rendered, nil
}

// parts are the documents of a listing with what may be served of each: every private version, and
// the public ones that the rules admit. Nothing to serve at all is an error that says why.
func (g *Gate) parts(now time.Time, set *policy.Set, name string, res resolved) (parts []registry.Part, a admission, err error) {
	count := 0
	if res.private != nil {
		keep, n := g.trusted(res.private)
		parts = append(parts, registry.Part{Document: res.private, Keep: keep})
		count = n
	}
	if res.public != nil {
		a = g.admit(now, set, name, res.public)
		parts = append(parts, registry.Part{Document: res.public.doc, Keep: a.keep})
		count += a.count
	}
	switch {
	case count > 0:
		return parts, a, nil
	case res.public != nil:
		return nil, a, g.deniedListing(now, set, name, res.public)
	case res.private == nil:
		return nil, a, &NotFound{What: name}
	case len(res.private.Versions()) > 0:
		return nil, a, &Denied{What: name, Verdict: floorVerdict(g.MinTrusted)}
	case res.private.Dropped() > 0:
		return nil, a, &BadUpstream{Reason: "the private registry's document contains no usable version"}
	}
	return nil, a, &NotFound{What: "any version of " + name}
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
