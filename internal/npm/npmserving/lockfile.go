package npmserving

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/ecluse-gate/ecluse/internal/mirror/lockfile"
	"github.com/ecluse-gate/ecluse/internal/npm"
)

// What clients do with the addresses in their lock files.
const (
	npmDirect = "npm ci asks these hosts directly; that of npm's own default registry it replaces by the configured one (replace-registry-host), yarn 1 and others do not"
	asIsNote  = "asked directly, whatever registry is configured"
)

// lockFiles are those of npm, pnpm, yarn and bun.
func lockFiles() []lockfile.Format {
	return []lockfile.Format{
		{Name: "package-lock.json", Files: []string{"package-lock.json", "npm-shrinkwrap.json"}, Read: reading((*reader).packageLock), Direct: npmDirect, Replaces: npmReplaces},
		{Name: "pnpm-lock.yaml", Files: []string{"pnpm-lock.yaml"}, Read: reading((*reader).pnpm), Direct: asIsNote},
		{Name: "yarn.lock", Files: []string{"yarn.lock"}, Read: reading((*reader).yarn), Direct: asIsNote},
		{Name: "bun.lock", Files: []string{"bun.lock"}, Read: reading((*reader).bun), Direct: asIsNote},
	}
}

// npmReplaces reports npm's own default registry, for which npm takes the configured one: what its
// setting replace-registry-host calls "npmjs".
func npmReplaces(host string) bool { return strings.HasPrefix(host, "registry."+"npmjs.") }

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

// npm adds a version of an npm package, whose one file has the name of custom.
func (r *reader) npm(name, version string) {
	name, err := npm.ParseName(name)
	file := npm.FileName(name, version)
	if back, ok := npm.VersionOfFile(name, file); err != nil || !ok || back != version {
		r.Skipped++
		return
	}
	r.Needs = append(r.Needs, lockfile.Need{Ecosystem: npm.Ecosystem, Package: name, Version: version, File: file})
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
		r.At(name, p.Resolved)
		if p.Version == "" || fromElsewhere(p.Resolved) {
			r.Skipped++
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
		for key, entry := range packages {
			r.pnpmPackage(key)
			r.pnpmTarball(key, entry)
		}
	}
	return nil
}

func (r *reader) pnpmPackage(key string) {
	key, _, _ = strings.Cut(strings.TrimPrefix(key, "/"), "(")
	i := strings.LastIndexAny(key, "@/")
	if i <= 0 || strings.Contains(key, ":") {
		r.Skipped++
		return
	}
	version, _, _ := strings.Cut(key[i+1:], "_")
	r.npm(key[:i], version)
}

// pnpmTarball notes the address of a package that has one.
func (r *reader) pnpmTarball(key string, entry *yaml.Node) {
	fields, err := members(entry)
	if err != nil {
		return // the entry says nothing of a place
	}
	if resolution, err := members(fields["resolution"]); err == nil && resolution["tarball"] != nil {
		r.At(key, resolution["tarball"].Value)
	}
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
		version, binding, _ := strings.Cut(text[i+len("@npm:"):], "::")
		r.npm(text[:i], version)
		if values, err := url.ParseQuery(binding); err == nil {
			r.At(text[:i], values.Get("__archiveUrl"))
		}
	case text != "" && !strings.Contains(text, "@workspace:"):
		r.Skipped++
	}
}

var (
	yarnVersion  = regexp.MustCompile(`^  version "([^"]+)"$`)
	yarnResolved = regexp.MustCompile(`^  resolved "([^"#]+)`)
)

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
			} else if m := yarnResolved.FindStringSubmatch(line); m != nil {
				r.At(name, m[1])
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

// bun reads the text form: JSON with commas at the end, which YAML reads. Each member of "packages"
// is a list that begins with "name@1.0.0" and the address, empty for the registry's own.
func (r *reader) bun(data []byte) error {
	docs, err := documents(data)
	if err != nil {
		return fmt.Errorf("not what bun writes: %v", err)
	}
	for _, doc := range docs {
		packages, err := members(doc["packages"])
		if err != nil {
			return fmt.Errorf("not what bun writes: %v", err)
		}
		for _, entry := range packages {
			if entry.Kind == yaml.SequenceNode && len(entry.Content) > 0 {
				r.bunPackage(entry.Content)
			}
		}
	}
	return nil
}

func (r *reader) bunPackage(entry []*yaml.Node) {
	id := entry[0].Value
	i := strings.LastIndex(id, "@")
	if i > 0 && strings.HasPrefix(id[i+1:], "workspace:") {
		return
	}
	if i <= 0 || len(entry) < 3 || strings.ContainsAny(id[i+1:], ":/") {
		r.Skipped++
		r.At(id, id[strings.Index(id, "@")+1:])
		return
	}
	r.npm(id[:i], id[i+1:])
	if entry[1].Kind == yaml.ScalarNode {
		r.At(id[:i], entry[1].Value)
	}
}
