package cache

import (
	"context"
	"io"
	"os"
	"sync"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// heldBack is how many bytes at the end of a growing file readers do not get before the whole is
// known to be right.
const heldBack = 32 << 10

// growing is one file while it is fetched.
type growing struct {
	cancel context.CancelFunc
	opened chan struct{} // closed when spool, size and openErr are set
	spool  *durable.Spool
	file   *os.File // what all readers read from; closed by the last user
	size   int64

	openErr error

	mu        sync.Mutex // guards all below
	changed   sync.Cond
	readers   int
	users     int // readers, and the fetch itself
	abandoned bool
	written   int64
	right     bool // checked: all that is written may be read
	done      bool
	err       error
}

func (g *growing) open(spool *durable.Spool, size int64, err error) {
	g.spool, g.size, g.openErr = spool, size, err
	close(g.opened)
}

// Write implements io.Writer for the one goroutine that fetches.
func (g *growing) Write(p []byte) (int, error) {
	n, err := g.spool.Write(p)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written += int64(n)
	g.changed.Broadcast()
	return n, err
}

func (g *growing) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.right = true
	g.changed.Broadcast()
}

func (g *growing) end(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done, g.err = true, err
	g.changed.Broadcast()
	g.drop()
}

// leave gives up one reader's place; the last one cancels a fetch that is still under way.
func (g *growing) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.readers--; g.readers == 0 && !g.right && !g.done {
		g.abandoned = true
		g.cancel()
	}
	g.drop()
}

// drop gives up one use of the shared file. The lock is held.
func (g *growing) drop() {
	if g.users--; g.users == 0 && g.file != nil {
		_ = g.file.Close()
	}
}

// wait blocks until bytes past offset may be read, or the end. It returns how many there are, 0 at
// the regular end.
func (g *growing) wait(ctx context.Context, offset int64) (int64, error) {
	stop := context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.changed.Broadcast()
	})
	defer stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		readable := g.written - heldBack
		if g.right {
			readable = g.written
		}
		switch {
		case readable > offset:
			return readable - offset, nil
		case g.right:
			return 0, io.EOF
		case g.done:
			return 0, g.err
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		}
		g.changed.Wait()
	}
}

// follower reads a growing file.
type follower struct {
	g      *growing
	ctx    context.Context //nolint:containedctx // the reader's own request
	offset int64
	once   sync.Once
}

func (r *follower) Read(p []byte) (int, error) {
	n, err := r.g.wait(r.ctx, r.offset)
	if err != nil {
		return 0, err
	}
	got, err := r.g.file.ReadAt(p[:min(int64(len(p)), n)], r.offset)
	r.offset += int64(got)
	if got > 0 {
		err = nil
	}
	return got, err
}

func (r *follower) Close() error {
	r.once.Do(r.g.leave)
	return nil
}
