package pypiserving

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/mirror/lockfile"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
)

// maxRequirements bounds the files that requirements include, directly or not.
const maxRequirements = 100

var requirement = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*===?\s*([A-Za-z0-9.!+_-]+)\s*(?:;.*|--hash.*)?$`)

// requirements reads a file of requirements and those that it includes.
type requirements struct {
	reader
	open lockfile.Opener
	seen map[string]bool
}

func readRequirements(data []byte, beside lockfile.Opener) (lockfile.Lock, error) {
	r := &requirements{open: beside, seen: map[string]bool{}}
	err := r.read(data, ".")
	return r.Lock, err
}

// read reads lines of "name==version", with or without hashes. Others do not say which files are
// needed. Constraints count like requirements: they pin what these bring along.
func (r *requirements) read(data []byte, dir string) error {
	text := strings.ReplaceAll(strings.ReplaceAll(string(data), "\r\n", "\n"), "\\\n", " ")
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, " #")
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '-':
			if err := r.option(line, dir); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		default:
			r.pinned(line)
		}
	}
	return nil
}

// option reads a line that is an option: a file to include, or an index.
func (r *requirements) option(line, dir string) error {
	name, value, ok := strings.Cut(line, " ")
	if !ok {
		name, value, _ = strings.Cut(line, "=")
	}
	if len(name) > 2 && !strings.HasPrefix(name, "--") { // -rbase.txt
		name, value = name[:2], name[2:]
	}
	value = strings.Trim(strings.TrimSpace(value), `"'`)
	switch name {
	case "-r", "--requirement", "-c", "--constraint":
		return r.include(path.Join(dir, strings.ReplaceAll(value, `\`, "/")), value)
	case "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-e", "--editable":
		if strings.Contains(value, "://") {
			r.At(name, value)
		}
	}
	return nil
}

func (r *requirements) include(name, as string) error {
	switch {
	case strings.Contains(as, "://"):
		r.At("-r", as)
		r.Skipped++
		return nil
	case r.seen[name]:
		return nil
	case len(r.seen) == maxRequirements:
		return errors.New("too many files are included")
	}
	r.seen[name] = true
	data, err := r.open(name)
	if err == nil {
		err = r.read(data, path.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", as, err)
	}
	return nil
}

// pinned adds a requirement that names one version.
func (r *requirements) pinned(line string) {
	if name, address, ok := strings.Cut(line, " @ "); ok { // PEP 508
		r.At(strings.TrimSpace(name), strings.TrimSpace(address))
		r.Skipped++
		return
	}
	m := requirement.FindStringSubmatch(line)
	if m == nil {
		r.Skipped++
		return
	}
	name, err := naming.ParseName(m[1])
	if err != nil {
		r.Skipped++
		return
	}
	version := m[2]
	if normal, ok := naming.NormalizeVersion(version); ok {
		version = normal
	}
	r.Needs = append(r.Needs, lockfile.Need{Ecosystem: pypi.Ecosystem, Package: name, Version: version})
}
