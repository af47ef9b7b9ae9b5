package cache

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// Files keeps verified files on disk by the digest of their content, within a bound, the least
// recently used going first. A file that is being fetched is fetched once for any number of
// readers, who follow it as it grows. It is safe for concurrent use.
type Files struct {
	folder *durable.Spools
	known  *Store[string, int64] // name to size; the bound lives here

	mu      sync.Mutex // guards all below
	growing map[string]*growing
	active  int       // fetches that have not ended, including those that can no longer be joined
	ended   sync.Cond // one of them has
	closed  bool
}

// OpenFiles opens the folder of the store and takes over what it holds. A bound of 0 keeps nothing.
func OpenFiles(path string, maxBytes int64) (*Files, error) {
	folder, kept, err := durable.OpenSpools(path)
	if err != nil {
		return nil, err
	}
	f := &Files{folder: folder, growing: map[string]*growing{}}
	f.ended.L = &f.mu
	f.known = NewStore[string, int64](maxBytes)
	// a file that stays is met again at the next start
	f.known.OnDrop(func(name string, _ int64) { _ = folder.Remove(name) })
	slices.SortFunc(kept, func(a, b durable.Kept) int { return cmp.Compare(a.Age, b.Age) })
	for _, k := range kept {
		f.known.Put(k.Name, k.Size, k.Size)
	}
	return f, nil
}

// ErrBusy is wrapped by the error of OpenFiles while another process has the folder.
var ErrBusy = durable.ErrSpoolsBusy

// Close ends what is being fetched, but for files that are whole: they are kept. Then it gives the
// folder to other processes. Readers keep what they have; nothing more may be fetched.
func (f *Files) Close() error {
	f.mu.Lock()
	f.closed = true
	for _, g := range f.growing {
		g.cancel()
	}
	for f.active > 0 {
		f.ended.Wait()
	}
	f.mu.Unlock()
	return f.folder.Close()
}

// Size returns the number of files kept and their bytes.
func (f *Files) Size() (n int, bytes int64) { return f.known.Size() }

// Open opens a kept file. A file that has gone or changed its size behind our back is forgotten,
// and the error is an [fs.ErrNotExist], as for one that was never kept. Any other error says
// nothing about the file: the process may have no descriptor left.
func (f *Files) Open(name string) (*os.File, int64, error) {
	size, ok := f.known.Get(name)
	if !ok {
		return nil, 0, fs.ErrNotExist
	}
	file, err := f.folder.Open(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	if err == nil {
		info, err := file.Stat()
		if err == nil && info.Size() == size {
			return file, size, nil
		}
		_ = file.Close()
	}
	f.known.Delete(name)
	return nil, 0, fs.ErrNotExist
}

// Body is a file on its way: what a fetch found, before its first byte.
type Body struct {
	io.ReadCloser
	// Size is the length when it is known, else -1.
	Size int64
	// Check judges the whole content after its end; an error keeps nothing, and no reader gets the
	// last piece.
	Check func() error
}

// Fetch returns a reader of the named file: of the kept one, of one that is being fetched, or of
// one that open begins to fetch. Open runs at most once at a time for a name; its context is
// cancelled when the last reader has gone (R69). An error of open goes to everyone who waited for
// it. The size is -1 when it is not known.
func (f *Files) Fetch(ctx context.Context, name string, open func(context.Context) (*Body, error)) (io.ReadCloser, int64, error) {
	var g *growing
	for g == nil {
		file, size, err := f.Open(name)
		if err == nil {
			return file, size, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, 0, err
		}
		g = f.join(ctx, name, open)
	}
	select {
	case <-g.opened:
	case <-ctx.Done():
		g.leave()
		return nil, 0, context.Cause(ctx)
	}
	if g.openErr != nil {
		g.leave()
		return nil, 0, g.openErr
	}
	return &follower{g: g, ctx: ctx}, g.size, nil
}

// join takes a place at a fetch that is under way or begins one; nil when one has ended well since
// the caller looked for the kept file.
func (f *Files) join(ctx context.Context, name string, open func(context.Context) (*Body, error)) *growing {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g, ok := f.growing[name]; ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.abandoned {
			g.readers++
			g.users++
			return g
		}
	}
	if f.known.Has(name) {
		return nil
	}
	gctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := &growing{cancel: cancel, readers: 1, users: 2, opened: make(chan struct{}), size: -1}
	g.changed.L = &g.mu
	f.growing[name] = g
	f.active++
	if f.closed {
		cancel()
	}
	go f.grow(gctx, name, g, open)
	return g
}

// grow fetches one file to its end and keeps it when it is right.
func (f *Files) grow(ctx context.Context, name string, g *growing, open func(context.Context) (*Body, error)) {
	defer g.cancel()
	err := f.fill(ctx, name, g, open)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.growing[name] == g {
		delete(f.growing, name)
	}
	g.end(err)
	f.active--
	f.ended.Broadcast()
}

func (f *Files) fill(ctx context.Context, name string, g *growing, open func(context.Context) (*Body, error)) error {
	if err := ctx.Err(); err != nil { // the store is closed
		g.open(nil, 0, err)
		return err
	}
	body, err := open(ctx)
	if err != nil {
		g.open(nil, 0, err)
		return err
	}
	defer body.Close()
	spool, err := f.folder.Create()
	if err != nil {
		g.open(nil, 0, err)
		return err
	}
	if g.file, err = spool.Reader(); err != nil {
		spool.Discard()
		g.open(nil, 0, err)
		return err
	}
	g.open(spool, body.Size, nil)
	n, err := io.Copy(g, body)
	if err == nil && body.Check != nil {
		err = body.Check()
	}
	if err != nil {
		spool.Discard()
		return err
	}
	g.release() // right to the last byte: readers may have it before the disk does
	if err := spool.Commit(name); err != nil {
		return nil //nolint:nilerr // readers have the file; only the store goes without
	}
	f.known.Put(name, n, n)
	return nil
}

// Put keeps what write writes under a name, in place of an older file.
func (f *Files) Put(name string, write func(io.Writer) error) error {
	spool, err := f.folder.Create()
	if err != nil {
		return err
	}
	counted := &counter{w: spool}
	if err := write(counted); err != nil {
		spool.Discard()
		return err
	}
	f.known.Delete(name)
	if err := spool.Commit(name); err != nil {
		return err
	}
	f.known.Put(name, counted.n, counted.n)
	return nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Has reports whether a file is kept, without using it.
func (f *Files) Has(name string) bool { return f.known.Has(name) }

// Drop removes a kept file.
func (f *Files) Drop(name string) { f.known.Delete(name) }

// Touch sets the time of a kept file's last change, for owners that keep a time there.
func (f *Files) Touch(name string, at time.Time) {
	if f.known.Has(name) {
		_ = f.folder.Touch(name, at) // a time that is too old is met with one question more
	}
}
