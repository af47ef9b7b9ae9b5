// Package flight makes one call for many who wait for it.
package flight

import (
	"context"
	"fmt"
	"sync"
)

// Group lets many callers wait for one fetch of the same key (R46). A fetch outlives the caller
// that began it and is cancelled when its last waiter has gone (R69). The zero value is ready; it
// is safe for concurrent use.
type Group[K comparable, V any] struct {
	mu    sync.Mutex // guards calls and every call's waiters
	calls map[K]*call[V]
}

type call[V any] struct {
	waiters int
	cancel  context.CancelFunc
	done    chan struct{}
	value   V // these two are written before done is closed
	err     error
}

// Do returns what fetch returns, running it at most once at a time for each key. The context that
// fetch gets carries the first caller's values, not its cancellation. When ctx ends first, Do
// returns its cause.
func (f *Group[K, V]) Do(ctx context.Context, key K, fetch func(context.Context) (V, error)) (V, error) {
	c := f.join(ctx, key, fetch)
	select {
	case <-c.done:
		f.leave(key, c)
		return c.value, c.err
	case <-ctx.Done():
		f.leave(key, c)
		var zero V
		return zero, context.Cause(ctx)
	}
}

func (f *Group[K, V]) join(ctx context.Context, key K, fetch func(context.Context) (V, error)) *call[V] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.calls[key]; ok {
		c.waiters++
		return c
	}
	fctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &call[V]{waiters: 1, cancel: cancel, done: make(chan struct{})}
	if f.calls == nil {
		f.calls = map[K]*call[V]{}
	}
	f.calls[key] = c
	go f.run(fctx, key, c, fetch)
	return c
}

// run fetches and publishes the outcome. A panic becomes the waiters' error: one bad document must
// not end the process.
func (f *Group[K, V]) run(ctx context.Context, key K, c *call[V], fetch func(context.Context) (V, error)) {
	defer func() {
		if p := recover(); p != nil {
			c.err = fmt.Errorf("fetch panicked: %v", p)
		}
		f.mu.Lock()
		if f.calls[key] == c {
			delete(f.calls, key)
		}
		f.mu.Unlock()
		c.cancel()
		close(c.done)
	}()
	c.value, c.err = fetch(ctx)
}

// leave gives up one place. When no one waits any longer the fetch is cancelled, and the key is
// free at once, so that a later caller begins a fetch of its own instead of joining a dying one.
func (f *Group[K, V]) leave(key K, c *call[V]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.waiters--; c.waiters == 0 {
		c.cancel()
		if f.calls[key] == c {
			delete(f.calls, key)
		}
	}
}
