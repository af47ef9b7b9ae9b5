// Package lockfile reads which files a build needs out of the lock files of package managers. It
// makes no requests.
package lockfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
)

// Need is one file that a build needs, or, while File is empty, all files of one version.
type Need struct {
	Ecosystem, Package, Version, File string
}

// Bounds of a lock file.
const (
	MaxBytes = 64 << 20
	maxNeeds = 200_000
)

// ErrUnknown says that a file is none of the lock files that are read.
var ErrUnknown = errors.New("unknown lock file format; supported are package-lock.json, pnpm-lock.yaml, yarn.lock, requirements.txt, uv.lock")

// Read reads a lock file by the base of its name. Skipped are the entries that name no package of a
// registry: paths, git, tarballs of other places.
func Read(name string, data []byte) (needs []Need, skipped int, err error) {
	var r reader
	switch base := path.Base(strings.ReplaceAll(name, `\`, "/")); {
	case len(data) > MaxBytes:
		return nil, 0, fmt.Errorf("%s has %d bytes; at most %d are read", base, len(data), MaxBytes)
	case base == "package-lock.json" || base == "npm-shrinkwrap.json":
		err = r.packageLock(data)
	case base == "pnpm-lock.yaml":
		err = r.pnpm(data)
	case base == "yarn.lock":
		err = r.yarn(data)
	case base == "uv.lock":
		err = r.uv(data)
	case strings.HasPrefix(base, "requirements") && strings.HasSuffix(base, ".txt"):
		err = r.requirements(data)
	default:
		return nil, 0, ErrUnknown
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %v", path.Base(name), err)
	}
	if len(r.needs) > maxNeeds {
		return nil, 0, fmt.Errorf("%s lists more than %d packages", path.Base(name), maxNeeds)
	}
	slices.SortFunc(r.needs, func(a, b Need) int {
		return strings.Compare(a.Ecosystem+a.Package+"\x00"+a.Version+"\x00"+a.File, b.Ecosystem+b.Package+"\x00"+b.Version+"\x00"+b.File)
	})
	return slices.Compact(r.needs), r.skipped, nil
}

type reader struct {
	needs   []Need
	skipped int
}

// npm adds a version of an npm package, whose one file has the name of custom.
func (r *reader) npm(name, version string) {
	name, err := npm.ParseName(name)
	file := npm.FileName(name, version)
	if back, ok := npm.VersionOfFile(name, file); err != nil || !ok || back != version {
		r.skipped++
		return
	}
	r.needs = append(r.needs, Need{npm.Ecosystem, name, version, file})
}

// packageLock reads lockfileVersion 2 and 3, whose member "packages" has the paths of the tree as
// keys.
func (r *reader) packageLock(data []byte) error {
	var doc struct {
		Packages map[string]struct {
			Name, Version, Resolved string
			Link                    bool
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("not JSON as npm writes it: %v", err)
	}
	if doc.Packages == nil {
		return errors.New(`no member "packages"; npm 7 or later writes it`)
	}
	for at, p := range doc.Packages {
		i := strings.LastIndex(at, "node_modules/")
		if i < 0 || p.Link {
			continue // the project itself, and the packages of its workspaces
		}
		name := at[i+len("node_modules/"):]
		if p.Name != "" { // an alias
			name = p.Name
		}
		if p.Version == "" || fromElsewhere(p.Resolved) {
			r.skipped++
			continue
		}
		r.npm(name, p.Version)
	}
	return nil
}

// fromElsewhere reports an address that is not a registry's.
func fromElsewhere(resolved string) bool {
	return strings.HasPrefix(resolved, "git") || strings.HasPrefix(resolved, "file:") || strings.HasPrefix(resolved, "link:")
}

// pnpm reads the keys of "packages": "name@1.0.0", in older versions "/name@1.0.0" or
// "/name/1.0.0", with peers in parentheses. From version 11 on a document of its own may stand in
// front, with what pnpm itself needs.
func (r *reader) pnpm(data []byte) error {
	docs, err := documents(data)
	if err != nil {
		return fmt.Errorf("not YAML as pnpm writes it: %v", err)
	}
	for _, doc := range docs {
		packages, err := members(doc["packages"])
		if err != nil {
			return fmt.Errorf("not YAML as pnpm writes it: %v", err)
		}
		for key := range packages {
			r.pnpmPackage(key)
		}
	}
	return nil
}

func (r *reader) pnpmPackage(key string) {
	key, _, _ = strings.Cut(strings.TrimPrefix(key, "/"), "(")
	i := strings.LastIndexAny(key, "@/")
	if i <= 0 || strings.Contains(key, ":") {
		r.skipped++
		return
	}
	version, _, _ := strings.Cut(key[i+1:], "_")
	r.npm(key[:i], version)
}

// yarn reads both forms: of berry, which is YAML, and of version 1, which is a form of its own.
func (r *reader) yarn(data []byte) error {
	if bytes.Contains(data, []byte("\n__metadata:")) {
		return r.yarnBerry(data)
	}
	return r.yarnClassic(data)
}

// yarnBerry reads what each entry's "resolution" says: "name@npm:1.0.0".
func (r *reader) yarnBerry(data []byte) error {
	docs, err := documents(data)
	if err != nil {
		return fmt.Errorf("not YAML as yarn writes it: %v", err)
	}
	for _, doc := range docs {
		for _, entry := range doc {
			fields, err := members(entry)
			if err != nil {
				return fmt.Errorf("not YAML as yarn writes it: %v", err)
			}
			if resolution := fields["resolution"]; resolution != nil {
				r.yarnResolution(resolution.Value)
			}
		}
	}
	return nil
}

func (r *reader) yarnResolution(text string) {
	i := strings.LastIndex(text, "@npm:")
	switch {
	case i > 0:
		version, _, _ := strings.Cut(text[i+len("@npm:"):], "::")
		r.npm(text[:i], version)
	case text != "" && !strings.Contains(text, "@workspace:"):
		r.skipped++
	}
}

var yarnVersion = regexp.MustCompile(`^  version "([^"]+)"$`)

// yarnClassic reads lines: the name is that of an entry's first pattern.
func (r *reader) yarnClassic(data []byte) error {
	name := ""
	s := bufio.NewScanner(bytes.NewReader(data))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := strings.TrimRight(s.Text(), "\r")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, " "):
			name = yarnName(line)
		default:
			if m := yarnVersion.FindStringSubmatch(line); m != nil {
				r.npm(name, m[1])
			}
		}
	}
	return s.Err()
}

// yarnName is the package of an entry's first pattern: `"@scope/name@^1.0.0", …:`, or behind an
// alias the one that it stands for.
func yarnName(line string) string {
	first, _, _ := strings.Cut(strings.TrimSuffix(line, ":"), ",")
	first = strings.Trim(first, `"`)
	if _, target, ok := strings.Cut(first, "@npm:"); ok && strings.LastIndex(target, "@") > 0 {
		first = target
	}
	if i := strings.LastIndex(first, "@"); i > 0 {
		return first[:i]
	}
	return first
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
		r.needs = append(r.needs, Need{Ecosystem: pypi.Ecosystem, Package: name, Version: version})
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
	r.needs = append(r.needs, Need{pypi.Ecosystem, name, version, file})
}
