package cache

import (
	"context"
	"fmt"
	"io"
)

// Body is a file on its way: what a fetch found, before its first byte.
type Body struct {
	io.ReadCloser
	// Size is the length when it is known, else -1.
	Size int64
	// Check judges the whole content after its end; an error keeps nothing, and no reader gets the
	// last piece.
	Check func() error
}

// Fetch returns a reader of the named file: a *File, which was kept and is proved, or one that
// follows a file while it is fetched, or while a large kept one is proved. Open begins to fetch. It
// runs at most once at a time for a name; its context is cancelled when the last reader has gone
// (R69). An error of open goes to everyone who waited for it. The size is -1 when it is not known.
//
// A kept file that is damaged is fetched anew. Only when some of it was sent before that showed
// does the reader get ErrDamaged.
func (f *Files) Fetch(ctx context.Context, name string, open func(context.Context) (*Body, error)) (io.ReadCloser, int64, error) {
	if file, ok := f.ready(name); ok {
		return file, file.kept.size, nil
	}
	if f.small(name) && f.prove(ctx, name) == nil {
		if file, ok := f.ready(name); ok {
			return file, file.kept.size, nil
		}
	}
	r := f.join(ctx, name, open)
	select {
	case <-r.g.opened:
	case <-ctx.Done():
		_ = r.Close()
		return nil, 0, context.Cause(ctx)
	}
	if r.g.openErr != nil {
		_ = r.Close()
		return nil, 0, r.g.openErr
	}
	return r, r.g.size, nil
}

// join takes a place at a file that is on its way, or begins that.
func (f *Files) join(ctx context.Context, name string, open func(context.Context) (*Body, error)) *follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g, ok := f.growing[name]; ok {
		if r := g.follow(ctx); r != nil {
			return r
		}
	}
	gctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := newGrowing(cancel)
	r := g.follow(ctx)
	f.growing[name], f.active[g] = g, struct{}{}
	if f.closed {
		cancel()
	}
	go f.grow(gctx, name, g, open)
	return r
}

// grow brings one file to its end and keeps it when it is right.
func (f *Files) grow(ctx context.Context, name string, g *growing, open func(context.Context) (*Body, error)) {
	defer g.cancel()
	err := f.fill(ctx, name, g, open)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.growing[name] == g {
		delete(f.growing, name)
	}
	if err != nil {
		g.open(nil, 0, err)
	}
	g.end(err)
	delete(f.active, g)
	f.ended.Broadcast()
}

// fill takes a file from the disk as far as that goes, and the rest from its upstream.
func (f *Files) fill(ctx context.Context, name string, g *growing, open func(context.Context) (*Body, error)) error {
	p, ended, err := f.passKept(ctx, name, g)
	if ended || err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // the store is closed
		return err
	}
	body, err := open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	t := transfer{files: f, g: g, body: body, proof: p}
	if p == nil {
		if t.keep = f.begin(name, body.Size); t.keep != nil {
			g.open(t.keep.file, body.Size, nil)
		} else {
			g.open(nil, body.Size, nil)
		}
	}
	if err := t.run(ctx); err != nil {
		t.discard()
		return err
	}
	g.release(nil) // right to the last byte: readers may have it before the disk does
	if t.keep != nil {
		_ = t.keep.commit(name) // it was reported, and the readers have the file
	}
	return nil
}

// transfer is a body on its way to the readers.
type transfer struct {
	files *Files
	g     *growing
	body  *Body
	keep  *keeping // nil: the disk does not take it
	proof *proof   // of a file whose beginning came from the disk; nil for none
}

const transferPiece = 64 << 10

func (t *transfer) run(ctx context.Context) error {
	if t.proof != nil {
		if _, err := io.CopyN(io.Discard, t.body, t.proof.n); err != nil {
			return fmt.Errorf("%w, and what the upstream has is shorter", ErrDamaged)
		}
	}
	buf := make([]byte, transferPiece)
	for {
		n, err := t.body.Read(buf)
		if n > 0 {
			still, derr := t.deliver(ctx, buf[:n])
			if derr != nil {
				return derr
			}
			if !still {
				buf = make([]byte, transferPiece)
			}
		}
		if err == io.EOF { //nolint:errorlint // a wrapped one is a cut body
			break
		}
		if err != nil {
			return err
		}
	}
	if t.body.Check != nil {
		if err := t.body.Check(); err != nil {
			return err
		}
	}
	if t.proof != nil {
		if err := t.proof.judge(); err != nil {
			t.files.damaged(t.proof.name, t.proof.kept, err)
			return err
		}
	}
	return nil
}

// deliver hands on one piece, by the disk if it takes it. It reports whether the piece's memory is
// free again: a disk that is too slow goes on to read it.
func (t *transfer) deliver(ctx context.Context, p []byte) (still bool, err error) {
	still = true
	if t.proof != nil {
		_, _ = t.proof.hash.Write(p) // a hash does not fail
	}
	if t.keep != nil {
		err := t.keep.write(p)
		if err == nil {
			t.g.onto(int64(len(p)))
			return true, nil
		}
		t.keep, still = nil, err != ErrSlow //nolint:errorlint // it is never wrapped
	}
	return still, t.g.pass(ctx, p)
}

func (t *transfer) discard() {
	if t.keep != nil {
		t.keep.discard()
	}
}
