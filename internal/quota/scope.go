package quota

import (
	"context"
	"sync"
)

// Scope holds shares until its end: what a request needs until it is answered. The zero value is
// ready.
type Scope struct {
	mu     sync.Mutex // guards all below
	shares []*Share
	ended  bool
}

type scopeKey struct{}

// With puts a scope into a context.
func With(ctx context.Context, s *Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// Keep holds a share until the end of the context's scope, if there is one and it has not ended.
func Keep(ctx context.Context, share *Share) {
	s, ok := ctx.Value(scopeKey{}).(*Scope)
	if !ok || share == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended && share.Hold() {
		s.shares = append(s.shares, share)
	}
}

// End gives back what the scope of a context holds.
func End(ctx context.Context) {
	if s, ok := ctx.Value(scopeKey{}).(*Scope); ok {
		s.End()
	}
}

// End gives back what the scope holds.
func (s *Scope) End() {
	s.mu.Lock()
	shares := s.shares
	s.shares, s.ended = nil, true
	s.mu.Unlock()
	for _, share := range shares {
		share.Release()
	}
}
