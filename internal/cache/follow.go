package cache

import (
	"context"
	"io"
	"os"
	"sync"

	"github.com/ecluse-gate/ecluse/internal/durable/spool"
)

const (
	// heldBack is how many bytes at the end of a growing file readers do not get before the whole
	// is known to be right.
	heldBack = 32 << 10
	// maxTail bounds what is in memory of a file that the disk does not take: its source waits for
	// the slowest reader.
	maxTail = 256 << 10
)

// growing is one file while it comes from its upstream, or from the disk while it is proved.
type growing struct {
	cancel context.CancelFunc
	opened chan struct{} // closed when size and openErr are set

	size    int64
	openErr error

	mu        sync.Mutex // guards all below
	changed   sync.Cond
	followers map[*follower]struct{}
	filling   bool // the fetch itself has not ended
	abandoned bool
	begun     bool     // opened is closed
	file      *os.File // what readers read that is on the disk; closed by the last user
	onDisk    int64    // how much that is
	tail      []byte   // what the disk did not take, from tailAt on
	tailAt    int64
	lost      bool // the beginning is gone: nobody can join any more
	written   int64
	right     bool            // checked: all that is written may be read
	proved    *spool.Identity // of a kept file: it must still be that when its last piece is read
	done      bool
	err       error
}

func newGrowing(cancel context.CancelFunc) *growing {
	g := &growing{cancel: cancel, filling: true, followers: map[*follower]struct{}{}, opened: make(chan struct{}), size: -1}
	g.changed.L = &g.mu
	return g
}

// follow adds a reader; nil when the file can no longer be read from its beginning.
func (g *growing) follow(ctx context.Context) *follower {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.abandoned || g.lost {
		return nil
	}
	r := &follower{g: g, ctx: ctx}
	g.followers[r] = struct{}{}
	return r
}

// open lets readers begin, or ends them with an error. It counts once.
func (g *growing) open(file *os.File, size int64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun {
		return
	}
	g.begun, g.file, g.size, g.openErr = true, file, size, err
	close(g.opened)
}

// onto notes that more can be read from the disk.
func (g *growing) onto(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.onDisk += n
	g.written = g.onDisk
	g.changed.Broadcast()
}

// pass hands on a piece that the disk does not take. It waits until the slowest reader leaves room
// for it.
func (g *growing) pass(ctx context.Context, p []byte) error {
	stop := context.AfterFunc(ctx, g.wake)
	defer stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tail == nil {
		g.tailAt = g.written
	}
	for len(g.tail)+len(p) > maxTail {
		if g.trim(); len(g.tail)+len(p) <= maxTail {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		g.changed.Wait()
	}
	g.tail = append(g.tail, p...)
	g.written += int64(len(p))
	g.changed.Broadcast()
	return nil
}

// trim drops what every reader has. The lock is held.
func (g *growing) trim() {
	least := g.written
	for r := range g.followers {
		least = min(least, r.offset)
	}
	if n := least - g.tailAt; n > 0 {
		g.tail = append(g.tail[:0], g.tail[n:]...)
		g.tailAt, g.lost = least, true
	}
}

func (g *growing) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed.Broadcast()
}

// release lets readers have the last piece: the whole is right. Of a kept file, it is as long as
// the file is the one that was proved.
func (g *growing) release(proved *spool.Identity) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.right, g.proved = true, proved
	g.changed.Broadcast()
}

func (g *growing) end(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done, g.err, g.filling = true, err, false
	g.changed.Broadcast()
	g.drop()
}

// drop closes the shared file after its last use. The lock is held.
func (g *growing) drop() {
	if !g.filling && len(g.followers) == 0 && g.file != nil {
		_ = g.file.Close()
		g.file = nil
	}
}

// follower reads a growing file.
type follower struct {
	g      *growing
	ctx    context.Context //nolint:containedctx // the reader's own request
	offset int64           // guarded by g.mu
}

// Read implements io.Reader.
func (r *follower) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	stop := context.AfterFunc(r.ctx, r.g.wake)
	defer stop()
	n, file, err := r.next(p)
	if file != nil {
		n, err = r.fromDisk(file, p[:n])
	}
	return n, err
}

// next waits until there is something to read, or the end. It reads what is in memory; for what is
// on disk it returns the file and how much may be read of it.
func (r *follower) next(p []byte) (int, *os.File, error) {
	g := r.g
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		readable := g.written - heldBack
		if g.right {
			readable = g.written
		}
		switch {
		case readable > r.offset && r.offset < g.onDisk:
			return int(min(int64(len(p)), readable-r.offset, g.onDisk-r.offset)), g.file, nil
		case readable > r.offset:
			from := g.tail[r.offset-g.tailAt : readable-g.tailAt]
			n := copy(p, from)
			r.offset += int64(n)
			g.changed.Broadcast() // there may be room now
			return n, nil, nil
		case g.right:
			return 0, nil, io.EOF
		case g.done:
			return 0, nil, g.err
		case r.ctx.Err() != nil:
			return 0, nil, context.Cause(r.ctx)
		}
		g.changed.Wait()
	}
}

// fromDisk reads what is known to be there. The end of the file before that is no end of what was
// to be read.
func (r *follower) fromDisk(file *os.File, p []byte) (int, error) {
	n, err := file.ReadAt(p, r.offset)
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	if proved := r.g.proved; n > 0 && proved != nil && r.offset+int64(n) > r.g.written-heldBack {
		if now, err := spool.IdentityOf(file); err != nil || now != *proved {
			return 0, ErrDamaged
		}
	}
	r.offset += int64(n)
	switch {
	case n > 0:
		return n, nil
	case err == nil || err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return 0, err
}

// Close gives up one reader's place; the last one cancels a fetch that is still under way.
func (r *follower) Close() error {
	g := r.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.followers[r]; !ok {
		return nil
	}
	delete(g.followers, r)
	if len(g.followers) == 0 && !g.right && !g.done {
		g.abandoned = true
		g.cancel()
	}
	g.changed.Broadcast()
	g.drop()
	return nil
}
