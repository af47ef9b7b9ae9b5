package pypiserving

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/ecluse-gate/ecluse/internal/mirror/lockfile"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
)

// lockFiles are those of pip and uv.
func lockFiles() []lockfile.Format {
	return []lockfile.Format{
		{Name: "requirements.txt", Files: []string{"requirements*.txt"}, Read: reading((*reader).requirements)},
		{Name: "uv.lock", Files: []string{"uv.lock"}, Read: reading((*reader).uv)},
	}
}

// reader collects what a lock file lists.
type reader struct {
	needs   []lockfile.Need
	skipped int
}

// reading makes a reader's method a function of a file.
func reading(read func(*reader, []byte) error) func([]byte) ([]lockfile.Need, int, error) {
	return func(data []byte) ([]lockfile.Need, int, error) {
		var r reader
		err := read(&r, data)
		return r.needs, r.skipped, err
	}
}

var requirement = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*===?\s*([A-Za-z0-9.!+_-]+)\s*(?:;.*|--hash.*)?$`)

// requirements reads lines of "name==version". Others do not say which files are needed.
func (r *reader) requirements(data []byte) error {
	text := strings.ReplaceAll(strings.ReplaceAll(string(data), "\r\n", "\n"), "\\\n", " ")
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, " #")
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "-") {
			continue
		}
		m := requirement.FindStringSubmatch(line)
		if m == nil {
			r.skipped++
			continue
		}
		name, err := naming.ParseName(m[1])
		if err != nil {
			r.skipped++
			continue
		}
		version := m[2]
		if normal, ok := naming.NormalizeVersion(version); ok {
			version = normal
		}
		r.needs = append(r.needs, lockfile.Need{Ecosystem: pypi.Ecosystem, Package: name, Version: version})
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
	if err := toml.Unmarshal(data, &doc); err != nil {
		if e, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := e.Position()
			return fmt.Errorf("not TOML as uv writes it: line %d: %v", line, err)
		}
		return fmt.Errorf("not TOML as uv writes it: %v", err)
	}
	if len(doc.Packages) == 0 {
		return errors.New("it contains no [[package]]")
	}
	for _, p := range doc.Packages {
		has := func(kind string) bool { return p.Source[kind] != nil }
		files := slices.DeleteFunc(append(p.Wheels, p.Sdist), func(f file) bool { return f.URL == "" })
		if !has("registry") || len(files) == 0 { // a file that lies on a disk has no address
			if !has("virtual") && !has("editable") {
				r.skipped++
			}
			continue
		}
		for _, f := range files {
			r.uvFile(pypi.Normalize(p.Name), f.URL)
		}
	}
	return nil
}

func (r *reader) uvFile(name, address string) {
	u, err := url.Parse(address)
	if _, bad := naming.ParseName(name); err != nil || bad != nil {
		r.skipped++
		return
	}
	file := path.Base(u.Path)
	version, _, ok := pypi.VersionOfFile(name, file)
	if !ok {
		r.skipped++
		return
	}
	r.needs = append(r.needs, lockfile.Need{Ecosystem: pypi.Ecosystem, Package: name, Version: version, File: file})
}
