package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // the registry protocol's shasum
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// verdaccio is a running registry with one user.
type verdaccio struct {
	url   string // without a trailing slash
	token string
	// integrity of each published version, by name@version
	integrity map[string]string
}

// startVerdaccio starts a registry that has no way out. Packages of the scope @acme are for its
// user only.
func startVerdaccio(t *testing.T) *verdaccio {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "config.yaml", `
storage: ./storage
auth: {htpasswd: {file: ./htpasswd, max_users: 10}}
uplinks: {}
web: {enable: false}
middlewares: {audit: {enabled: false}}
packages:
  '@acme/*': {access: $authenticated, publish: $authenticated}
  '**': {access: $all, publish: $authenticated}
log: {type: stdout, format: json, level: warn}
`)
	address := freeAddress(t)
	v := &verdaccio{url: "http://" + address, integrity: map[string]string{}}
	start(t, dir, environment(dir), command(t, "node"), tool(t, "verdaccio/bin/verdaccio"), "-c", "config.yaml", "-l", address)
	until(t, "verdaccio", func() bool { return answers(v.url + "/-/ping") })
	var login struct{ Token string }
	v.put(t, "/-/user/org.couchdb.user:ann", map[string]string{"name": "ann", "password": "a-long-password"}, &login)
	v.token = login.Token
	return v
}

func (v *verdaccio) put(t *testing.T, path string, body, answer any) {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, v.url+path, bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if v.token != "" {
		req.Header.Set("Authorization", "Bearer "+v.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("PUT %s: %s %s %v", path, resp.Status, text, err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatalf("PUT %s: %v", path, err)
	}
}

// publish puts one version with its dependencies, as npm publish does.
func (v *verdaccio) publish(t *testing.T, name, version string, dependencies map[string]string) {
	t.Helper()
	manifest := map[string]any{"name": name, "version": version, "main": "index.js", "license": "MIT", "dependencies": dependencies}
	tarball := pack(t, manifest)
	sum, digest := sha1.Sum(tarball), sha512.Sum512(tarball) //nolint:gosec // see above
	integrity := "sha512-" + base64.StdEncoding.EncodeToString(digest[:])
	file := fmt.Sprintf("%s-%s.tgz", name[strings.LastIndex(name, "/")+1:], version)
	manifest["dist"] = map[string]any{
		"integrity": integrity, "shasum": hex.EncodeToString(sum[:]), "tarball": v.url + "/" + name + "/-/" + file,
	}
	document := map[string]any{
		"_id": name, "name": name, "dist-tags": map[string]string{"latest": version}, "versions": map[string]any{version: manifest},
		"_attachments": map[string]any{file: map[string]any{
			"content_type": "application/octet-stream", "data": base64.StdEncoding.EncodeToString(tarball), "length": len(tarball),
		}},
	}
	v.put(t, "/"+url.PathEscape(name), document, new(map[string]any))
	v.integrity[name+"@"+version] = integrity
}

func pack(t *testing.T, manifest map[string]any) []byte {
	t.Helper()
	encoded, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	archive := tar.NewWriter(zip)
	for name, text := range map[string]string{"package.json": string(encoded), "index.js": "module.exports = require('./package.json').version\n"} {
		if err := archive.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, text); err != nil {
			t.Fatal(err)
		}
	}
	if archive.Close() != nil || zip.Close() != nil {
		t.Fatal("the archive cannot be closed")
	}
	return buf.Bytes()
}

// front stands before a registry, records what arrives, and may throttle.
type front struct {
	url string // without a trailing slash

	mu       sync.Mutex // guards all below
	seen     []string   // "METHOD path"
	secrets  []string   // requests that carried a credential
	sent     []string   // what they carried, each once
	gaps     []gap
	throttle func(n int) (retryAfter string, throttled bool)
}

// gap is the time after one request: what its answer asked for, and what passed until the next.
type gap struct {
	at         time.Time
	wait, next time.Duration
}

// startFront forwards to the registry at target.
func startFront(t *testing.T, target string) *front {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // the registry builds its links from it
	}}
	f := &front{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if retryAfter, throttled := f.record(r); throttled {
			w.Header().Set("Retry-After", retryAfter)
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *front) record(r *http.Request) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, r.Method+" "+r.URL.EscapedPath())
	if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
		f.secrets = append(f.secrets, r.URL.Path)
		if sent := r.Header.Get("Authorization") + r.Header.Get("Cookie"); !slices.Contains(f.sent, sent) {
			f.sent = append(f.sent, sent)
		}
	}
	now := time.Now()
	if n := len(f.gaps); n > 0 {
		f.gaps[n-1].next = now.Sub(f.gaps[n-1].at)
	}
	g := gap{at: now}
	retryAfter, throttled := "", false
	if f.throttle != nil {
		if retryAfter, throttled = f.throttle(len(f.seen)); throttled {
			seconds, _ := strconv.Atoi(retryAfter)
			g.wait = time.Duration(seconds) * time.Second
		}
	}
	f.gaps = append(f.gaps, g)
	return retryAfter, throttled
}

// requests returns what arrived.
func (f *front) requests() (seen, secrets []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.seen...), append([]string{}, f.secrets...)
}

// credentials returns what arrived as a credential, each once.
func (f *front) credentials() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}

// world is two registries with a small tree of packages: @acme/core is private and needs
// @pub/scoped, which needs left-dep.
type world struct{ public, private *verdaccio }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	w.public, w.private = startVerdaccio(t), startVerdaccio(t)
	w.public.publish(t, "left-dep", "1.0.0", nil)
	w.public.publish(t, "left-dep", "1.1.0", nil)
	w.public.publish(t, "@pub/scoped", "2.0.0", map[string]string{"left-dep": "^1.0.0"})
	w.public.publish(t, "@pub/scoped", "2.1.0", map[string]string{"left-dep": "^1.0.0"})
	w.public.publish(t, "too-young", "1.0.0", nil)
	w.private.publish(t, "@acme/core", "1.2.0", map[string]string{"@pub/scoped": "^2.0.0"})
	return w
}

// config is a gate's configuration in front of the world: the age of what was just published cannot
// speak for it, so the packages are named, all but too-young.
func (w *world) config(public, more string) string {
	return fmt.Sprintf(`
mounts: {npm: {public: %q, private: %q}}
rules:
  named: {type: AllowByIdentity, packages: [left-dep, "@pub/*"]}
%s`, public, w.private.url, more)
}
