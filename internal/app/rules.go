package app

import (
	"context"
	"sync"

	"github.com/ecluse-gate/ecluse/internal/advisory"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// rulebook is the rules in force: those of the configuration over the advisory data of now. A new
// set is what ends kept renderings.
type rulebook struct {
	mounts serving.Mounts
	open   openFunc

	mu    sync.Mutex // guards what follows, and the order in which sets are handed out
	rules *policy.Set
	feed  *feed
}

// inForce is the set that the mounts judge by.
func (r *rulebook) inForce() *policy.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current()
}

// current is the rules over the advisory data of now; mu is held.
func (r *rulebook) current() *policy.Set {
	if r.feed.store == nil {
		return r.rules
	}
	return r.rules.WithAdvisories(r.feed.store.Data())
}

// use takes rules, or with nil keeps them and takes the advisory data of now.
func (r *rulebook) use(rules *policy.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rules != nil {
		r.rules = rules
	}
	set := r.current()
	for _, m := range r.mounts {
		if m.Gate != nil {
			m.Gate.SetPolicy(set)
		}
	}
}

// rulebook opens the advisory data, and puts the rules in force with it.
func (b *builder) rulebook(ctx context.Context, mounts serving.Mounts) (*rulebook, error) {
	r := &rulebook{rules: b.rules, mounts: mounts, feed: newFeed(b.Config.Advisories)}
	r.open = func(ctx context.Context, c config.Advisories) (*advisory.Store, error) {
		return b.openAdvisories(ctx, r, c)
	}
	if err := r.feed.open(ctx, r.open); err != nil {
		return nil, err
	}
	r.use(nil)
	return r, nil
}

func (r *rulebook) close() {
	if store := r.advisories(); store != nil {
		_ = store.Close() // it is read only from here on
	}
}
