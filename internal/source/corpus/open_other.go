//go:build !unix

package corpus

import (
	"errors"
	"os"
	"path/filepath"
)

func checkRootName(dir string) error {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != filepath.FromSlash(dir) {
		return refuse(CodeRoot, "", "must be an absolute path without \".\" or \"..\"")
	}
	return nil
}

// openNoLink examines every component before it opens the last one. Without openat a component
// could be swapped in between; the comparison of size, time and digest afterwards notices other
// content.
func openNoLink(name string, _ bool) (*os.File, error) {
	name = filepath.FromSlash(name)
	for dir := name; ; {
		info, err := os.Lstat(dir)
		if err != nil {
			return nil, err
		}
		if info.Mode()&(os.ModeSymlink|os.ModeIrregular) != 0 {
			return nil, errors.New("the path contains a symbolic link or reparse point")
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return os.Open(name)
		}
		dir = parent
	}
}
