package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Shared is one small file that several processes read and replace, each of them from what the one
// before it wrote. A reader, and a crash at any moment, sees an old content or a new one and
// nothing between. It is safe for concurrent use.
type Shared struct {
	path  string
	limit int64
	opt   Options
}

// NewShared returns the file of this path, which need not exist. Nobody reads or writes more than
// limit bytes of it.
func NewShared(path string, limit int64, opt Options) *Shared { return &Shared{path, limit, opt} }

// StepRename puts a complete file in the place of an older one.
const StepRename Step = "rename"

const (
	sharedWait = 2 * time.Second // for the folder's lock, which is held for a few milliseconds
	sharedPoll = 2 * time.Millisecond
)

// Path is where the file is.
func (s *Shared) Path() string { return s.path }

// Update replaces the file by what change makes of it, under the lock of its folder: no other
// process changes it in between. What change returns is on the disk when Update returns nil; after
// an error the old content stands, or the new one. The same content is not written again. While the
// folder does not exist the error wraps fs.ErrNotExist.
func (s *Shared) Update(change func(old *Edition) ([]byte, error)) error {
	folder, err := s.lock()
	if err != nil {
		return err
	}
	defer func() { _ = Unlock(folder) }() // the lock ends in any case
	old := s.Read()
	defer old.Close()
	data, err := change(old)
	switch {
	case err != nil:
		return err
	case old.Err == nil && bytes.Equal(data, old.Content):
		return nil
	case int64(len(data)) > s.limit:
		return fmt.Errorf("write %s: %d bytes are more than %d", s.path, len(data), s.limit)
	}
	return s.replace(folder, data)
}

// lock waits for the folder's lock, but not for ever: a process that was stopped may hold it.
func (s *Shared) lock() (*os.File, error) {
	for end := time.Now().Add(sharedWait); ; time.Sleep(sharedPoll) {
		folder, err := LockFolder(filepath.Dir(s.path))
		if !errors.Is(err, ErrBusy) || time.Now().After(end) {
			return folder, err
		}
	}
}

// replace writes under a second name, which is always the same, so that a process that dies leaves
// at most one file for the next to remove.
func (s *Shared) replace(folder *os.File, data []byte) error {
	temp, name := s.path+partSuffix, filepath.Base(s.path)
	var file *os.File
	for _, step := range []struct {
		step Step
		call func() error
	}{
		{StepCreate, func() (err error) {
			if err = os.Remove(temp); err != nil && !os.IsNotExist(err) {
				return err
			}
			file, err = os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			return err
		}},
		{StepWrite, func() error { _, err := file.Write(data); return err }},
		{StepSync, func() error { return file.Sync() }},
		{StepRename, func() error { return os.Rename(temp, s.path) }},
		{StepSyncDir, folder.Sync},
	} {
		if err := s.opt.Take(step.step, name, step.call); err != nil {
			if file != nil {
				_ = file.Close()
				_ = os.Remove(temp) // it is gone when the rename was taken
			}
			return fmt.Errorf("write %s: %s: %v", s.path, step.step, cause(err))
		}
	}
	return file.Close()
}

// Edition is one content of a Shared, and knows whether it still is the content. Close it.
type Edition struct {
	// Content is what the file held; nil when Err is set or the file is absent, which is no error.
	Content []byte
	// Err is why there is no content: the file cannot be opened or read, is no regular file, or is
	// too big.
	Err error

	path string
	// open, so that its inode cannot become another file's; nil when there is none to hold
	file *os.File
	info os.FileInfo // of the file, or of what stands in its place; nil when it is absent
}

// Read reads the file. An edition is returned in any case.
func (s *Shared) Read() *Edition {
	e := &Edition{path: s.path}
	e.info, e.Err = os.Lstat(s.path)
	switch {
	case os.IsNotExist(e.Err):
		e.info, e.Err = nil, nil
		return e
	case e.Err != nil:
		return e
	case !e.info.Mode().IsRegular():
		e.Err = errors.New("it is no regular file")
		return e
	}
	if e.file, e.Err = OpenPlain(s.path); e.Err != nil {
		e.file, e.Err = nil, cause(e.Err)
		return e
	}
	e.read(s.limit)
	return e
}

func (e *Edition) read(limit int64) {
	info, err := e.file.Stat()
	if err == nil && !os.SameFile(info, e.info) {
		err = errors.New("it was exchanged while it was opened")
	}
	var content []byte
	if err == nil {
		e.info = info
		content, err = io.ReadAll(io.LimitReader(e.file, limit+1))
	}
	switch {
	case err != nil:
		e.Err = cause(err)
	case int64(len(content)) > limit:
		e.Err = fmt.Errorf("it has more than %d bytes", limit)
	default:
		e.Content = content
	}
}

// Current reports whether the file has not been replaced, changed or removed since it was read. It
// is one system call, and cheap where a file is held. A nil Edition is never current.
func (e *Edition) Current() bool {
	switch {
	case e == nil:
		return false
	case e.file != nil:
		return unchanged(e.file, e.path, e.info)
	}
	return sameThere(e.path, e.info)
}

// sameThere reports whether what stands at the path is what stood there; nil is nothing.
func sameThere(path string, then os.FileInfo) bool {
	now, err := os.Lstat(path)
	if err != nil || then == nil {
		return then == nil && os.IsNotExist(err)
	}
	return os.SameFile(now, then) && now.ModTime().Equal(then.ModTime()) && now.Size() == then.Size()
}

// Close lets go of the file. Nobody may be in Current.
func (e *Edition) Close() {
	if e != nil && e.file != nil {
		_ = e.file.Close() // it was only read
	}
}
