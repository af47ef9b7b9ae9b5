package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// index is the public list of all packages, as it was last read.
type index struct {
	names   []string
	checked time.Time
}

// indexPath is where a simple index has the list of its projects, below the base.
const indexPath = "/"

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
	if g.Private != nil {
		names, err := g.privateIndex(ctx, authorization)
		wait, transient := errors.AsType[*Unavailable](err)
		switch {
		case transient && g.DegradePrivate:
			res.failed, res.degraded = wait, DegradedPrivate
		case transient:
			return nil, longest(wait, g.cooling())
		case err != nil:
			return nil, err
		}
		private = names
	}
	public, stale, err := g.publicIndex(ctx)
	switch {
	case stale != nil:
		res = res.with(fetched{stale: stale})
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
		return nil, res.no(&NotFound{What: projectList}, false)
	}
	slices.Sort(all)
	return &Projects{Names: slices.Compact(all), Degraded: res.degraded, Cooldown: res.cooldown()}, nil
}

const projectList = "the list of projects"

// publicIndex gives the public list, and the cooldown for which it is a retained one.
func (g *Gate) publicIndex(ctx context.Context) (names []string, stale *Unavailable, err error) {
	kept := g.projects.Load()
	if kept != nil && time.Since(kept.checked) < g.TTL {
		return kept.names, nil, nil
	}
	fresh, err := g.indexes.Do(ctx, "", func(ctx context.Context) (*index, error) {
		// read since the look above
		if now := g.projects.Load(); now != nil && time.Since(now.checked) < g.TTL {
			return now, nil
		}
		return g.fetchIndex(ctx)
	})
	if err == nil {
		return fresh.names, nil, nil
	}
	err = taken(err)
	if wait, ok := errors.AsType[*Unavailable](err); ok && wait.Cooldown && kept != nil && time.Since(kept.checked) < g.MaxStale {
		return kept.names, wait, nil
	}
	return nil, nil, err
}

func (g *Gate) fetchIndex(ctx context.Context) (*index, error) {
	u, err := g.Public.Under(indexPath)
	if err != nil {
		return nil, err
	}
	resp, err := g.Public.Do(ctx, upstream.Request{Method: http.MethodGet, URL: u, Kind: upstream.Metadata, Accept: g.Ecosystem.ListingAccept})
	if err != nil {
		return nil, g.unsent(g.Public, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, g.publicStatus(resp, projectList)
	}
	names, err := g.readIndex(resp.Response)
	if err != nil {
		return nil, fromPublic(err)
	}
	fresh := &index{names: names, checked: time.Now()}
	g.projects.Store(fresh)
	return fresh, nil
}

func (g *Gate) privateIndex(ctx context.Context, authorization string) ([]string, error) {
	u, err := g.Private.Under(indexPath)
	if err != nil {
		return nil, err
	}
	resp, err := g.Private.Do(ctx, upstream.Request{Method: http.MethodGet, URL: u, Kind: upstream.Metadata, Accept: g.Ecosystem.ListingAccept}, authorization)
	if err != nil {
		return nil, fromPrivate(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, privateStatus(resp)
	}
	names, err := g.readIndex(resp)
	if err != nil {
		return nil, fromPrivate(err)
	}
	return names, nil
}

func (g *Gate) readIndex(resp *http.Response) ([]string, error) {
	body, err := upstream.ReadBody(resp, maxDocument)
	if err != nil {
		return nil, err
	}
	return g.Ecosystem.ScanIndex(source(resp, body))
}

// publicStatus types an answer to a public metadata read that is not the document (R45, R92); an
// absence is *NotFound.
func (g *Gate) publicStatus(resp *upstream.Response, what string) error {
	switch s := resp.StatusCode; {
	case resp.Throttled:
		return g.met(g.Public, resp.Wait)
	case s == http.StatusNotFound || s == http.StatusGone:
		return &NotFound{What: what}
	case s == http.StatusRequestTimeout || s >= 500:
		return &Unavailable{Wait: transientWait, Reason: fmt.Sprintf("the public registry answered with status %d", s)}
	default:
		return &BadUpstream{Status: s, Reason: fmt.Sprintf("the public registry answered a listing request with status %d", s)}
	}
}

// older reports whether a document is from before the kept one, by the upstream's own count of
// changes (C22).
func (g *Gate) older(doc registry.Document, kept *entry) bool {
	if g.Ecosystem.Serial == nil || kept == nil {
		return false
	}
	now, ok1 := g.Ecosystem.Serial(doc)
	before, ok2 := g.Ecosystem.Serial(kept.doc)
	return ok1 && ok2 && now < before
}
