// Package lockfile reads which files a build needs out of the lock files of package managers, which
// their ecosystems know. It makes no requests.
package lockfile

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Need is one file that a build needs, or, while File is empty, all files of one version.
type Need struct {
	Ecosystem, Package, Version, File string
}

// Format is one kind of lock file.
type Format struct {
	// Name is what such a file is usually called, as people are told.
	Name string
	// Files are patterns of path.Match for the names of such files.
	Files []string
	// Read reads one. Skipped are the entries that name no package of a registry.
	Read func(data []byte) (needs []Need, skipped int, err error)
}

// Bounds of a lock file.
const (
	MaxBytes = 64 << 20
	maxNeeds = 200_000
)

// ErrUnknown is wrapped by the error for a file that is none of the lock files that are read.
var ErrUnknown = errors.New("unknown lock file format")

// Names lists what formats are called.
func Names(formats []Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// Read reads a lock file by the base of its name. Skipped are the entries that name no package of a
// registry: paths, git, tarballs of other places.
func Read(formats []Format, name string, data []byte) (needs []Need, skipped int, err error) {
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	if len(data) > MaxBytes {
		return nil, 0, fmt.Errorf("%s has %d bytes; at most %d are read", base, len(data), MaxBytes)
	}
	i := slices.IndexFunc(formats, func(f Format) bool { return slices.ContainsFunc(f.Files, matches(base)) })
	if i < 0 {
		return nil, 0, fmt.Errorf("%w; supported are %s", ErrUnknown, Names(formats))
	}
	if needs, skipped, err = formats[i].Read(data); err != nil {
		return nil, 0, fmt.Errorf("%s: %v", path.Base(name), err)
	}
	if len(needs) > maxNeeds {
		return nil, 0, fmt.Errorf("%s lists more than %d packages", path.Base(name), maxNeeds)
	}
	slices.SortFunc(needs, func(a, b Need) int {
		return strings.Compare(a.Ecosystem+a.Package+"\x00"+a.Version+"\x00"+a.File, b.Ecosystem+b.Package+"\x00"+b.Version+"\x00"+b.File)
	})
	return slices.Compact(needs), skipped, nil
}

func matches(base string) func(pattern string) bool {
	return func(pattern string) bool {
		ok, err := path.Match(pattern, base)
		return ok && err == nil
	}
}
