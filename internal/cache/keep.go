package cache

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable/spool"
)

const (
	// patience is how long one call to the disk may take before a transfer goes on without it.
	patience = 5 * time.Second
	// restFor is how long a disk that was too slow is left alone.
	restFor = 30 * time.Second
	// roomStep is how much is removed at least, beyond what is needed, before a disk that is still
	// full is given up.
	roomStep = 1 << 20
	// diskPiece is how much is read or written at once at most.
	diskPiece = 1 << 20
)

// ErrSlow says that the disk took too long, or is left alone because it did. It says nothing of a
// file.
var ErrSlow = errors.New("the disk takes too long")

// within makes a call to the disk, but waits for it only so long. After ErrSlow the call goes on,
// and with it whatever it uses; late follows its end.
func within(call func() error, late func()) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	slow := time.NewTimer(patience)
	defer slow.Stop()
	select {
	case err := <-done:
		return err
	case <-slow.C:
		go func() {
			<-done //nolint:errcheck // the call is over, however it ended
			late()
		}()
		return ErrSlow
	}
}

// roomy writes a file. While the disk is full it makes room: the least recently used files go, as
// many as the file needs and not all there are.
type roomy struct {
	files *Files
	to    *spool.File
	size  int64 // of the file, as far as it is known
	n     int64 // written so far
	freed int64
	err   error // of the disk
}

// Write implements io.Writer.
func (r *roomy) Write(p []byte) (written int, err error) {
	for {
		n, err := r.to.Write(p[written:])
		written += n
		r.n += int64(n)
		if err == nil {
			return written, nil
		}
		if !spool.IsFull(err) || !r.makeRoom(err) {
			r.err = err
			return written, err
		}
	}
}

// makeRoom removes one file; false when that did not help often enough, or there is none.
func (r *roomy) makeRoom(why error) bool {
	if r.freed > max(r.size, r.n)+roomStep {
		return false
	}
	n, ok := r.files.known.Evict()
	if !ok {
		return false
	}
	r.freed += n
	r.files.opts.Report.Full(why)
	return true
}

// keeping is a file on its way to the disk. When anything fails, or takes too long, it is over.
type keeping struct {
	files *Files
	w     *roomy
	file  *os.File // what was written, for readers; it is theirs to close
}

// begin begins to keep a file; nil when the disk does not take it. A name of which a file is kept
// already, but cannot be read now, is not kept a second time.
func (f *Files) begin(name string, size int64) *keeping {
	if size > f.opts.MaxBytes || f.known.Has(name) {
		return nil
	}
	k, _ := f.create(size, true) // why not was reported
	return k
}

// resting reports whether a slow disk is left alone.
func (f *Files) resting() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Before(f.rests)
}

// create makes a file that is to be kept, and opens it a second time for readers if there are any.
func (f *Files) create(size int64, readers bool) (*keeping, error) {
	if f.resting() {
		return nil, ErrSlow
	}
	k := &keeping{files: f, w: &roomy{files: f, size: size}}
	discard := func() {
		if k.w.to != nil {
			k.w.to.Discard()
		}
		if k.file != nil {
			_ = k.file.Close()
		}
	}
	err := within(func() (err error) {
		if err = f.renew(); err != nil {
			return err
		}
		if k.w.to, err = f.folder.Create(); err != nil || !readers {
			return err
		}
		k.file, err = k.w.to.Reader()
		return err
	}, discard)
	if err != nil {
		if !errors.Is(err, ErrSlow) {
			discard()
		}
		f.giveUp(err)
		return nil, err
	}
	return k, nil
}

// discard gives a file up that the disk took so far.
func (k *keeping) discard() {
	err := within(func() error { k.w.to.Discard(); return nil }, func() {})
	if err != nil {
		k.files.giveUp(err)
	}
}

// write adds a piece. After an error the file is given up, and after ErrSlow the piece is still in
// use.
func (k *keeping) write(p []byte) error {
	err := within(func() error { _, err := k.w.Write(p); return err }, k.w.to.Discard)
	if err != nil {
		if !errors.Is(err, ErrSlow) {
			k.w.to.Discard()
		}
		k.files.giveUp(err)
	}
	return err
}

// pieces writes in pieces, each of which the disk has its time for.
type pieces struct {
	to  *keeping
	err error // of the disk
}

// Write implements io.Writer.
func (w *pieces) Write(p []byte) (written int, err error) {
	for piece := range slices.Chunk(p, diskPiece) {
		if w.err = w.to.write(piece); w.err != nil {
			return written, w.err
		}
		written += len(piece)
	}
	return written, nil
}

// commit keeps the file under its name.
func (k *keeping) commit(name string) error {
	err := within(func() error { return k.files.commit(name, k.w.to, k.w.n) }, func() {})
	if err != nil {
		k.files.giveUp(err)
		return err
	}
	k.files.opts.Report.Works()
	return nil
}

// giveUp reports that something is not kept or cannot be read, and leaves a slow disk alone for a
// while.
func (f *Files) giveUp(err error) {
	f.opts.Report.Failed(err)
	if errors.Is(err, ErrSlow) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.rests = time.Now().Add(restFor)
	}
}
