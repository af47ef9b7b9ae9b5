package lockfile

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func npmNeed(name, version, file string) Need { return Need{"npm", name, version, file} }

var tree = []Need{
	npmNeed("@pub/scoped", "2.1.0", "scoped-2.1.0.tgz"), npmNeed("left-dep", "1.1.0", "left-dep-1.1.0.tgz"),
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []Need
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
		{"requirements-dev.txt", "# what we need\n--index-url https://host/simple\nApple_Pie[extra] == 1.0 ; python_version > '3'\npear==2.0.0 \\\n    --hash=sha256:abc\nplum>=1\n-r other.txt\nexact===1.0\r\n", []Need{
			{"pypi", "apple-pie", "1.0", ""}, {"pypi", "exact", "1.0", ""}, {"pypi", "pear", "2.0.0", ""},
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
`, []Need{{"pypi", "apple-pie", "1.0", "apple_pie-1.0-py3-none-any.whl"}, {"pypi", "apple-pie", "1.0", "apple_pie-1.0.tar.gz"}}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, skipped, err := Read(c.name, []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || skipped != c.skipped {
				t.Errorf("skipped %d, want %d\n%s", skipped, c.skipped, diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	if _, _, err := Read("Cargo.lock", nil); !errors.Is(err, ErrUnknown) {
		t.Errorf("Cargo.lock: %v", err)
	}
	for name, text := range map[string]string{
		"package-lock.json": `{"lockfileVersion": 1, "dependencies": {}}`, "npm-shrinkwrap.json": "x", "pnpm-lock.yaml": "\t:", "uv.lock": "version = 1",
	} {
		if _, _, err := Read(name, []byte(text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever stands in a lock file, a need is a name and a file that the protocol has.
func FuzzRead(f *testing.F) {
	f.Add("package-lock.json", `{"packages": {"node_modules/../../x": {"version": "1.0.0/../.."}}}`)
	f.Add("yarn.lock", "\"a@1\":\n  version \"1.0.0\"\n")
	f.Add("uv.lock", "[[package]]\nname = \"a\"\nsource = { registry = \"x\" }\n{ url = \"https://h/a-1.0.tar.gz\" }\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		needs, _, err := Read(name, []byte(text))
		if err != nil {
			return
		}
		for _, n := range needs {
			if strings.Contains(n.File, "/") || strings.Contains(n.Package, "..") || n.Package == "" || n.Version == "" {
				t.Errorf("need %+v", n)
			}
		}
	})
}
