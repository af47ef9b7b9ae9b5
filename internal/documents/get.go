package documents

import (
	"context"
	"errors"
	"time"

	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/refusal"
)

// State is how far an answer can be relied on.
type State int

// The states.
const (
	// Failed is that nothing is known; the error says why, and when to ask again.
	Failed State = iota
	// Fresh is that the upstream said so at most as long ago as was asked for.
	Fresh
	// Retained is from longer ago, since the authority cools (R87).
	Retained
	// Absent is that the upstream says now that there is no such package.
	Absent
)

// Answer is what is known of the public document of a package.
type Answer struct {
	State State
	// Document is there when State is Fresh or Retained.
	Document *Document
	// Confirmed tells that the upstream said so to this very request, or to one that it shared.
	Confirmed bool
	// Cooldown is what kept a Retained document from being confirmed.
	Cooldown *refusal.Unavailable
}

// Get gives the public document of a package, of at most that age: kept, fetched, or, while the
// authority cools, retained. Callers of the same document share one read (R46). Its errors are
// *refusal.Unavailable and *refusal.BadUpstream; anything else is a fault of ours.
func (d *Documents) Get(ctx context.Context, name string, maxAge time.Duration) (Answer, error) {
	kept := d.recall(ctx, name)
	if kept != nil && time.Since(kept.checked) < maxAge {
		return Answer{State: Fresh, Document: kept}, nil
	}
	doc, err := d.shared(ctx, name, kept, maxAge)
	if err == nil && doc == nil {
		return Answer{State: Absent, Confirmed: true}, nil
	}
	if err == nil {
		quota.Keep(ctx, doc.share)
		return Answer{State: Fresh, Document: doc, Confirmed: true}, nil
	}
	err = refusal.Taken(err)
	wait, transient := errors.AsType[*refusal.Unavailable](err)
	if kept != nil && transient && wait.Cooldown && time.Since(kept.checked) < d.opts.MaxStale {
		return Answer{State: Retained, Document: kept, Cooldown: wait}, nil
	}
	return Answer{}, err
}

// shared fetches a document, once for everybody who asks meanwhile. While the authority cools that
// is not even begun.
func (d *Documents) shared(ctx context.Context, name string, kept *Document, maxAge time.Duration) (*Document, error) {
	if refused := d.opts.Public.Refused(ctx, time.Now()); refused != nil {
		return nil, d.opts.Side.Unsent(refused)
	}
	return d.fetches.Do(ctx, name, func(ctx context.Context) (*Document, error) {
		// a read that has ended since the look before has left its answer
		now := d.recall(ctx, name)
		if now == nil {
			now = kept
		} else if time.Since(now.checked) < maxAge {
			return now, nil
		}
		return d.fetch(ctx, name, now)
	})
}

// Held reports whether the memory has a document of at most that age.
func (d *Documents) Held(name string, maxAge time.Duration) bool {
	kept, ok := d.opts.Memory.store.Get(d.key(name))
	return ok && time.Since(kept.checked) < maxAge
}
