package app

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ecluse-gate/ecluse/internal/advisory"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/serving"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// feed is one source of advisories, from its opening to its replacement by a reload.
type feed struct {
	settings config.Advisories
	store    *advisory.Store // nil: there is no source
	running  sync.Mutex      // held while the store looks at its source
	replaced chan struct{}   // closed when that has to end
	next     chan struct{}   // closed when another feed has taken the place of this one
}

func newFeed(c config.Advisories) *feed {
	return &feed{settings: c, replaced: make(chan struct{}), next: make(chan struct{})}
}

// open opens the store, if there is a source.
func (f *feed) open(ctx context.Context, open openFunc) (err error) {
	if f.settings.Source != "" {
		f.store, err = open(ctx, f.settings)
	}
	return err
}

// openFunc opens the advisory data of a source.
type openFunc func(context.Context, config.Advisories) (*advisory.Store, error)

// run looks at the source until ctx ends or the feed is replaced.
func (f *feed) run(ctx context.Context) {
	f.running.Lock()
	defer f.running.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	select {
	case <-f.replaced:
		return
	default:
	}
	if f.store == nil {
		return
	}
	go func() {
		select {
		case <-f.replaced:
			stop()
		case <-ctx.Done():
		}
	}()
	f.store.Run(ctx)
}

func (r *rulebook) currentFeed() *feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.feed
}

// advisories is the advisory data; nil while there is no source.
func (r *rulebook) advisories() *advisory.Store { return r.currentFeed().store }

// follow takes another source of advisories, or another interval. Two stores cannot have one
// folder, so the old one is closed first; when the new one cannot be opened, the old one goes on.
// It is not called twice at a time.
func (r *rulebook) follow(ctx context.Context, c config.Advisories) error {
	old := r.currentFeed()
	if old.settings == c {
		return nil
	}
	close(old.replaced)
	old.running.Lock() // until it looks no more
	defer old.running.Unlock()
	var err error
	if old.store != nil {
		err = old.store.Close()
	}
	f := newFeed(c)
	if err == nil {
		err = f.open(ctx, r.open)
	}
	if err != nil {
		f.settings, f.store = old.settings, old.store
	}
	r.mu.Lock()
	r.feed = f
	r.mu.Unlock()
	close(old.next)
	return err
}

// openAdvisories opens the advisory data of a source. What an earlier process read is in force at
// once.
func (b *builder) openAdvisories(ctx context.Context, r *rulebook, c config.Advisories) (*advisory.Store, error) {
	return advisory.Open(ctx, advisory.Options{
		Dir: filepath.Join(b.Config.DataDir, "advisories"), Source: c.Source, Ecosystems: r.ecosystems(),
		Interval: c.Interval, Fetcher: advisorySource{b.client}, OnSwap: func(*advisory.Data) { r.use(nil) },
		Report: b.metrics.Store("advisories", b.Logger), Around: b.around("advisories"),
		OnRefresh: func(ecosystem string, err error) {
			b.metrics.AdvisoryRead(ecosystem, err == nil)
			if err != nil {
				b.Logger.Warn("advisory refresh failed; keeping the last good data", obs.Ecosystem(ecosystem), obs.Err(err))
			}
		},
	})
}

// ecosystems are those of the mounts that are on.
func (r *rulebook) ecosystems() registry.Ecosystems {
	on := slices.DeleteFunc(slices.Clone(r.mounts), func(m serving.Mount) bool { return m.Gate == nil })
	return on.Ecosystems().Known()
}

// RunAdvisories looks at the source of advisories now and then, until ctx ends: at the one that is
// configured then, after a reload as well.
func (a *App) RunAdvisories(ctx context.Context) {
	for {
		f := a.rules.currentFeed()
		f.run(ctx)
		select {
		case <-f.next:
		case <-ctx.Done():
			return
		}
	}
}

// ReadAdvisories looks at the source once, for commands that judge without a running gate.
func (a *App) ReadAdvisories(ctx context.Context) error {
	store := a.rules.advisories()
	if store == nil {
		return nil
	}
	var all error
	for _, name := range a.rules.ecosystems().Names() {
		all = errors.Join(all, store.Refresh(ctx, name))
	}
	return all
}

// advisorySource fetches exports through the public client, so that its egress rules and its
// cooldown hold for them too.
type advisorySource struct{ client *upstream.Client }

// Fetch implements advisory.Fetcher.
func (a advisorySource) Fetch(ctx context.Context, address, etag string) (*http.Response, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	public, err := a.client.Public(u, upstream.Encoded)
	if err != nil {
		return nil, err
	}
	resp, err := public.Do(upstream.Background(ctx), upstream.Request{Method: http.MethodGet, URL: u, Kind: upstream.Artifact, IfNoneMatch: etag})
	if err != nil {
		return nil, err
	}
	if resp.Throttled {
		_ = resp.Body.Close()
		wait, _ := resp.RetryAfter.Delay()
		return nil, &advisory.Throttled{Wait: wait}
	}
	return resp.Response, nil
}
