package mirror

import (
	"context"
	"sync"
)

// keyed lets one holder of each key work at a time.
type keyed struct {
	mu   sync.Mutex
	held map[string]*turn
}

type turn struct {
	slot    chan struct{}
	waiting int
}

// enter waits for the key's turn, or until ctx ends.
func (k *keyed) enter(ctx context.Context, key string) (release func(), err error) {
	k.mu.Lock()
	t := k.held[key]
	if t == nil {
		t = &turn{slot: make(chan struct{}, 1)}
		k.held[key] = t
	}
	t.waiting++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if t.waiting--; t.waiting == 0 {
			delete(k.held, key)
		}
	}
	select {
	case t.slot <- struct{}{}:
		return func() { <-t.slot; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
