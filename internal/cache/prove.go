package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable/spool"
)

// proveFirst is the size up to which a kept file is proved before the first byte of it is sent, so
// that a damaged one can be fetched anew in the same request. It takes a few milliseconds. A larger
// one is proved while it passes.
const proveFirst = 4 << 20

// proof is the reading of a kept file, against what its name says.
type proof struct {
	name   string
	kept   *kept
	file   *os.File
	before spool.Identity
	hash   hash.Hash
	want   []byte
	n      int64 // read so far
}

var errUnprovable = errors.New("its name does not say what it must be")

// beginProof opens a kept file to prove it; without one the error is an fs.ErrNotExist.
func (f *Files) beginProof(name string) (*proof, error) {
	k, ok := f.known.Peek(name)
	if !ok || f.opts.Proof == nil {
		return nil, fs.ErrNotExist
	}
	h, want, ok := f.opts.Proof(name)
	if !ok {
		return nil, errUnprovable
	}
	file, id, err := f.open(name, k)
	if err != nil {
		return nil, err
	}
	return &proof{name: name, kept: k, file: file, before: id, hash: h, want: want}, nil
}

// judge says whether what was read is what the name says.
func (p *proof) judge() error {
	if bytes.Equal(p.hash.Sum(nil), p.want) {
		return nil
	}
	return fmt.Errorf("%w: its digest differs from its name", ErrDamaged)
}

// read reads the file to its end, piece by piece.
func (p *proof) read(ctx context.Context, f *Files, each func(n int64) error) error {
	from, buf := &patient{f, f.folder.ReaderAt(p.file, p.name)}, make([]byte, transferPiece)
	for p.n < p.kept.size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := from.ReadAt(buf[:min(transferPiece, p.kept.size-p.n)], p.n)
		if n > 0 {
			_, _ = p.hash.Write(buf[:n]) // a hash does not fail
			p.n += int64(n)
			if err := each(int64(n)); err != nil {
				return err
			}
		} else if errors.Is(err, ErrSlow) {
			return err
		} else if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return nil
}

// settle ends a proof with what it came to: the file is proved if it did not change meanwhile, and
// dropped if it is not what was kept.
func (p *proof) settle(f *Files, err error) error {
	if errors.Is(err, ErrDamaged) {
		f.damaged(p.name, p.kept, err)
		return err
	}
	if err != nil {
		return err
	}
	after, err := spool.IdentityOf(p.file)
	if err != nil || after != p.before {
		return errors.New("it changed while it was proved")
	}
	p.kept.proved.Store(&after)
	return nil
}

// small reports whether a file is kept that is proved before it is sent.
func (f *Files) small(name string) bool {
	k, ok := f.known.Peek(name)
	return ok && k.size <= proveFirst
}

// prove reads a kept file, once for everybody who waits, and proves it or drops it.
func (f *Files) prove(ctx context.Context, name string) error {
	_, err := f.proofs.Do(ctx, name, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f.proveNow(ctx, name, func(int64) error { return nil })
	})
	return err
}

func (f *Files) proveNow(ctx context.Context, name string, each func(n int64) error) error {
	p, err := f.beginProof(name)
	if err != nil {
		return err
	}
	defer p.file.Close()
	if err = p.read(ctx, f, each); err == nil {
		err = p.judge()
	}
	return p.settle(f, err)
}

// passKept hands a kept file to its readers while it is proved. Ended tells that this was all. A
// file that cannot be read to its end goes on with what its upstream has: the proof is of both
// parts together. Without a file that can be read there is neither.
func (f *Files) passKept(ctx context.Context, name string, g *growing) (p *proof, ended bool, err error) {
	p, err = f.beginProof(name)
	if err != nil {
		return nil, false, nil //nolint:nilerr // it is fetched; what is wrong with the disk was reported
	}
	g.open(p.file, p.kept.size, nil) // g closes the file
	// since the reader looked
	if proved := p.kept.proved.Load(); proved != nil && *proved == p.before {
		g.onto(p.kept.size)
		g.release(proved)
		return nil, true, nil
	}
	err = p.read(ctx, f, func(n int64) error { g.onto(n); return nil })
	if err != nil {
		_ = p.settle(f, err)
		if errors.Is(err, ErrDamaged) || errors.Is(err, ErrSlow) {
			return p, false, nil
		}
		return nil, true, err
	}
	if err = p.settle(f, p.judge()); err == nil {
		g.release(&p.before)
	}
	return nil, true, err
}

// The background scrub proves what nobody has asked for since the start, and from time to time
// everything again, slowly enough not to be noticed.
const (
	scrubPiece = 1 << 20
	scrubPause = 60 * time.Millisecond // after each piece: at most 16 MB a second
	scrubEvery = 12 * time.Hour
)

func (f *Files) startScrub() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	f.stopScrub = func() { cancel(); <-done }
	go func() {
		defer close(done)
		for {
			f.scrub(ctx)
			if pause(ctx, scrubEvery) != nil {
				return
			}
		}
	}()
}

// scrub reads all files once, at its pace.
func (f *Files) scrub(ctx context.Context) {
	for name := range f.known.All() {
		read := int64(0)
		// a damaged file is reported and dropped; what cannot be read now is met again
		_ = f.proveNow(ctx, name, func(n int64) error {
			if read += n; read < scrubPiece {
				return nil
			}
			read = 0
			return pause(ctx, scrubPause)
		})
		if pause(ctx, scrubPause) != nil {
			return
		}
	}
}

// pause waits, or returns why it may not.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
