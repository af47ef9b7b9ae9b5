package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// commandRow is a row of a table of commands in docs/clients.md: what a client is called with, how
// that ends and what its user sees.
type commandRow struct {
	client, command, ends string
	sees                  []string
}

// commandRows reads the table of a section.
func commandRows(t *testing.T, section string) (rows []commandRow) {
	t.Helper()
	text, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/clients.md has no section %q", section)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	part, _, _ = strings.Cut(part, "\n# ")
	for line := range strings.Lines(part) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		r := commandRow{strings.TrimSpace(cells[0]), strings.Trim(strings.TrimSpace(cells[1]), "`"), strings.TrimSpace(cells[2]), nil}
		for i, span := range strings.Split(cells[3], "`") {
			if i%2 == 1 {
				r.sees = append(r.sees, span)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// check compares what a command did with its row.
func (c commandRow) check(t *testing.T, r result) {
	t.Helper()
	t.Logf("%s %s: exit code %d after %v\n%s", c.client, c.command, r.code, r.took, r.output)
	want := "exit code 1"
	if r.code == 0 {
		want = "works"
	}
	if c.ends != want && c.ends != fmt.Sprintf("exit code %d", r.code) || len(c.sees) == 0 {
		t.Errorf("%s %s: exit code %d; docs/clients.md says %q, %q", c.client, c.command, r.code, c.ends, c.sees)
	}
	for _, text := range c.sees {
		if !strings.Contains(words(r.output), text) {
			t.Errorf("%s %s: docs/clients.md says that the user sees %q:\n%s", c.client, c.command, text, r.output)
		}
	}
}

// services adds to a registry what Verdaccio does not have without a way out: search, audits, keys.
type services struct {
	url string

	mu     sync.Mutex // guards what follows
	bodies []string   // of questions
}

func startServices(t *testing.T, target string) *services {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}}
	s := &services{}
	answers := map[string]string{
		"/-/npm/v1/keys": `{"keys":[]}`,
		"/-/npm/v1/security/advisories/bulk": `{"left-dep":[{"id":1001,"url":"https://advisories.example.com/1001","title":"left-dep pads on the left",` +
			`"severity":"high","vulnerable_versions":"<1.2.0","cwe":[],"cvss":{"score":7.5,"vectorString":null}}]}`,
		"/-/v1/search": `{"objects":[{"package":{"name":"left-dep","version":"1.1.0","date":"2020-01-01T00:00:00.000Z","links":{},"maintainers":[],"keywords":[]},"score":{},"searchScore":1},` +
			`{"package":{"name":"@acme/core","version":"99.0.0","date":"2020-01-01T00:00:00.000Z","links":{},"maintainers":[],"keywords":[]},"score":{},"searchScore":1}],"total":2,"time":"now"}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			proxy.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.bodies = append(s.bodies, r.URL.RawQuery+string(body))
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *services) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.bodies, "\n")
}

// rw-013, rw-014: every command of the table in docs/clients.md ends as it says there, with real
// registries on both sides. The public one hears of no first-party name and of no credential, and
// nothing is taken for done that nobody did (R106).
func TestCommands(t *testing.T) {
	const section = "Every command"
	rows := commandRows(t, section)
	for _, c := range clients(t) {
		own := slices.DeleteFunc(slices.Clone(rows), func(r commandRow) bool { return r.client != c.name })
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if len(own) == 0 {
				t.Fatalf("docs/clients.md has no row for %s under %q", c.name, section)
			}
			w := newWorld(t)
			more := startServices(t, w.public.url)
			public, private := startFront(t, more.url), startFront(t, w.private.url)
			g := serveGate(t, fmt.Sprintf(`
mounts: {npm: {public: %q, private: %q, firstParty: ["@acme/*"], publish: {url: %q}}}
rules:
  named: {type: AllowByIdentity, packages: [left-dep, "@pub/*"]}
`, public.url, private.url, private.url))
			p := newProject(t, c, g.npm, w.private.token, map[string]string{"@acme/core": "^1.0.0", "@pub/scoped": "^2.0.0"})
			p.must(t, c.install...)
			for _, r := range own {
				r.check(t, p.run(t, strings.Fields(r.command)...))
			}
			seen, secrets := public.requests()
			if said := strings.Join(seen, "\n") + more.heard(); len(secrets) > 0 || strings.Contains(said, "acme") {
				t.Errorf("the public registry was sent a credential with %q, and heard:\n%s", secrets, said)
			}
			for _, request := range seen {
				if method, _, _ := strings.Cut(request, " "); method != "GET" && !strings.HasSuffix(request, "/bulk") {
					t.Errorf("the public registry was sent %s", request)
				}
			}
			if resp, _ := ask(t, http.MethodGet, g.npm+"@acme%2fcore", "Authorization", "Bearer "+w.private.token); (resp.StatusCode == http.StatusNotFound) != strings.HasPrefix(c.name, "npm") {
				t.Errorf("@acme/core, which npm has taken back: %s", resp.Status)
			}
			if resp, _ := ask(t, http.MethodGet, w.public.url+"/left-dep/1.0.0"); resp.StatusCode != http.StatusOK {
				t.Errorf("left-dep@1.0.0 at the public registry: %s", resp.Status)
			}
		})
	}
}

// The same for the clients of the Python index. twine, whose upload has tests of its own, has no
// other command that asks an index.
func TestPythonCommands(t *testing.T) {
	const section = "Python: every command"
	o := newOrchard(t)
	g := serveGate(t, o.config(""))
	s := newSandbox(t)
	done := map[string]bool{}
	for _, r := range commandRows(t, section) {
		done[r.client] = true
		args := strings.Fields(strings.ReplaceAll(r.command, "INDEX", g.pypi()))
		switch r.client {
		case "pip":
			r.check(t, play(t, s.dir, s.env, append([]string{pips(t)[0].python, "-m", "pip"}, args...)...))
		case "twine":
			wheel := fakepypi.Wheel("apple", "9.0")
			write(t, s.home, "apple-9.0-py3-none-any.whl", string(wheel.Content))
			args = append([]string{command(t, "twine")}, strings.Fields(strings.ReplaceAll(r.command, "MOUNT", strings.TrimSuffix(g.pypi(), "simple/")))...)
			r.check(t, play(t, s.home, environment(s.home), args...))
		default:
			i := slices.IndexFunc(managers(t), func(m manager) bool { return m.name == r.client })
			if i < 0 {
				t.Fatalf("docs/clients.md speaks of %q", r.client)
			}
			r.check(t, newVenture(t, managers(t)[i], g.pypi(), map[string]string{"apple": ">=0"}).run(t, args...))
		}
	}
	for _, name := range []string{"pip", "poetry", "pdm", "twine"} {
		if !done[name] {
			t.Errorf("docs/clients.md has no row for %s under %q", name, section)
		}
	}
}

// With advisories of its own the gate answers every client's audit from them, and asks nobody.
func TestAuditFromOwnAdvisories(t *testing.T) {
	w := newWorld(t)
	public := startFront(t, w.public.url)
	dir := t.TempDir()
	write(t, dir, "GHSA-1111-2222-3333.json", `{"id":"GHSA-1111-2222-3333","modified":"2026-01-01T00:00:00Z","aliases":["CVE-2026-1"],
		"affected":[{"package":{"ecosystem":"npm","name":"left-dep"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"1.1.5"}]}]}],
		"severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]}`)
	g := serveGate(t, w.config(public.url, fmt.Sprintf("advisories: {source: %q}\n", dir)))
	until(t, "the advisories", func() bool {
		resp, err := http.Post(g.npm+"-/npm/v1/security/advisories/bulk", "application/json", strings.NewReader("{}"))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	audits := map[string][]string{
		"npm": {"audit"}, "npm 12": {"audit"}, "pnpm 12": {"audit"}, "pnpm 10": {"audit"}, "yarn berry": {"npm", "audit", "--recursive"}, "bun": {"audit"},
	}
	for _, c := range clients(t) {
		if audits[c.name] == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, c, g.npm, w.private.token, map[string]string{"@acme/core": "^1.0.0"})
			p.must(t, c.install...)
			r := p.run(t, audits[c.name]...)
			if r.code != 1 || !strings.Contains(words(r.output), "GHSA-1111-2222-3333") || !strings.Contains(strings.ToLower(r.output), "critical") {
				t.Errorf("exit code %d\n%s", r.code, r.output)
			}
		})
	}
	t.Cleanup(func() {
		if seen, _ := public.requests(); strings.Contains(strings.Join(seen, " "), "security") {
			t.Errorf("the public registry was asked for advisories: %q", seen)
		}
	})
}
