package durable

import (
	"fmt"
	"os"
)

// Create writes a whole file, private to its owner (0600), under a path that must be free: an error
// is fs.ErrExist when something is there, also a symbolic link, and that is left alone. A reader
// sees the whole content or, for a moment, an empty file. On an error nothing of it is left.
func Create(path string, data []byte) error {
	place, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	_ = place.Close() // nothing was written to it
	if err := Replace(path, data); err != nil {
		_ = os.Remove(path)
		return err
	}
	return nil
}
