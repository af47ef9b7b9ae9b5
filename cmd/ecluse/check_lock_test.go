package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/cli"
)

// check --lockfile lists what a client would fetch past the gate, and nothing else: neither the
// gate's own address nor what the client replaces by the registry that is configured.
func TestCheckLockfile(t *testing.T) {
	dir := t.TempDir()
	environ := []string{
		"ECLUSE_MOUNTS__NPM__PUBLIC=https://public.example/", "ECLUSE_PUBLICURL=https://gate.example:8443/", "ECLUSE_LISTEN=127.0.0.1:4999",
	}
	npmOwn := "https://registry." + "npmjs." + "org/a/-/a-1.0.0.tgz"
	for _, c := range []struct {
		name, text string
		past       []string // hosts with their count; none: nothing goes past
	}{
		{"package-lock.json", `{"packages": {"node_modules/a": {"version": "1.0.0", "resolved": "` + npmOwn + `"},
			"node_modules/b": {"version": "1.0.0", "resolved": "https://gate.example:8443/npm/b/-/b-1.0.0.tgz"},
			"node_modules/c": {"version": "1.0.0", "resolved": "https://other.example/c/-/c-1.0.0.tgz"},
			"node_modules/d": {"version": "1.0.0", "resolved": "git+ssh://git@host.example/d.git#abc"},
			"node_modules/e": {"version": "1.0.0", "resolved": "file:../e"}}}`, []string{"host.example 1", "other.example 1"}},
		{"yarn.lock", "a@^1.0.0:\n  version \"1.0.0\"\n  resolved \"" + npmOwn + "#abc\"\n", []string{"registry.npmjs" + ".org 1"}},
		{"yarn.lock", "a@^1.0.0:\n  version \"1.0.0\"\n  resolved \"http://127.0.0.1:4999/npm/a/-/a-1.0.0.tgz#abc\"\n", nil},
		{"yarn.lock", "\n__metadata:\n  version: 8\n\"a@npm:1\":\n  resolution: \"a@npm:1.0.0::__archiveUrl=https%3A%2F%2Fother.example%2Fa.tgz\"\n", []string{"other.example 1"}},
		{"pnpm-lock.yaml", "packages:\n  a@1.0.0:\n    resolution: {integrity: x, tarball: 'https://other.example/a.tgz'}\n  b@1.0.0:\n    resolution: {integrity: x}\n", []string{"other.example 1"}},
		{"bun.lock", `{"packages": {"a": ["a@1.0.0", "https://other.example/a.tgz", {}, "x"], "b": ["b@1.0.0", "", {}, "x"],}}`, []string{"other.example 1"}},
		{"uv.lock", "[[package]]\nname = 'a'\nsource.registry = 'x'\nsdist.url = 'https://files.pythonhosted.org/packages/aa/a-1.0.tar.gz'\n", []string{"files.pythonhosted.org 1"}},
		{"requirements.txt", "-i https://gate.example:8443/pypi/simple/\na==1.0\n", nil},
		{"requirements.txt", "--extra-index-url https://pypi.org/simple\na==1.0\n", []string{"pypi.org 1"}},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := playWith(t, environ, "check", "--lockfile", path)
		lines := strings.Join(strings.Fields(stdout), " ")
		for _, host := range c.past {
			if !strings.Contains(lines, " "+host+" ") {
				t.Errorf("%s lacks %q: %s", c.name, host, stdout)
			}
		}
		want := cli.Refused
		if c.past == nil {
			want = cli.Done
			if !strings.Contains(stdout, "nothing goes past the gate") {
				t.Errorf("%s: %s", c.name, stdout)
			}
		}
		if code != int(want) || strings.Contains(lines, "gate.example:8443 ") || strings.Contains(lines, "127.0.0.1:4999 ") {
			t.Errorf("%s: exit code %d, want %d; %s%s", c.name, code, want, stdout, stderr)
		}
	}
	if code, _, stderr := playWith(t, environ, "check", "--lockfile", "Cargo.lock"); code != int(cli.Refused) || !strings.Contains(stderr, "unknown lock file format") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}
