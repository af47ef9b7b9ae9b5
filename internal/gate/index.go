package gate

import (
	"context"
	"errors"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/refusal"
)

// Projects is the list of all packages, and how to serve it.
type Projects struct {
	// Names are sorted.
	Names    []string
	Degraded Degradation
	// Cooldown is as in Listing.
	Cooldown *Unavailable
}

// Index lists all packages that the upstreams hold. It obeys the cooldown as a listing does: a
// retained list serves while the authority cools, or the private one alone. Its errors are those of
// Listing.
func (g *Gate) Index(ctx context.Context, authorization string) (*Projects, error) {
	p, err := g.index(ctx, authorization)
	if err != nil {
		g.countDecision("listing", "metadata", err)
		return nil, err
	}
	g.countListing(p.Degraded, p.Cooldown)
	return p, nil
}

func (g *Gate) index(ctx context.Context, authorization string) (*Projects, error) {
	var res resolved
	var private []string
	if g.opts.Private != nil {
		names, err := g.documents.PrivateList(ctx, authorization)
		wait, transient := errors.AsType[*Unavailable](err)
		switch {
		case transient && g.opts.DegradePrivate:
			res.failed, res.degraded = wait, DegradedPrivate
		case transient:
			return nil, refusal.Longest(wait, g.cooling())
		case err != nil:
			return nil, err
		}
		private = names
	}
	public, stale, err := g.documents.List(ctx, g.opts.TTL)
	switch {
	case stale != nil:
		res = res.with(documents.Answer{State: documents.Retained, Cooldown: stale})
	case err != nil && len(private) == 0:
		return nil, orFailed(res.failed, err)
	case is[*NotFound](err): // it has no such list
	case err != nil:
		res.degraded, res.missing = DegradedTransient, err
		if res.cooldown() != nil {
			res.degraded = DegradedCooldown
		}
	}
	all := slices.Concat(private, public)
	if len(all) == 0 && res.degraded != Complete { // an empty list is a no
		return nil, res.no(&NotFound{What: documents.WhatList}, false)
	}
	slices.Sort(all)
	return &Projects{Names: slices.Compact(all), Degraded: res.degraded, Cooldown: res.cooldown()}, nil
}
