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
	// Read reads one.
	Read func(data []byte, beside Opener) (Lock, error)
	// Direct says what a client does with the addresses in such a file, for people.
	Direct string
	// Replaces reports a host that the client replaces by the registry that is configured; nil is
	// none.
	Replaces func(host string) bool
}

// Opener reads another file, which a lock file names by its path from there.
type Opener func(name string) ([]byte, error)

// Lock is what a lock file says.
type Lock struct {
	Needs []Need
	// Skipped are the entries that name no package of a registry: paths, git, tarballs of other
	// places.
	Skipped int
	// Addresses are those that a client may ask directly, past whatever registry it is configured
	// with.
	Addresses []Address
}

// Address is where a lock file says that a package is.
type Address struct{ Package, URL string }

// Add appends what another file says.
func (l *Lock) Add(o Lock) {
	l.Needs, l.Skipped, l.Addresses = append(l.Needs, o.Needs...), l.Skipped+o.Skipped, append(l.Addresses, o.Addresses...)
}

// At notes where a package is; no address is nowhere.
func (l *Lock) At(name, address string) {
	if address != "" {
		l.Addresses = append(l.Addresses, Address{name, address})
	}
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

// Find is the format of a file, by the base of its name.
func Find(formats []Format, name string) (Format, error) {
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	i := slices.IndexFunc(formats, func(f Format) bool { return slices.ContainsFunc(f.Files, matches(base)) })
	if i < 0 {
		return Format{}, fmt.Errorf("%s: %w; supported are %s", base, ErrUnknown, Names(formats))
	}
	return formats[i], nil
}

// Read reads a lock file by the base of its name. The files that it names are read by beside; nil
// refuses them.
func Read(formats []Format, name string, data []byte, beside Opener) (Lock, error) {
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	if len(data) > MaxBytes {
		return Lock{}, fmt.Errorf("%s has %d bytes; at most %d are read", base, len(data), MaxBytes)
	}
	format, err := Find(formats, name)
	if err != nil {
		return Lock{}, err
	}
	if beside == nil {
		beside = func(name string) ([]byte, error) { return nil, fmt.Errorf("%s is not read here", name) }
	}
	l, err := format.Read(data, beside)
	if err != nil {
		return Lock{}, fmt.Errorf("%s: %w", base, err)
	}
	if len(l.Needs) > maxNeeds || len(l.Addresses) > 2*maxNeeds {
		return Lock{}, fmt.Errorf("%s lists more than %d packages", base, maxNeeds)
	}
	slices.SortFunc(l.Needs, func(a, b Need) int {
		return strings.Compare(a.Ecosystem+a.Package+"\x00"+a.Version+"\x00"+a.File, b.Ecosystem+b.Package+"\x00"+b.Version+"\x00"+b.File)
	})
	l.Needs = slices.Compact(l.Needs)
	return l, nil
}

func matches(base string) func(pattern string) bool {
	return func(pattern string) bool {
		ok, err := path.Match(pattern, base)
		return ok && err == nil
	}
}
