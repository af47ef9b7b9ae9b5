// Package spool keeps large files that can be fetched again in a folder.
package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// Folder is a folder of large files that can be fetched again: each is written under a temporary
// name, committed whole, and removed to make room. It is for caches; irreplaceable records belong
// in a durable.Dir. It is safe for concurrent use.
type Folder struct {
	path string
	opt  durable.Options

	mu   sync.Mutex // guards lock
	lock *os.File   // open on the folder; nil while the folder is not held
}

// partSuffix marks files that are not committed. What a crash leaves of them is removed by the
// next Renew.
const partSuffix = ".part"

// Kept is one committed file of a Folder.
type Kept struct {
	Name string
	Size int64
	// Age orders files by the time of their commit.
	Age int64
}

// New returns a folder that is not held yet; see [Folder.Renew].
func New(path string, opt durable.Options) *Folder { return &Folder{path: path, opt: opt} }

// Open opens a folder for this process alone, making it (0700) when it is absent, removes
// what a crash left, and lists what is committed. While another process has it the error wraps
// durable.ErrBusy.
func Open(path string, opt durable.Options) (*Folder, []Kept, error) {
	s := New(path, opt)
	kept, _, err := s.Renew()
	if err != nil {
		return nil, nil, err
	}
	return s, kept, nil
}

// Temporary opens a folder among the system's temporary ones; done removes it with all that is in
// it.
func Temporary(prefix string) (s *Folder, done func(), err error) {
	path, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, nil, fmt.Errorf("a temporary folder: %w", err)
	}
	remove := func() { _ = os.RemoveAll(path) } // the system cleans up as well
	if s, _, err = Open(path, durable.Options{}); err != nil {
		remove()
		return nil, nil, err
	}
	return s, func() { _ = s.Close(); remove() }, nil
}

// Path is where the folder lies.
func (s *Folder) Path() string { return s.path }

// Renew follows the path to where it leads now. A folder that is absent is made, and one that was
// not held or has taken the place of another is taken for this process, as Open does; changed
// is then true, and kept is what is committed there. Nothing happens while the folder is the one
// that is held.
func (s *Folder) Renew() (kept []Kept, changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock != nil && s.held() {
		return nil, false, nil
	}
	err = s.opt.Take(durable.StepMkdir, s.path, func() error { return os.MkdirAll(s.path, 0o700) })
	if err != nil {
		return nil, false, fmt.Errorf("open %s: %w", s.path, err)
	}
	lock, err := durable.LockFolder(s.path)
	if err != nil {
		return nil, false, err
	}
	if kept, err = s.settle(); err != nil {
		_ = durable.Unlock(lock)
		return nil, false, fmt.Errorf("open %s: %w", s.path, err)
	}
	if s.lock != nil {
		_ = durable.Unlock(s.lock)
	}
	s.lock = lock
	return kept, true, nil
}

// held reports whether the path still leads to the folder that is held.
func (s *Folder) held() bool {
	there, err := os.Stat(s.path)
	if err != nil {
		return false
	}
	here, err := s.lock.Stat()
	return err == nil && os.SameFile(there, here)
}

// settle removes what a crash left and lists the rest.
func (s *Folder) settle() ([]Kept, error) {
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return nil, err
	}
	var kept []Kept
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case strings.HasSuffix(e.Name(), partSuffix):
			// it is worth nothing; a failure is met again at the next start
			_ = os.Remove(filepath.Join(s.path, e.Name()))
		default:
			kept = append(kept, Kept{Name: e.Name(), Size: info.Size(), Age: info.ModTime().UnixNano()})
		}
	}
	return kept, nil
}

// Close gives the folder to other processes. Files that are open stay so.
func (s *Folder) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	return durable.Unlock(s.lock)
}

// Open opens a committed file for reading.
func (s *Folder) Open(name string) (file *os.File, err error) {
	err = s.opt.Take(durable.StepOpen, name, func() error {
		file, err = durable.OpenPlain(filepath.Join(s.path, name))
		return err
	})
	return file, err
}

// ReaderAt reads a file that Open opened.
func (s *Folder) ReaderAt(file *os.File, name string) io.ReaderAt {
	return spoolReader{file, s.opt, name}
}

type spoolReader struct {
	file *os.File
	opt  durable.Options
	name string
}

// ReadAt implements io.ReaderAt.
func (r spoolReader) ReadAt(p []byte, offset int64) (n int, err error) {
	err = r.opt.Take(durable.StepRead, r.name, func() error {
		n, err = r.file.ReadAt(p, offset)
		return err
	})
	return n, err
}

// Remove removes a committed file; one that is absent is no error. Open readers keep theirs.
func (s *Folder) Remove(name string) error {
	err := s.opt.Take(durable.StepRemove, name, func() error { return os.Remove(filepath.Join(s.path, name)) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Touch sets the time of a committed file's last change.
func (s *Folder) Touch(name string, at time.Time) error {
	return s.opt.Take(durable.StepTouch, name, func() error { return os.Chtimes(filepath.Join(s.path, name), at, at) })
}

// File is one file that is being written. One goroutine writes; readers made with Reader may
// follow it.
type File struct {
	folder *Folder
	file   *os.File
}

// Create begins a file. End it with Commit or Discard.
func (s *Folder) Create() (*File, error) {
	var f *os.File
	err := s.opt.Take(durable.StepCreate, "", func() (err error) {
		f, err = os.CreateTemp(s.path, "*"+partSuffix)
		return err
	})
	if err != nil {
		if f != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
		return nil, err
	}
	return &File{s, f}, nil
}

// Write implements io.Writer.
func (s *File) Write(p []byte) (n int, err error) {
	err = s.folder.opt.Take(durable.StepWrite, "", func() error {
		n, err = s.file.Write(p)
		return err
	})
	return n, err
}

// Path is where the file is until its end, for writers that need a name, such as a database driver.
func (s *File) Path() string { return s.file.Name() }

// Reader opens what is being written a second time.
func (s *File) Reader() (f *os.File, err error) {
	err = s.folder.opt.Take(durable.StepOpen, "", func() error {
		f, err = os.Open(s.file.Name())
		return err
	})
	return f, err
}

// Commit makes the file survive a crash, whole, under a name: write, sync, rename, sync the folder.
// A file of that name is replaced. After an error there may be a file of that name, old or new.
func (s *File) Commit(name string) (Identity, error) {
	if filepath.Base(name) != name || !fs.ValidPath(name) || strings.HasSuffix(name, partSuffix) {
		s.Discard()
		return Identity{}, fmt.Errorf("commit %q: not a valid name", name)
	}
	var written, kept Identity
	path := filepath.Join(s.folder.path, name)
	for _, step := range []struct {
		step durable.Step
		call func() error
	}{
		{durable.StepSync, s.file.Sync},
		{durable.StepClose, func() (err error) {
			if written, err = IdentityOf(s.file); err == nil {
				err = s.file.Close()
			}
			return err
		}},
		{durable.StepRename, func() error { return os.Rename(s.file.Name(), path) }},
		{durable.StepSyncDir, func() error { return durable.SyncFolder(s.folder.path) }},
		{durable.StepCheckLink, func() (err error) { kept, err = identityAt(path); return err }},
	} {
		if err := s.folder.opt.Take(step.step, name, step.call); err != nil {
			s.Discard()
			return Identity{}, err
		}
	}
	if !kept.sameFile(written) {
		return Identity{}, fmt.Errorf("commit %q: another file has taken its place", name)
	}
	return kept, nil
}

// Discard ends a file without keeping it.
func (s *File) Discard() {
	_ = s.file.Close()
	_ = os.Remove(s.file.Name()) // else the next Renew does it
}
