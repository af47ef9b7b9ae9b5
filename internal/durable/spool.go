package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Spools is a folder of large files that can be fetched again: each is written under a temporary
// name, committed whole, and removed to make room. It is for caches; irreplaceable records belong
// in a Dir. It is safe for concurrent use.
type Spools struct {
	path string
	lock *os.File
}

// ErrSpoolsBusy says that another process has the folder.
var ErrSpoolsBusy = errors.New("another process is using this folder")

// spoolSuffix marks files that are not committed. What a crash leaves of them is removed by the
// next OpenSpools.
const spoolSuffix = ".part"

// Kept is one committed file of a Spools.
type Kept struct {
	Name string
	Size int64
	// Age orders files by the time of their commit.
	Age int64
}

// OpenSpools opens a folder for this process alone, making it (0700) when it is absent, removes
// what a crash left, and lists what is committed. While another process has it the error wraps
// ErrSpoolsBusy.
func OpenSpools(path string) (*Spools, []Kept, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, nil, fmt.Errorf("open %s: %v", path, err)
	}
	lock, err := lockSpools(path)
	if err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		_ = release(lock)
		return nil, nil, fmt.Errorf("open %s: %v", path, err)
	}
	var kept []Kept
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case strings.HasSuffix(e.Name(), spoolSuffix):
			// it is worth nothing; a failure is met again at the next start
			_ = os.Remove(filepath.Join(path, e.Name()))
		default:
			kept = append(kept, Kept{Name: e.Name(), Size: info.Size(), Age: info.ModTime().UnixNano()})
		}
	}
	return &Spools{path, lock}, kept, nil
}

// Close gives the folder to other processes. Files that are open stay so.
func (s *Spools) Close() error { return release(s.lock) }

// Open opens a committed file for reading.
func (s *Spools) Open(name string) (*os.File, error) { return os.Open(filepath.Join(s.path, name)) }

// Remove removes a committed file; one that is absent is no error. Open readers keep theirs.
func (s *Spools) Remove(name string) error {
	if err := os.Remove(filepath.Join(s.path, name)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// Touch sets the time of a committed file's last change.
func (s *Spools) Touch(name string, at time.Time) error {
	return os.Chtimes(filepath.Join(s.path, name), at, at)
}

// Spool is one file that is being written. One goroutine writes; readers made with Reader may
// follow it.
type Spool struct {
	folder *Spools
	file   *os.File
}

// Create begins a file. End it with Commit or Discard.
func (s *Spools) Create() (*Spool, error) {
	f, err := os.CreateTemp(s.path, "*"+spoolSuffix)
	if err != nil {
		return nil, err
	}
	return &Spool{s, f}, nil
}

// Write implements io.Writer.
func (s *Spool) Write(p []byte) (int, error) { return s.file.Write(p) }

// Path is where the file is until its end, for writers that need a name, such as a database driver.
func (s *Spool) Path() string { return s.file.Name() }

// Reader opens what is being written a second time.
func (s *Spool) Reader() (*os.File, error) { return os.Open(s.file.Name()) }

// Commit makes the file survive a crash, whole, under a name: write, sync, rename, sync the folder.
// A file of that name is replaced.
func (s *Spool) Commit(name string) error {
	if filepath.Base(name) != name || !fs.ValidPath(name) || strings.HasSuffix(name, spoolSuffix) {
		return fmt.Errorf("commit %q: not a valid name", name)
	}
	if err := s.file.Sync(); err != nil {
		s.Discard()
		return err
	}
	if err := s.file.Close(); err != nil {
		s.Discard()
		return err
	}
	if err := os.Rename(s.file.Name(), filepath.Join(s.folder.path, name)); err != nil {
		s.Discard()
		return err
	}
	return syncFolder(s.folder.path)
}

// Discard ends a file without keeping it.
func (s *Spool) Discard() {
	_ = s.file.Close()
	_ = os.Remove(s.file.Name()) // else the next OpenSpools does it
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Replace writes a whole file under a path, private to its owner (0600), in place of an older one:
// a reader, and a crash, sees the old content or the new one and nothing between. On an error
// nothing has changed.
func Replace(path string, data []byte) error {
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, ".*"+spoolSuffix)
	if err != nil {
		return fmt.Errorf("write %s: %v", path, cause(err))
	}
	_, err = f.Write(data)
	if serr := f.Sync(); err == nil {
		err = serr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %v", path, cause(err))
	}
	return syncFolder(folder)
}

// cause is what the system said, without the name of a temporary file.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}
