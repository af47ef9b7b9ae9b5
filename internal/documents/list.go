package documents

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/refusal"
)

// projects is the public list of all packages, as it was last read.
type projects struct {
	names   []string
	checked time.Time
}

// listPath is where a simple index has the list of its projects, below the base.
const listPath = "/"

// WhatList is what a refusal calls the list of all packages.
const WhatList = "the list of projects"

// List gives the public list of all packages, of at most that age, and the cooldown for which it is
// a retained one. Its errors are those of Get, and *refusal.NotFound where there is no such list.
func (d *Documents) List(ctx context.Context, maxAge time.Duration) (names []string, stale *refusal.Unavailable, err error) {
	kept := d.projects.Load()
	if kept != nil && time.Since(kept.checked) < maxAge {
		return kept.names, nil, nil
	}
	fresh, err := d.lists.Do(ctx, "", func(ctx context.Context) (*projects, error) {
		// read since the look before
		if now := d.projects.Load(); now != nil && time.Since(now.checked) < maxAge {
			return now, nil
		}
		return d.fetchList(ctx)
	})
	if err == nil {
		return fresh.names, nil, nil
	}
	err = refusal.Taken(err)
	if wait, ok := errors.AsType[*refusal.Unavailable](err); ok && wait.Cooldown && kept != nil && time.Since(kept.checked) < d.opts.MaxStale {
		return kept.names, wait, nil
	}
	return nil, nil, err
}

func (d *Documents) fetchList(ctx context.Context) (*projects, error) {
	resp, err := d.ask(ctx, listPath, "")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, d.opts.Side.Status(resp, WhatList)
	}
	src, share, err := d.source(ctx, resp.Response)
	if err != nil {
		return nil, refusal.FromPublic(err)
	}
	defer share.Release()
	names, err := d.opts.Protocol.ScanIndex(src)
	if err != nil {
		return nil, refusal.FromPublic(err)
	}
	fresh := &projects{names: names, checked: time.Now()}
	d.projects.Store(fresh)
	return fresh, nil
}
