package gate

import (
	"context"
	"time"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// ListingRequest asks for one representation of a package's listing.
type ListingRequest struct {
	Name string
	Form string
	// Base is the mount's address as this client sees it, without a trailing slash.
	Base string
	// Authorization is the caller's credential; only the private upstream sees it.
	Authorization string
}

// Degradation says why a listing is not the complete and current one.
type Degradation string

// The reasons, which are also the label of the metric.
const (
	Complete Degradation = ""
	// DegradedCooldown: public versions are missing while their authority cools (R43)
	DegradedCooldown Degradation = "cooldown"
	// DegradedRetained: from before the cooldown, and older than its time (R87)
	DegradedRetained Degradation = "retained"
	// DegradedPrivate: the private upstream failed (R93)
	DegradedPrivate Degradation = "private"
	// DegradedTransient: the public upstream failed, and the private one resolved
	DegradedTransient Degradation = "upstream"
)

// Listing is a rendered listing and how to serve it.
type Listing struct {
	*documents.Rendered
	Degraded Degradation
	// Cooldown is the cooldown for which it is degraded; nil when it is not, or for another reason
	// alone.
	Cooldown *Unavailable
}

// As is the listing under another media type that its form may have.
func (l *Listing) As(contentType string) *Listing {
	other := *l
	other.Rendered = l.Rendered.As(contentType)
	return &other
}

// Listing gives a package's listing: the private versions, and the public ones that the rules
// admit. Its errors are *NotFound, *Denied, *Forbidden, *Unavailable and *BadUpstream; anything
// else is a fault of ours.
func (g *Gate) Listing(ctx context.Context, r ListingRequest) (*Listing, error) {
	l, err := g.listing(ctx, r)
	if err != nil {
		g.countDecision("listing", "metadata", err)
		return nil, err
	}
	g.countListing(l.Degraded, l.Cooldown)
	return l, nil
}

func (g *Gate) listing(ctx context.Context, r ListingRequest) (*Listing, error) {
	res, err := g.resolve(ctx, r.Name, r.Authorization)
	if err != nil {
		return nil, err
	}
	l := &Listing{Degraded: res.degraded, Cooldown: res.cooldown()}
	if res.private == nil {
		l.Rendered, err = g.renderPublic(r, res.public)
	} else {
		l.Rendered, err = g.renderMerged(r, res)
	}
	if err != nil {
		return nil, res.no(err, false)
	}
	if l.Degraded != Complete && l.Degraded != DegradedRetained {
		l.Rendered = l.Rendered.Marked() // never to answer for the complete one (R43, R49)
	}
	return l, nil
}

// Version gives the object of one version, by its number or a dist-tag of the listing, under the
// same rules and with the same errors as Listing.
func (g *Gate) Version(ctx context.Context, r ListingRequest, selector string) (*Listing, error) {
	l, err := g.oneVersion(ctx, r, selector)
	if err != nil {
		g.countDecision("listing", "metadata", err)
		return nil, err
	}
	g.countListing(l.Degraded, l.Cooldown)
	return l, nil
}

func (g *Gate) oneVersion(ctx context.Context, r ListingRequest, selector string) (*Listing, error) {
	res, err := g.resolve(ctx, r.Name, r.Authorization)
	if err != nil {
		return nil, err
	}
	out, named, err := g.pick(r, res, selector)
	// it may have been published since
	if isDenial(err) && !named && res.public != nil && res.missing == nil {
		got, unread := g.confirmed(ctx, r.Name, documents.Answer{State: documents.Fresh, Document: res.public, Confirmed: res.confirmed})
		switch {
		case unread != nil:
			res.missing = unread
		case got.Document != res.public || got.State == documents.Retained:
			res = res.with(got)
			out, named, err = g.pick(r, res, selector)
		}
	}
	if err != nil {
		return nil, res.no(err, named)
	}
	return &Listing{Rendered: documents.NewRendered(out, nil), Degraded: res.degraded, Cooldown: res.cooldown()}, nil
}

// pick renders one version of what resolved. Named tells that an error is the verdict on that very
// version.
func (g *Gate) pick(r ListingRequest, res resolved, selector string) (out registry.Rendering, named bool, err error) {
	now := time.Now()
	parts, _, err := g.parts(now, g.Rules(), r.Name, res)
	if err == nil {
		var ok bool
		if out, ok, err = g.opts.Ecosystem.RenderVersion(g.view(r, parts), selector); ok || err != nil {
			return out, false, err
		}
		err = &NotFound{What: r.Name + "@" + selector}
	}
	if denied := g.deniedVersion(now, r.Name, res, selector); denied != nil {
		return out, true, denied
	}
	return out, false, err
}

// deniedVersion is the verdict on a version that the documents hold, when it is one against it. The
// private one wins.
func (g *Gate) deniedVersion(now time.Time, name string, res resolved, version string) error {
	if res.private != nil {
		if i := res.private.Lookup(version); i >= 0 {
			return g.deniedPrivate(now, g.Rules(), name, res, i)
		}
	}
	if res.public != nil {
		if i := res.public.Lookup(version); i >= 0 {
			return g.admitVersion(now, name, res.public.Versions()[i])
		}
	}
	return nil
}
