package gate

import (
	"context"
	"errors"
	"time"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// resolved is what the upstreams hold of a package.
type resolved struct {
	private   registry.Document
	public    *documents.Document
	confirmed bool // public was read for this request
	degraded  Degradation
	// failed is the failure of the private side that the mount tolerates, and missing that of the
	// public one, or the cooldown for which its document is not a fresh one. With either, what the
	// documents do not hold is not absent (R99).
	failed  *Unavailable
	missing error
}

// with is res with what a public read gave.
func (res resolved) with(got documents.Answer) resolved {
	res.public, res.confirmed = got.Document, got.Confirmed
	if got.State == documents.Retained {
		res.missing = got.Cooldown
		if res.failed == nil {
			res.degraded = DegradedRetained
		}
	}
	return res
}

// cooldown is the cooldown because of which not everything is there or fresh; nil when there is
// none.
func (res resolved) cooldown() *Unavailable {
	if wait, ok := errors.AsType[*Unavailable](res.missing); ok && wait.Cooldown {
		return wait
	}
	return nil
}

// resolve asks the private upstream, then the public one.
func (g *Gate) resolve(ctx context.Context, name, authorization string) (resolved, error) {
	private, failed, err := g.privatePart(ctx, name, authorization)
	if err != nil {
		return resolved{}, err
	}
	res := resolved{private: private, failed: failed}
	if failed != nil {
		res.degraded = DegradedPrivate
	}
	if !g.privateOnly(name) {
		got, err := g.documents.Get(ctx, name, g.opts.TTL)
		if err != nil {
			return g.withoutPublic(name, res, err)
		}
		res = res.with(got)
	}
	if res.private == nil && res.public == nil {
		return resolved{}, res.no(&NotFound{What: name}, false)
	}
	if res.private != nil && res.public != nil {
		g.opts.Names.Both(name, res.private)
	}
	return res, nil
}

// withoutPublic serves the private versions while the public upstream cannot answer, and says so
// (R43); with none to serve, the client hears of the public trouble, or of the longer wait of two
// (R44).
func (g *Gate) withoutPublic(name string, res resolved, cause error) (resolved, error) {
	_, transient := errors.AsType[*Unavailable](cause)
	_, bad := errors.AsType[*BadUpstream](cause)
	servable := 0
	if res.private != nil {
		_, servable = g.trusted(time.Now(), g.Rules(), name, res, func(string) {})
	}
	if servable == 0 || !transient && !bad {
		return resolved{}, orFailed(res.failed, cause)
	}
	res.degraded, res.missing = DegradedTransient, cause
	if res.cooldown() != nil {
		res.degraded = DegradedCooldown
	}
	return res, nil
}

// privatePart reads the private upstream. A failure that the mount tolerates comes back as failed,
// any other as the error, joined with a cooldown that the client will meet anyway (R44).
func (g *Gate) privatePart(ctx context.Context, name, authorization string) (doc registry.Document, failed *Unavailable, err error) {
	if g.opts.Private == nil {
		return nil, nil, nil
	}
	doc, err = g.privateListing(ctx, name, authorization)
	wait, ok := errors.AsType[*Unavailable](err)
	switch {
	case !ok:
		return doc, nil, err
	case g.opts.DegradePrivate && !wait.Crowded: // which is not the private side's failure
		return nil, wait, nil
	case g.privateOnly(name):
		return nil, nil, wait
	}
	return nil, nil, refusal.Longest(wait, g.cooling())
}

// cooling tells of a cooldown without asking for anything.
func (g *Gate) cooling() *Unavailable {
	wait, closed := g.opts.Public.Remaining(time.Now())
	if !closed {
		return nil
	}
	e := g.side(g.opts.Public).Cooled(wait)
	e.Reason += ", and the private one fails"
	return e
}
