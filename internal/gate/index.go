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

// Index lists all packages that the upstreams hold, sorted. It obeys the cooldown as a listing does; a retained list serves while the
// authority cools.
func (g *Gate) Index(ctx context.Context, authorization string) ([]string, error) {
	names, err := g.index(ctx, authorization)
	g.countDecision("listing", "metadata", err)
	return names, err
}

func (g *Gate) index(ctx context.Context, authorization string) ([]string, error) {
	var private []string
	if g.Private != nil {
		names, err := g.privateIndex(ctx, authorization)
		if _, transient := errors.AsType[*Unavailable](err); err != nil && !(transient && g.DegradePrivate) {
			return nil, err
		}
		private = names
	}
	public, err := g.publicIndex(ctx)
	if err != nil && len(private) == 0 {
		return nil, err
	}
	all := slices.Concat(private, public)
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (g *Gate) publicIndex(ctx context.Context) ([]string, error) {
	kept := g.projects.Load()
	if kept != nil && time.Since(kept.checked) < g.TTL {
		return kept.names, nil
	}
	fresh, err := g.indexes.Do(ctx, "", func(ctx context.Context) (*index, error) {
		if now := g.projects.Load(); now != nil && time.Since(now.checked) < g.TTL { // read since the look above
			return now, nil
		}
		return g.fetchIndex(ctx)
	})
	if err == nil {
		return fresh.names, nil
	}
	if wait, ok := errors.AsType[*Unavailable](err); ok && wait.Cooldown && kept != nil && time.Since(kept.checked) < g.MaxStale {
		return kept.names, nil
	}
	return nil, err
}

func (g *Gate) fetchIndex(ctx context.Context) (*index, error) {
	u, err := g.Public.Under(indexPath)
	if err != nil {
		return nil, err
	}
	resp, err := g.Public.Do(ctx, upstream.Request{Method: http.MethodGet, URL: u, Kind: upstream.Metadata, Accept: g.Ecosystem.ListingAccept})
	if err != nil {
		return nil, fromPublic(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, publicStatus(resp, "the list of projects")
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

// publicStatus types an answer to a public metadata read that is not the document (R45, R92); an absence is *NotFound.
func publicStatus(resp *upstream.Response, what string) error {
	switch s := resp.StatusCode; {
	case resp.Throttled:
		return paused(resp.Wait)
	case s == http.StatusNotFound || s == http.StatusGone:
		return &NotFound{What: what}
	case s == http.StatusRequestTimeout || s >= 500:
		return &Unavailable{Wait: transientWait, Reason: fmt.Sprintf("the public registry answered %d", s)}
	default:
		return &BadUpstream{Status: s, Reason: fmt.Sprintf("the public registry answered %d to a listing", s)}
	}
}

// older reports whether a document is from before the kept one, by the upstream's own count of changes (C22).
func (g *Gate) older(doc registry.Document, kept *entry) bool {
	if g.Ecosystem.Serial == nil || kept == nil {
		return false
	}
	now, ok1 := g.Ecosystem.Serial(doc)
	before, ok2 := g.Ecosystem.Serial(kept.doc)
	return ok1 && ok2 && now < before
}
