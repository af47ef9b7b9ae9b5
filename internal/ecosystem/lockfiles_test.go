package ecosystem

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ecluse-gate/ecluse/internal/mirror/lockfile"
)

func npmNeed(name, version, file string) lockfile.Need {
	return lockfile.Need{Ecosystem: "npm", Package: name, Version: version, File: file}
}

// nothing is an empty file under every name.
func nothing(string) ([]byte, error) { return nil, nil }

var tree = []lockfile.Need{
	npmNeed("@pub/scoped", "2.1.0", "scoped-2.1.0.tgz"), npmNeed("left-dep", "1.1.0", "left-dep-1.1.0.tgz"),
}

func TestLockFiles(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []lockfile.Need
		skipped    int
	}{
		{"package-lock.json", `{"lockfileVersion": 3, "packages": {"": {"name": "me"}, "node_modules/left-dep": {"version": "1.1.0"},
			"node_modules/a/node_modules/left-dep": {"version": "1.1.0"}, "node_modules/@pub/scoped": {"version": "2.1.0"},
			"packages/mine": {"version": "1.0.0"}, "node_modules/mine": {"resolved": "packages/mine", "link": true},
			"node_modules/g": {"version": "1.0.0", "resolved": "git+ssh://git@host/g.git#abc"}}}`, tree, 1},
		{"npm-shrinkwrap.json", `{"packages": {"node_modules/alias": {"name": "left-dep", "version": "1.1.0"}, "node_modules/@pub/scoped": {"version": "2.1.0"}}}`, tree, 0},
		{"pnpm-lock.yaml", "lockfileVersion: '9.0'\npackages:\n  left-dep@1.1.0:\n    resolution: {integrity: x}\n  '@pub/scoped@2.1.0(react@18.0.0)': {}\n  'a@file:../a': {}\n", tree, 1},
		{"dir/pnpm-lock.yaml", "packages:\n  /left-dep@1.1.0: {}\n  /@pub/scoped/2.1.0: {}\n", tree, 0},
		{"yarn.lock", "# yarn lockfile v1\n\n\n\"@pub/scoped@^2.0.0\":\n  version \"2.1.0\"\n  dependencies:\n    left-dep \"^1.0.0\"\n\nleft-dep@^1.0.0, left-dep@^1.1.0:\n  version \"1.1.0\"\n" +
			"\n\"alias@npm:left-dep@1.1.0\":\n  version \"1.1.0\"\n", tree, 0},
		{"yarn.lock", "# generated\n\n__metadata:\n  version: 8\n\n\"@pub/scoped@npm:^2.0.0\":\n  version: 2.1.0\n  resolution: \"@pub/scoped@npm:2.1.0\"\n\n\"left-dep@npm:^1.0.0\":\n" +
			"  version: 1.1.0\n  resolution: \"left-dep@npm:1.1.0\"\n\n\"me@workspace:.\":\n  resolution: \"me@workspace:.\"\n\n\"g@https://host/g.git\":\n  resolution: \"g@https://host/g.git#commit=abc\"\n", tree, 1},
		{"requirements-dev.txt", "# what we need\n--index-url https://host/simple\nApple_Pie[extra] == 1.0 ; python_version > '3'\npear==2.0.0 \\\n    --hash=sha256:abc\nplum>=1\n-r other.txt\nexact===1.0\r\n", []lockfile.Need{
			{Ecosystem: "pypi", Package: "apple-pie", Version: "1.0", File: ""}, {Ecosystem: "pypi", Package: "exact", Version: "1.0", File: ""}, {Ecosystem: "pypi", Package: "pear", Version: "2.0.0", File: ""},
		}, 1},
		{"uv.lock", `version = 1

[[package]]
name = "me"
version = "0.1.0"
source = { virtual = "." }

[[package]]
name = "apple-pie"
version = "1.0"
source = { registry = "https://pypi.org/simple" }
sdist = { url = "https://files.pythonhosted.org/packages/aa/apple_pie-1.0.tar.gz", hash = "sha256:abc", size = 1 }
wheels = [
    { url = "https://files.pythonhosted.org/packages/bb/apple_pie-1.0-py3-none-any.whl", hash = "sha256:abc", size = 1 },
    { url = "https://files.pythonhosted.org/packages/bb/other-1.0-py3-none-any.whl", hash = "sha256:abc", size = 1 },
]

[[package]]
name = "g"
version = "1.0"
source = { git = "https://host/g?rev=abc" }
`, []lockfile.Need{{Ecosystem: "pypi", Package: "apple-pie", Version: "1.0", File: "apple_pie-1.0-py3-none-any.whl"}, {Ecosystem: "pypi", Package: "apple-pie", Version: "1.0", File: "apple_pie-1.0.tar.gz"}}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := lockfile.Read(All().LockFiles(), c.name, []byte(c.text), nothing)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Needs); diff != "" || got.Skipped != c.skipped {
				t.Errorf("skipped %d, want %d\n%s", got.Skipped, c.skipped, diff)
			}
		})
	}
}

// The files are read as what they are, JSON, YAML and TOML, and not as the layout that one version
// of a tool happens to write.
func TestLockFilesSpellings(t *testing.T) {
	pear := []lockfile.Need{{Ecosystem: "pypi", Package: "pear", Version: "2.0", File: "pear-2.0-py3-none-any.whl"}, {Ecosystem: "pypi", Package: "pear", Version: "2.0", File: "pear-2.0.tar.gz"}}
	const at = "https://files.pythonhosted.org/packages/aa/"
	for _, c := range []struct {
		what, name, text string
		want             []lockfile.Need
		skipped          int
	}{
		{"bun", "bun.lock", `{
  "lockfileVersion": 1,
  "workspaces": {"": {"name": "me"}},
  "packages": {
    "@pub/scoped": ["@pub/scoped@2.1.0", "", { "dependencies": { "left-dep": "^1.0.0", }, }, "sha512-x"],
    "left-dep": ["left-dep@1.1.0", "http://gate.test/npm/left-dep/-/left-dep-1.1.0.tgz", {}, "sha512-x"],
    "me": ["me@workspace:"],
    "g": ["g@git+ssh://git@host/g.git#abc", {}, "abc"],
  }
}
`, tree, 1},
		{"poetry", "poetry.lock", `[[package]]
name = "pear"
version = "2.0"
files = [
    {file = "pear-2.0-py3-none-any.whl", hash = "sha256:abc"},
    {file = "pear-2.0.tar.gz", hash = "sha256:abc"},
]

[[package]]
name = "g"
version = "1.0"
files = []

[package.source]
type = "git"
url = "https://host/g.git"
`, pear, 1},
		{"pdm", "pdm.lock", `[[package]]
name = "pear"
version = "2.0"
files = [
    {url = "` + at + `pear-2.0-py3-none-any.whl", hash = "sha256:abc"},
    {file = "pear-2.0.tar.gz", hash = "sha256:abc"},
]

[[package]]
name = "g"
version = "1.0"
git = "https://host/g.git"
`, pear, 1},
		{"the standard form", "pylock.toml", `lock-version = "1.0"
created-by = "a tool"

[[packages]]
name = "pear"
version = "2.0"
sdist = {name = "pear-2.0.tar.gz", url = "` + at + `pear-2.0.tar.gz", hashes = {sha256 = "abc"}}

[[packages.wheels]]
url = "` + at + `pear-2.0-py3-none-any.whl"
hashes = {sha256 = "abc"}

[[packages]]
name = "here"
directory = {path = "."}

[[packages]]
name = "g"
vcs = {type = "git", url = "https://host/g.git", commit-id = "abc"}
`, pear, 1},
		{"literal strings, tables of tables", "uv.lock", "[[package]]\nname = 'pear'\n[package.source]\nregistry = 'https://pypi.org/simple'\n[package.sdist]\nurl = '" + at +
			"pear-2.0.tar.gz'\n[[package.wheels]]\nurl = '" + at + "pear-2.0-py3-none-any.whl'\n", pear, 0},
		{"another order, other spaces", "uv.lock", "[[ package ]]\r\n  wheels=[{url=\"" + at + "pear-2.0-py3-none-any.whl\"}] # a\r\n  sdist={size=1,url=\"" + at +
			"pear-2.0.tar.gz\"}\r\n  source={registry=\"x\"}\r\n  name=\"Pear\"\r\n", pear, 0},
		{"one array", "uv.lock", "package = [{name = \"pear\", source = {registry = \"x\"}, sdist = {url = \"" + at + "pear-2.0.tar.gz\"}, wheels = [{url = \"" + at +
			"pear-2.0-py3-none-any.whl\"}]}]\n", pear, 0},
		{"escapes", "uv.lock", "[[package]]\nname = \"p\\u0065ar\"\nsource.registry = \"x\"\nsdist.url = \"" + at + "pear-2\\u002e0.tar.gz\"\nwheels = [{url = \"" + at +
			"pear-2.0-py3-none-any.whl\"}]\n", pear, 0},
		{"what looks like a package in a text", "uv.lock", "note = \"\"\"\n[[package]]\nname = \"left\"\nsource = { registry = \"x\" }\n{ url = \"" + at +
			"left-1.0.tar.gz\" }\n\"\"\"\n[[package]]\nname = \"me\"\nsource = { virtual = \".\" }\n", nil, 0},
		{"what looks like a registry in another source", "uv.lock", "[[package]]\nname = \"g\"\nsource = { git = \"https://h/g?a=registry = b\" }\nsdist = { url = \"" + at +
			"g-1.0.tar.gz\" }\n", nil, 1},
		{"a registry on a disk", "uv.lock", "[[package]]\nname = \"a\"\nsource = { registry = \"wheels\" }\nwheels = [{ path = \"a-1.0-py3-none-any.whl\" }]\n", nil, 1},
		{"flow", "pnpm-lock.yaml", "{packages: {left-dep@1.1.0: {}, '@pub/scoped@2.1.0': {}}}", tree, 0},
		{"JSON, CRLF and a byte order mark", "pnpm-lock.yaml", "\ufeff{\r\n \"packages\": {\"left-dep@1.1.0\": {}, \"@pub/scoped@2.1.0\": {}}\r\n}\r\n", tree, 0},
		{"pnpm's own packages first", "pnpm-lock.yaml", "---\npackages:\n  left-dep@1.1.0: {}\n---\nlockfileVersion: '9.0'\npackages:\n  '@pub/scoped@2.1.0': {}\n", tree, 0},
		{"no quotes, another order", "yarn.lock", "\n__metadata: {version: 8}\nleft-dep@npm:^1.0.0:\n    resolution: left-dep@npm:1.1.0\n    version: 1.1.0\n'@pub/scoped@npm:^2.0.0':\n" +
			"    resolution: '@pub/scoped@npm:2.1.0::x=y'\n", tree, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, err := lockfile.Read(All().LockFiles(), c.name, []byte(c.text), nothing)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Needs); diff != "" || got.Skipped != c.skipped {
				t.Errorf("skipped %d, want %d\n%s", got.Skipped, c.skipped, diff)
			}
		})
	}
}

// Requirements include other files by their path from where they stand, under any name; constraints
// count like requirements, and a circle ends.
func TestRequirementsInclude(t *testing.T) {
	files := map[string]string{
		"sub/base.txt": "pear==2.0 --hash=sha256:abc\n-c ../pins.txt\n-r base.txt\n", "pins.txt": "plum==3.0\n--requirement=sub/base.txt\n",
	}
	beside := func(name string) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, errors.New("no such file")
		}
		return []byte(text), nil
	}
	text := "--extra-index-url https://other.example/simple\napple==1.0\n-rsub/base.txt\ng @ git+https://host/g.git\n"
	l, err := lockfile.Read(All().LockFiles(), "all.in", []byte(text), beside)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range l.Needs {
		names = append(names, n.Package+"=="+n.Version)
	}
	if got := strings.Join(names, " "); got != "apple==1.0 pear==2.0 plum==3.0" || l.Skipped != 1 {
		t.Errorf("%s, skipped %d", got, l.Skipped)
	}
	want := []lockfile.Address{{Package: "--extra-index-url", URL: "https://other.example/simple"}, {Package: "g", URL: "git+https://host/g.git"}}
	if diff := cmp.Diff(want, l.Addresses); diff != "" {
		t.Error(diff)
	}
	if _, err := lockfile.Read(All().LockFiles(), "all.in", []byte("apple==1.0\n\n-r missing.txt\n"), beside); err == nil || !strings.Contains(err.Error(), "line 3: missing.txt: no such file") {
		t.Error(err)
	}
	endless := func(name string) ([]byte, error) { return []byte("-r x" + name + "\n"), nil }
	if _, err := lockfile.Read(All().LockFiles(), "all.in", []byte("-r a\n"), endless); err == nil || !strings.Contains(err.Error(), "too many files") {
		t.Error(err)
	}
}

// What cannot be read is refused with its line, and nesting without end is refused as well: no
// stack grows with it.
func TestLockFilesNamesTheLine(t *testing.T) {
	deep := strings.Repeat("[", 1<<20)
	for _, c := range []struct{ name, text, want string }{
		{"uv.lock", "version = 1\n[[package]]\nname = pear\n", "uv.lock: not TOML as uv writes it: line 3: "},
		{"uv.lock", "version = 1\n[[package]]\nname = 1\n", "uv.lock: not TOML as uv writes it: line 3: "},
		{"uv.lock", "[[package]]\nname = 'a'\nname = 'b'\n", "uv.lock: not TOML as uv writes it: line 3: "},
		{"uv.lock", "a = " + deep, "nested"},
		{"pnpm-lock.yaml", "packages:\n  a@1.0.0: {}\n\tb@1.0.0: {}\n", "pnpm-lock.yaml: not YAML as pnpm writes it: line 3: "},
		{"pnpm-lock.yaml", "packages:\n  a@1.0.0: {}\n  a@1.0.0: {}\n", "line 3: "},
		{"pnpm-lock.yaml", "a: " + deep, "line 1: exceeded max depth"},
		{"yarn.lock", "\n__metadata:\n  version: 8\n\n\"a@npm:1\":\n  resolution: \"a@npm:1.0.0\n", "yarn.lock: not YAML as yarn writes it: line 7: "},
	} {
		if _, err := lockfile.Read(All().LockFiles(), c.name, []byte(c.text), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q in\n%.80s", c.name, err, c.want, c.text)
		}
	}
}

func TestLockFilesRefuses(t *testing.T) {
	if _, err := lockfile.Read(All().LockFiles(), "Cargo.lock", nil, nil); !errors.Is(err, lockfile.ErrUnknown) {
		t.Errorf("Cargo.lock: %v", err)
	}
	for name, text := range map[string]string{
		"package-lock.json": `{"lockfileVersion": 1, "dependencies": {}}`, "npm-shrinkwrap.json": "x", "pnpm-lock.yaml": "\t:", "uv.lock": "version = 1",
	} {
		if _, err := lockfile.Read(All().LockFiles(), name, []byte(text), nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The time grows with the file and not with its square.
func TestLockFilesManyPackages(t *testing.T) {
	const packages = 60_000
	text := []byte("packages:\n")
	for i := range packages {
		text = fmt.Appendf(text, "  pkg%d@1.0.0: {}\n", i)
	}
	start := time.Now()
	l, err := lockfile.Read(All().LockFiles(), "pnpm-lock.yaml", text, nil)
	if took := time.Since(start); err != nil || len(l.Needs) != packages || took > 15*time.Second {
		t.Errorf("%d of %d packages in %v, %v", len(l.Needs), packages, took, err)
	}
}

// Whatever stands in a lock file, a need is a name and a file that the protocol has.
func FuzzLockFiles(f *testing.F) {
	f.Add("package-lock.json", `{"packages": {"node_modules/../../x": {"version": "1.0.0/../.."}}}`)
	f.Add("yarn.lock", "\"a@1\":\n  version \"1.0.0\"\n")
	f.Add("uv.lock", "[[package]]\nname = \"a\"\nsource = { registry = \"x\" }\nsdist = { url = \"https://h/a-1.0.tar.gz\" }\n")
	f.Add("bun.lock", `{"packages": {"a": ["a@1.0.0", "", {}, "sha512-x"],}}`)
	f.Add("poetry.lock", "[[package]]\nname = \"a\"\nfiles = [{file = \"a-1.0.tar.gz\"}]\n")
	f.Add("pdm.lock", "[[package]]\nname = \"a\"\nfiles = [{url = \"https://h/a-1.0.tar.gz\"}]\n")
	f.Add("pylock.toml", "lock-version = \"1.0\"\n[[packages]]\nname = \"a\"\n[packages.sdist]\nname = \"a-1.0.tar.gz\"\n")
	f.Add("pnpm-lock.yaml", "packages: {a@1.0.0: {}}\n---\npackages: {b@1.0.0: *a}\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		l, err := lockfile.Read(All().LockFiles(), name, []byte(text), nothing)
		if err != nil {
			return
		}
		for _, n := range l.Needs {
			if strings.Contains(n.File, "/") || strings.Contains(n.Package, "..") || n.Package == "" || n.Version == "" {
				t.Errorf("need %+v", n)
			}
		}
	})
}
