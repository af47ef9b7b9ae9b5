// Package quota bounds the bytes of memory that are at work at once. What wants some waits for its
// turn, for a while.
//
// A share grows while what it is for turns out to be larger, and whoever waits for that holds
// something already. So that such shares never wait for each other for ever, one of them at a time
// may go beyond the bound: it ends, and gives back what it had.
package quota

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrBusy says that there was no room in time.
var ErrBusy = errors.New("too much is being read at once")

// most is how many may wait.
const most = 4096

// Budget is the bound. It is safe for concurrent use; a nil one bounds nothing.
type Budget struct {
	size     int64
	patience time.Duration

	mu      sync.Mutex // guards all below, and the shares
	used    int64
	beyond  *Share     // the one that may go beyond the bound
	growing []*request // hold something, and go first
	fresh   []*request // hold nothing
}

// request is one who waits.
type request struct {
	share *Share
	n     int64
	ready chan struct{} // closed when it is granted
}

// New returns a budget of so many bytes, for which one waits at most so long.
func New(size int64, patience time.Duration) *Budget { return &Budget{size: size, patience: patience} }

// Used is how many bytes are at work.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Share is a part of a budget, for as long as somebody holds it. A nil one is of no budget.
type Share struct {
	budget  *Budget
	n       int64
	holders int
}

// Take waits for a share of n bytes, which its caller holds. It fails with ErrBusy, or with ctx.
func (b *Budget) Take(ctx context.Context, n int64) (*Share, error) {
	if b == nil {
		return nil, nil
	}
	s := &Share{budget: b, holders: 1}
	if err := b.wait(ctx, &b.fresh, s, n); err != nil {
		return nil, err
	}
	return s, nil
}

// Grow waits for n bytes more.
func (s *Share) Grow(ctx context.Context, n int64) error {
	if s == nil || n <= 0 {
		return nil
	}
	return s.budget.wait(ctx, &s.budget.growing, s, n)
}

// Shrink gives n bytes back.
func (s *Share) Shrink(n int64) {
	if s == nil {
		return
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, s.n)
	s.n, b.used = s.n-n, b.used-n
	b.serve()
}

// Hold adds a holder, unless all have gone already.
func (s *Share) Hold() bool {
	if s == nil {
		return false
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if s.holders == 0 {
		return false
	}
	s.holders++
	return true
}

// Release ends what one holder has of it; with the last one it is given back.
func (s *Share) Release() {
	if s == nil {
		return
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.holders--; s.holders > 0 {
		return
	}
	b.used, s.n = b.used-s.n, 0
	if b.beyond == s {
		b.beyond = nil
	}
	b.serve()
}

func (b *Budget) wait(ctx context.Context, queue *[]*request, s *Share, n int64) error {
	r := &request{s, n, make(chan struct{})}
	b.mu.Lock()
	if s == b.beyond { // which waits for nobody
		b.grant(r)
		b.mu.Unlock()
		return nil
	}
	if len(b.growing)+len(b.fresh) >= most {
		b.mu.Unlock()
		return ErrBusy
	}
	*queue = append(*queue, r)
	b.serve()
	b.mu.Unlock()
	select {
	case <-r.ready: // mostly at once
		return nil
	default:
	}
	t := time.NewTimer(b.patience)
	defer t.Stop()
	var err error
	select {
	case <-r.ready:
		return nil
	case <-t.C:
		err = ErrBusy
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-r.ready: // meanwhile
		return nil
	default:
	}
	*queue = slices.DeleteFunc(*queue, func(other *request) bool { return other == r })
	b.serve()
	return err
}

// serve grants what can be granted, in order. The caller holds the lock.
func (b *Budget) serve() {
	for _, queue := range []*[]*request{&b.growing, &b.fresh} {
		for len(*queue) > 0 && b.fits((*queue)[0], queue == &b.growing) {
			r := (*queue)[0]
			*queue = slices.Delete(*queue, 0, 1)
			b.grant(r)
		}
	}
}

func (b *Budget) grant(r *request) {
	b.used, r.share.n = b.used+r.n, r.share.n+r.n
	close(r.ready)
}

// fits decides whether a request can be granted now.
func (b *Budget) fits(r *request, growing bool) bool {
	if b.used+r.n <= b.size {
		return true
	}
	if b.beyond == nil && (growing || b.used == 0) { // larger than all there is, or stuck
		b.beyond = r.share
		return true
	}
	return false
}
