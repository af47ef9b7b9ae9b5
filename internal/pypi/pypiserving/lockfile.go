package pypiserving

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/ecluse-gate/ecluse/internal/mirror/lockfile"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
)

// What clients do with the addresses in their lock files.
const (
	asIsNote   = "asked directly, whatever index is configured"
	pagesNote  = "the index that is configured is asked; an address here is that of a source of its own, or of a package outside of any index"
	pipOptions = "pip asks these, whatever index is configured elsewhere"
)

// lockFiles are those of pip, uv, poetry and pdm.
func lockFiles() []lockfile.Format {
	return []lockfile.Format{
		{Name: "requirements.txt", Files: []string{"*.txt", "*.in", "*.pip"}, Read: readRequirements, Direct: pipOptions},
		{Name: "pylock.toml", Files: []string{"pylock.toml", "pylock.*.toml"}, Read: reading((*reader).pylock), Direct: asIsNote},
		{Name: "uv.lock", Files: []string{"uv.lock"}, Read: reading((*reader).uv), Direct: asIsNote},
		{Name: "poetry.lock", Files: []string{"poetry.lock"}, Read: reading((*reader).poetry), Direct: pagesNote},
		{Name: "pdm.lock", Files: []string{"pdm.lock", "pdm.*.lock"}, Read: reading((*reader).pdm), Direct: asIsNote},
	}
}

// reader collects what a lock file lists.
type reader struct{ lockfile.Lock }

// reading makes a reader's method a function of a file.
func reading(read func(*reader, []byte) error) func([]byte, lockfile.Opener) (lockfile.Lock, error) {
	return func(data []byte, _ lockfile.Opener) (lockfile.Lock, error) {
		var r reader
		err := read(&r, data)
		return r.Lock, err
	}
}

// decode reads TOML as a tool writes it.
func decode(data []byte, tool string, into any) error {
	err := toml.Unmarshal(data, into)
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := e.Position()
		return fmt.Errorf("not TOML as %s writes it: line %d: %v", tool, line, err)
	}
	if err != nil {
		return fmt.Errorf("not TOML as %s writes it: %v", tool, err)
	}
	return nil
}

// uv reads the addresses of the files of each [[package]] whose source is a registry.
func (r *reader) uv(data []byte) error {
	type file struct {
		URL string `toml:"url"`
	}
	var doc struct {
		Packages []struct {
			Name   string         `toml:"name"`
			Source map[string]any `toml:"source"`
			Sdist  file           `toml:"sdist"`
			Wheels []file         `toml:"wheels"`
		} `toml:"package"`
	}
	if err := decode(data, "uv", &doc); err != nil {
		return err
	}
	if len(doc.Packages) == 0 {
		return errors.New("it contains no [[package]]")
	}
	for _, p := range doc.Packages {
		has := func(kind string) bool { return p.Source[kind] != nil }
		files := slices.DeleteFunc(append(p.Wheels, p.Sdist), func(f file) bool { return f.URL == "" })
		if !has("registry") || len(files) == 0 { // a file that lies on a disk has no address
			if !has("virtual") && !has("editable") {
				r.Skipped++
			}
			continue
		}
		for _, f := range files {
			r.address(p.Name, f.URL)
		}
	}
	return nil
}

// address adds the file at an address.
func (r *reader) address(name, address string) {
	u, err := url.Parse(address)
	if err != nil {
		r.Skipped++
		return
	}
	r.At(name, address)
	r.file(name, path.Base(u.Path))
}

// file adds one file of a project.
func (r *reader) file(name, file string) {
	name = pypi.Normalize(name)
	if _, bad := naming.ParseName(name); bad != nil {
		r.Skipped++
		return
	}
	version, _, ok := pypi.VersionOfFile(name, file)
	if !ok {
		r.Skipped++
		return
	}
	r.Needs = append(r.Needs, lockfile.Need{Ecosystem: pypi.Ecosystem, Package: name, Version: version, File: file})
}
