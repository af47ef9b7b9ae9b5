package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// partSuffix marks files that are not whole yet.
const partSuffix = ".part"

// Rename gives a file another name.
func Rename(from, to string) error { return os.Rename(from, to) }

// SyncFolder makes what was done to the names in a folder survive a crash.
func SyncFolder(path string) error {
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
	f, err := os.CreateTemp(folder, ".*"+partSuffix)
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
	return SyncFolder(folder)
}

// cause is what the system said, without the name of a temporary file.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}
