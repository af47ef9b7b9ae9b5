package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/internal/flight"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/durable/spool"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// Files keeps verified files on disk by the digest of their content, within a bound, the least
// recently used going first. A file that is being fetched is fetched once for any number of
// readers, who follow it as it grows. It is safe for concurrent use.
//
// What the disk gives back is proved before it is believed, and a disk that fails, is full or slow
// costs the keeping alone: files pass through, and the store resumes by itself.
type Files struct {
	opts   FilesOptions
	folder *spool.Folder
	known  *Store[string, *kept]          // the bound lives here
	proofs flight.Group[string, struct{}] // of whole files, before anything is sent of them

	mu      sync.Mutex // guards all below
	growing map[string]*growing
	// those that have not ended, including those that can no longer be joined
	active map[*growing]struct{}
	ended  sync.Cond // one of them has
	closed bool
	rests  time.Time // a slow disk is left alone until then

	readFails atomic.Bool // and that was reported
	stopScrub func()
}

// FilesOptions make a Files.
type FilesOptions struct {
	// Path is the folder; it is made when it is absent. Nothing else may live in it.
	Path string
	// MaxBytes bounds the files; 0 keeps nothing.
	MaxBytes int64
	// Proof gives the hash that the content of a file must have, by its name; false for a name that
	// says nothing, whose file is never handed out by Fetch. Without Proof the owner proves what
	// Open gives.
	Proof func(name string) (h hash.Hash, want []byte, ok bool)
	// Report hears how the disk fares. It may be nil.
	Report *obs.Store
	// Around is for tests of failing disks.
	Around durable.Around
}

// kept is what is known of one file.
type kept struct {
	size int64
	// proved is the file's identity when this process last knew that its content is right; nil when
	// it never did.
	proved atomic.Pointer[spool.Identity]
}

// ErrDamaged says that a kept file is not what was kept. It is dropped, so that asking again gives
// a new one.
var ErrDamaged = errors.New("a kept file is damaged")

// OpenFiles opens the folder of the store and takes over what it holds, each file unproved. A
// folder that cannot be opened is tried again whenever something is to be kept.
func OpenFiles(o FilesOptions) *Files {
	f := &Files{
		opts: o, folder: spool.New(o.Path, durable.Options{Around: o.Around}), known: NewStore[string, *kept](o.MaxBytes),
		growing: map[string]*growing{}, active: map[*growing]struct{}{}, stopScrub: func() {},
	}
	f.ended.L = &f.mu
	f.known.OnDrop(func(name string, _ *kept) { f.remove(name) })
	if err := within(f.renew, func() {}); err != nil {
		f.giveUp(err)
	}
	if o.Proof != nil {
		f.startScrub()
	}
	return f
}

// renew follows the folder to where it is now, and takes over what is there.
func (f *Files) renew() error {
	there, changed, err := f.folder.Renew()
	if err != nil || !changed {
		return err
	}
	slices.SortFunc(there, func(a, b spool.Kept) int { return cmp.Compare(a.Age, b.Age) })
	for _, k := range there {
		if k.Size > f.opts.MaxBytes {
			_ = f.folder.Remove(k.Name) // it was kept under another bound
			continue
		}
		f.known.Swap(k.Name, &kept{size: k.Size}, k.Size, func(_ *kept, ok bool) bool { return !ok })
	}
	return nil
}

// Close ends what is being fetched, but for files that are whole: they are kept. Then it gives the
// folder to other processes. Readers keep what they have; nothing more may be fetched.
func (f *Files) Close() error {
	f.stopScrub()
	f.mu.Lock()
	f.closed = true
	for g := range f.active {
		g.cancel()
	}
	for len(f.active) > 0 {
		f.ended.Wait()
	}
	f.mu.Unlock()
	return f.folder.Close()
}

// Size returns the number of files kept and their bytes.
func (f *Files) Size() (n int, bytes int64) { return f.known.Size() }

// Open opens a kept file as it is, for owners that prove it themselves. A file that has gone or
// changed its size behind our back is forgotten, and the error is an [fs.ErrNotExist], as for one
// that was never kept. Any other error says nothing about the file: the process may have no
// descriptor left.
func (f *Files) Open(name string) (*os.File, int64, error) {
	k, ok := f.known.Get(name)
	if !ok {
		return nil, 0, fs.ErrNotExist
	}
	file, _, err := f.open(name, k)
	return file, k.size, err
}

// Reader reads a file that Open gave from its beginning.
func (f *Files) Reader(file *os.File, name string) io.Reader {
	return io.NewSectionReader(&patient{f, f.folder.ReaderAt(file, name)}, 0, math.MaxInt64)
}

// patient reads from the disk, but waits only so long. After ErrSlow the memory that was given to
// it is still in use.
type patient struct {
	files *Files
	from  io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (r *patient) ReadAt(p []byte, offset int64) (read int, err error) {
	for piece := range slices.Chunk(p, diskPiece) {
		var n int
		err := within(func() (err error) { n, err = r.from.ReadAt(piece, offset+int64(read)); return err }, func() {})
		if errors.Is(err, ErrSlow) {
			r.files.unreadable(err)
			return read, err // n is not ours
		}
		if read += n; err != nil {
			return read, err
		}
	}
	return read, nil
}

// unreadable reports that the disk cannot be read now, until something is read again.
func (f *Files) unreadable(err error) {
	f.readFails.Store(true)
	f.giveUp(err)
}

// open opens a kept file and says which one it is. Whatever shows that it is not the one that was
// kept drops it.
func (f *Files) open(name string, k *kept) (file *os.File, id spool.Identity, err error) {
	if f.resting() {
		return nil, id, ErrSlow
	}
	var opened *os.File
	var found spool.Identity
	err = within(func() (err error) {
		if opened, err = f.folder.Open(name); err == nil {
			found, err = spool.IdentityOf(opened)
		}
		return err
	}, func() {
		if opened != nil {
			_ = opened.Close() // it was not even read
		}
	})
	if errors.Is(err, ErrSlow) {
		f.unreadable(err)
		return nil, id, err
	}
	if err == nil && found.Size() != k.size {
		err = fmt.Errorf("%w: it has %d bytes instead of %d", ErrDamaged, found.Size(), k.size)
	}
	if err == nil {
		if f.readFails.Swap(false) {
			f.opts.Report.Works()
		}
		return opened, found, nil
	}
	if opened != nil {
		_ = opened.Close()
	}
	switch {
	case spool.IsExhausted(err):
		f.unreadable(err)
		return nil, id, err
	case errors.Is(err, fs.ErrNotExist):
		f.forget(name, k)
	default:
		f.damaged(name, k, err)
	}
	return nil, id, fs.ErrNotExist
}

// remove removes a file that is no longer known. One that stays is met again at the next start.
func (f *Files) remove(name string) {
	if f.resting() {
		return
	}
	if err := within(func() error { return f.folder.Remove(name) }, func() {}); errors.Is(err, ErrSlow) {
		f.giveUp(err)
	}
}

// forget drops a file, unless there is another one by now.
func (f *Files) forget(name string, k *kept) bool {
	return f.known.DeleteIf(name, func(now *kept) bool { return now == k })
}

// damaged drops a file that is not what was kept, and reports it, once.
func (f *Files) damaged(name string, k *kept, why error) {
	if f.forget(name, k) {
		f.opts.Report.Damaged(name, why)
	}
}

// File is a kept file whose content is proved. The kernel can copy it to a connection.
type File struct {
	*os.File
	files *Files
	name  string
	kept  *kept
}

// Close looks at the disk when the file was not read to its end: perhaps it could not be read, and
// whoever copies it does not say why it stopped.
func (f *File) Close() error {
	if at, err := f.Seek(0, io.SeekCurrent); err == nil && at < f.kept.size {
		piece := make([]byte, min(4<<10, f.kept.size-at))
		if _, err := f.files.folder.ReaderAt(f.File, f.name).ReadAt(piece, at); err != nil {
			f.files.damaged(f.name, f.kept, err)
		}
	}
	return f.File.Close()
}

// ready opens a kept file that is proved and has not changed since.
func (f *Files) ready(name string) (*File, bool) {
	k, ok := f.known.Get(name)
	if !ok {
		return nil, false
	}
	proved := k.proved.Load()
	if proved == nil {
		return nil, false
	}
	file, id, err := f.open(name, k)
	if err != nil {
		return nil, false
	}
	if id != *proved {
		_ = file.Close() // it is opened again to prove it
		return nil, false
	}
	return &File{file, f, name, k}, true
}

// Stat returns the size of a kept file, once its content is proved. Without such a file the error
// is an [fs.ErrNotExist].
func (f *Files) Stat(ctx context.Context, name string) (int64, error) {
	for range 2 {
		if file, ok := f.ready(name); ok {
			return file.kept.size, file.File.Close()
		}
		if err := f.prove(ctx, name); err != nil {
			return 0, err
		}
	}
	return 0, fs.ErrNotExist
}

// Put keeps what write writes under a name, in place of an older file. After ErrSlow what was
// written is still in use.
func (f *Files) Put(name string, write func(io.Writer) error) error {
	k, err := f.create(-1, false)
	if err != nil {
		return err
	}
	w := &pieces{to: k}
	if err := write(w); err != nil {
		if w.err == nil { // the writer's own error says nothing of the disk
			k.discard()
		}
		return err
	}
	return k.commit(name)
}

// commit gives a whole file its name. The name is free before: a file under it would be removed
// when it is forgotten.
func (f *Files) commit(name string, spool *spool.File, size int64) error {
	f.known.Delete(name)
	if size > f.opts.MaxBytes {
		spool.Discard()
		return nil
	}
	id, err := spool.Commit(name)
	if err != nil {
		_ = f.folder.Remove(name) // it may be there, and nobody knows of it
		return err
	}
	k := &kept{size: size}
	k.proved.Store(&id)
	f.known.Put(name, k, size)
	return nil
}

// Has reports whether a file is kept, without using it.
func (f *Files) Has(name string) bool { return f.known.Has(name) }

// Drop removes a kept file.
func (f *Files) Drop(name string) { f.known.Delete(name) }

// Touch sets the time of a kept file's last change, for owners that keep a time there.
func (f *Files) Touch(name string, at time.Time) {
	if !f.known.Has(name) || f.resting() {
		return
	}
	// a time that is too old is met with one question more
	if err := within(func() error { return f.folder.Touch(name, at) }, func() {}); errors.Is(err, ErrSlow) {
		f.giveUp(err)
	}
}
