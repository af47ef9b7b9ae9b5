package gate

import (
	"log/slog"
	"time"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/segment"
)

// renderPublic renders a public document alone, which is the same for every caller and is therefore
// kept with it.
func (g *Gate) renderPublic(r ListingRequest, e *documents.Document) (*documents.Rendered, error) {
	now, set := time.Now(), g.Rules()
	return g.renderKept(now, set, r, e, func() admission { return g.admit(now, set, r.Name, e) })
}

// renderKept gives the rendering that is kept of a public document, or keeps one of what admit
// admits.
func (g *Gate) renderKept(
	now time.Time, set *policy.Set, r ListingRequest, e *documents.Document, admit func() admission,
) (*documents.Rendered, error) {
	form := documents.Form{Name: r.Form, Base: r.Base}
	return e.Rendering(now, form, set, func() (registry.Rendering, time.Time, error) {
		a := admit()
		if a.count == 0 {
			return registry.Rendering{}, a.until, g.deniedListing(now, set, r.Name, e)
		}
		out, err := g.opts.Ecosystem.Render(g.view(r, []registry.Part{{Document: e.Document, Keep: a.keep}}))
		return out, a.until, err
	})
}

// renderMerged renders private and admitted public versions together; private ones win. It is kept
// for nobody. What it shares with the rendering of the public document alone, which is kept, is
// taken over from there, and packed for both; nothing else leads from here to there.
func (g *Gate) renderMerged(r ListingRequest, res resolved) (*documents.Rendered, error) {
	now, set := time.Now(), g.Rules()
	parts, a, err := g.parts(now, set, r.Name, res)
	if err != nil {
		return nil, err
	}
	out, err := g.opts.Ecosystem.Render(g.view(r, parts))
	if err != nil {
		return nil, err
	}
	if out.Divergent > 0 {
		g.opts.Metrics.Divergence(g.opts.Ecosystem.Name, out.Divergent)
		g.opts.Logger.Warn("the private and the public registry have different files for the same version; serving the private one",
			obs.Ecosystem(g.opts.Ecosystem.Name), obs.Package(r.Name), slog.Int("versions", out.Divergent))
	}
	if a.count == 0 || len(out.Body) <= segment.Small {
		return documents.NewRendered(out, nil), nil
	}
	public, err := g.renderKept(now, set, r, res.public, func() admission { return a })
	if err != nil {
		return nil, err
	}
	return documents.NewRendered(out, public), nil
}

// parts are the documents of a listing with what may be served of each: the private versions that
// no rule denies, and the public ones that the rules admit. Nothing to serve at all is an error
// that says why.
func (g *Gate) parts(now time.Time, set *policy.Set, name string, res resolved) (parts []registry.Part, a admission, err error) {
	count := 0
	if res.private != nil {
		keep, n := g.trusted(now, set, name, res, g.opts.Metrics.Denial)
		parts = append(parts, registry.Part{Document: res.private, Keep: keep})
		count = n
	}
	if res.public != nil {
		a = g.admit(now, set, name, res.public)
		parts = append(parts, registry.Part{Document: res.public.Document, Keep: a.keep})
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
		return nil, a, g.deniedPrivate(now, set, name, res, len(res.private.Versions())-1)
	case res.private.Dropped() > 0:
		return nil, a, &BadUpstream{Reason: "the private registry's document contains no usable version"}
	}
	return nil, a, &NotFound{What: "any version of " + name}
}

func (g *Gate) view(r ListingRequest, parts []registry.Part) registry.View {
	return registry.View{Package: g.pkg(r.Name), Form: r.Form, Base: r.Base, Parts: parts}
}
