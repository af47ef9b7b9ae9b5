package npmserving

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/mirror/lockfile"
	"github.com/ecluse-gate/ecluse/internal/npm"
)

// lockFiles are those of npm, pnpm and yarn.
func lockFiles() []lockfile.Format {
	return []lockfile.Format{
		{Name: "package-lock.json", Files: []string{"package-lock.json", "npm-shrinkwrap.json"}, Read: reading((*reader).packageLock)},
		{Name: "pnpm-lock.yaml", Files: []string{"pnpm-lock.yaml"}, Read: reading((*reader).pnpm)},
		{Name: "yarn.lock", Files: []string{"yarn.lock"}, Read: reading((*reader).yarn)},
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

// npm adds a version of an npm package, whose one file has the name of custom.
func (r *reader) npm(name, version string) {
	name, err := npm.ParseName(name)
	file := npm.FileName(name, version)
	if back, ok := npm.VersionOfFile(name, file); err != nil || !ok || back != version {
		r.skipped++
		return
	}
	r.needs = append(r.needs, lockfile.Need{Ecosystem: npm.Ecosystem, Package: name, Version: version, File: file})
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
