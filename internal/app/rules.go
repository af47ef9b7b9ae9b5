package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ecluse-gate/ecluse/internal/advisory"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/ecosystem"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// rulebook is the rules in force: those of the configuration over the advisory data of now. A new
// set is what ends kept renderings.
type rulebook struct {
	mu         sync.Mutex // guards rules, and the order in which sets are handed out
	rules      *policy.Set
	advisories *advisory.Store       // nil: there is no source
	gates      map[string]*gate.Gate // by ecosystem
}

// inForce is the set that the mounts judge by.
func (r *rulebook) inForce() *policy.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current()
}

// current is the rules over the advisory data of now; mu is held.
func (r *rulebook) current() *policy.Set {
	if r.advisories == nil {
		return r.rules
	}
	return r.rules.WithAdvisories(r.advisories.Data())
}

// use takes rules, or with nil keeps them and takes the advisory data of now.
func (r *rulebook) use(rules *policy.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rules != nil {
		r.rules = rules
	}
	set := r.current()
	for _, g := range r.gates {
		g.SetPolicy(set)
	}
}

// rulebook opens the advisory data, and puts the rules in force with it.
func (b *builder) rulebook(ctx context.Context, gates map[string]*gate.Gate) (*rulebook, error) {
	r := &rulebook{rules: b.rules, gates: gates}
	if err := b.openAdvisories(ctx, r); err != nil {
		return nil, err
	}
	r.use(nil)
	return r, nil
}

func (r *rulebook) close() {
	if r.advisories != nil {
		_ = r.advisories.Close() // it is read only from here on
	}
}

// Reload takes over the rules of a configuration that was read anew. Everything else needs a start.
// A problem keeps the rules that are in force, and says so.
func (a *App) Reload(cfg *config.Config, err error) {
	if err == nil {
		var rules *policy.Set
		if rules, err = policy.New(cfg.Rules, ecosystem.All()); err == nil {
			a.rules.use(rules)
			a.logger.Info("rules reloaded", slog.Int("rules", len(cfg.Rules)))
			return
		}
	}
	a.logger.Error("reload failed; keeping the current rules", obs.Err(err))
}

// openAdvisories opens the advisory data where a source is configured. What an earlier process read
// is in force at once.
func (b *builder) openAdvisories(ctx context.Context, r *rulebook) error {
	c := b.Config.Advisories
	if c.Source == "" {
		return nil
	}
	store, err := advisory.Open(ctx, advisory.Options{
		Dir: filepath.Join(b.Config.DataDir, "advisories"), Source: c.Source, Ecosystems: r.ecosystems(),
		Interval: c.Interval, Fetcher: advisorySource{b.client}, OnSwap: func(*advisory.Data) { r.use(nil) },
		OnRefresh: func(ecosystem string, err error) {
			b.metrics.AdvisoryRead(ecosystem, err == nil)
			if err != nil {
				b.Logger.Warn("advisory refresh failed; keeping the last good data", obs.Ecosystem(ecosystem), obs.Err(err))
			}
		},
	})
	if err != nil {
		return err
	}
	r.advisories = store
	return nil
}

// ecosystems are those of the mounts that are on.
func (r *rulebook) ecosystems() registry.Ecosystems {
	return slices.DeleteFunc(ecosystem.All(), func(e registry.Ecosystem) bool { return r.gates[e.Name] == nil })
}

// RunAdvisories looks at the source of advisories now and then, until ctx ends. Without a source it
// returns at once.
func (a *App) RunAdvisories(ctx context.Context) {
	if a.rules.advisories != nil {
		a.rules.advisories.Run(ctx)
	}
}

// ReadAdvisories looks at the source once, for commands that judge without a running gate.
func (a *App) ReadAdvisories(ctx context.Context) error {
	if a.rules.advisories == nil {
		return nil
	}
	var all error
	for _, name := range a.rules.ecosystems().Names() {
		all = errors.Join(all, a.rules.advisories.Refresh(ctx, name))
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
