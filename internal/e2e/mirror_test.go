package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// queueStatus is what GET /api/v1/queue says.
type queueStatus struct {
	Enabled                             bool
	Store                               string
	Ready, Running, Waiting, Done, Dead int
	HeartbeatAge                        float64 `json:"heartbeat_age_seconds"`
}

// queue reads the queue of a running gate.
func (g *gate) queue(t *testing.T) (st queueStatus) {
	t.Helper()
	resp, err := http.Get(g.admin + "api/v1/queue")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
		t.Fatal(err)
	}
	return st
}

// document reads a package's document from the registry, as its user.
func (v *verdaccio) document(t *testing.T, name string) (doc struct {
	Tags     map[string]string         `json:"dist-tags"`
	Versions map[string]map[string]any `json:"versions"`
},
) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.url+"/"+url.PathEscape(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+v.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || json.Unmarshal(body, &doc) != nil {
		t.Fatalf("document of %s: %s %v", name, body, err)
	}
	return doc
}

// What clients took is copied to the mirror, which is the private upstream as well; then the public
// upstream goes away for good, and a new gate installs the same tree from the mirror alone.
func TestMirrorOutlivesThePublicUpstream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	public, private := startFront(t, w.public.url), startFront(t, w.private.url)
	secrets := t.TempDir()
	write(t, secrets, "token", w.private.token+"\n")
	config := func(public string) string {
		return fmt.Sprintf(`
mounts:
  npm: {public: %q, private: %q, firstParty: ["@acme/*"], mirror: {url: %q, tokenFile: %q}, publish: {url: %q}}
rules:
  named: {type: AllowByIdentity, packages: [left-dep, "@pub/*"]}
`, public, private.url, private.url, filepath.Join(secrets, "token"), private.url)
	}
	npm := clients(t)[0]
	g := serveGate(t, config(public.url))
	needs := map[string]string{"@acme/core": "^1.0.0", "@pub/scoped": "^2.0.0"}
	p := newProject(t, npm, g.npm, w.private.token, needs)
	p.must(t, npm.install...)
	p.installed(t)
	until(t, "the mirror jobs", func() bool { st := g.queue(t); return st.Done == 2 && st.Ready+st.Running+st.Waiting == 0 })
	if st := g.queue(t); st.Dead != 0 || !st.Enabled || st.Store != "sqlite" || st.HeartbeatAge < 0 {
		t.Errorf("queue: %+v", st)
	}
	for name, version := range map[string]string{"left-dep": "1.1.0", "@pub/scoped": "2.1.0"} {
		doc := w.private.document(t, name)
		dist, _ := doc.Versions[version]["dist"].(map[string]any)
		if len(doc.Versions) != 1 || dist["integrity"] != w.public.integrity[name+"@"+version] || doc.Tags["ecluse-mirror"] != version {
			t.Errorf("mirrored %s: tags %v, dist %v", name, doc.Tags, dist)
		}
	}
	before, _ := public.requests()
	// the worker took what the client's request had left
	for _, file := range []string{"left-dep-1.1.0.tgz", "scoped-2.1.0.tgz"} {
		if n := strings.Count(strings.Join(before, "\n"), file); n != 1 {
			t.Errorf("the public upstream was asked %d times for %s", n, file)
		}
	}

	gone := serveGate(t, config("http://"+freeAddress(t)))
	again := newProject(t, npm, gone.npm, w.private.token, needs)
	again.must(t, npm.install...)
	again.installed(t)
	if after, _ := public.requests(); len(after) != len(before) {
		t.Errorf("the public upstream was asked: %q", after[len(before):])
	}
	if puts := private.count("PUT"); puts != 2 {
		t.Errorf("the mirror saw %d writes, want one for each file", puts)
	}
}

// serve --no-worker takes jobs, ecluse mirror run does them, and ecluse status shows them.
func TestWorkerOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	write(t, dir, "token", w.private.token+"\n")
	config := fmt.Sprintf("mounts: {npm: {public: %q, private: %q, mirror: {url: %q, tokenFile: %q}}}\n"+
		"rules: {named: {type: AllowByIdentity, packages: [left-dep]}}\ndataDir: %q\n",
		w.public.url, w.private.url, w.private.url, filepath.Join(dir, "token"), filepath.Join(dir, "data"))
	write(t, dir, "mirror.yaml", config+"artifacts: {maxBytes: 0}\ncache: {diskBytes: 0}\n")
	g := serveGate(t, config, "--no-worker")
	if !answers(g.npm + "left-dep/-/left-dep-1.0.0.tgz") {
		t.Fatal("the file is not served")
	}
	until(t, "the job", func() bool { return g.queue(t).Ready == 1 })
	if st := g.queue(t); st.HeartbeatAge != -1 {
		t.Errorf("a gate without a worker shows its heartbeat: %+v", st)
	}
	start(t, dir, environment(dir), binary, "mirror", "run", "--config", "mirror.yaml")
	until(t, "the mirror", func() bool { return g.queue(t).Done == 1 })
	if doc := w.private.document(t, "left-dep"); len(doc.Versions) != 1 {
		t.Errorf("mirrored versions: %v", doc.Versions)
	}
	if r := play(t, dir, environment(dir), binary, "status", "--admin", g.admin); r.code != 0 || !strings.Contains(r.output, "done 1, dead 0") {
		t.Errorf("status: %s", r.output)
	}
}

// npm publish through the gate: a first-party package arrives under its publisher's credential, any
// other name is refused before the target hears of it, and the target's own refusal is shown as it
// is.
func TestPublish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	target := startFront(t, w.private.url)
	g := serveGate(t, fmt.Sprintf("mounts: {npm: {public: %q, private: %q, firstParty: ['@acme/*'], publish: {url: %q}}}",
		w.public.url, w.private.url, target.url))
	npm := clients(t)[0]
	publish := func(name, version, token string) result {
		dir := t.TempDir()
		write(t, dir, "package.json", fmt.Sprintf(`{"name": %q, "version": %q, "license": "MIT"}`, name, version))
		write(t, dir, ".npmrc", npmrc(g.npm, token))
		// not the package's folder: npm would pack its own log, which grows meanwhile
		home := t.TempDir()
		return play(t, dir, environment(home), append(slices.Clone(npm.argv), "publish", "--fetch-retries=0")...)
	}
	if r := publish("@acme/fresh", "1.0.0", w.private.token); r.code != 0 {
		t.Fatalf("publish: %s", r.output)
	}
	if doc := w.private.document(t, "@acme/fresh"); doc.Tags["latest"] != "1.0.0" {
		t.Errorf("the target has %v", doc.Tags)
	}
	p := newProject(t, npm, g.npm, w.private.token, map[string]string{"@acme/fresh": "1.0.0"})
	p.must(t, npm.install...)
	puts := target.count("PUT")
	if r := publish("left-dep", "9.0.0", w.private.token); r.code == 0 || !strings.Contains(r.output, "first-party") || !strings.Contains(r.output, "403") {
		t.Errorf("a public name: %d %s", r.code, r.output)
	}
	if n := target.count("PUT"); n != puts {
		t.Errorf("the target heard of a public name: %d writes", n-puts)
	}
	if r := publish("@acme/fresh", "1.0.0", w.private.token); r.code == 0 || !strings.Contains(r.output, "previously published") {
		t.Errorf("the same version again: %d %s", r.code, r.output) // npm looks before it publishes
	}
	if r := publish("@acme/fresh", "1.0.1", "no-such-token"); r.code == 0 {
		t.Errorf("published without a credential: %s", r.output)
	}
}

func (f *front) count(method string) (n int) {
	seen, _ := f.requests()
	for _, s := range seen {
		if strings.HasPrefix(s, method+" ") {
			n++
		}
	}
	return n
}
