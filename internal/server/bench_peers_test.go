package server

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

// fileServer serves the same bytes under every path.
func fileServer(b *testing.B, body []byte, encoding string) *httptest.Server {
	b.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	}))
	b.Cleanup(s.Close)
	return s
}

// gzipBytes packs a body as a whole.
func gzipBytes(b *testing.B, body []byte) []byte {
	b.Helper()
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = w.Write(body) // a bytes.Buffer does not fail
	_ = w.Close()
	return buf.Bytes()
}

// startNginx runs nginx with one worker in front of an address: as a plain proxy, and below /cached/ with a cache.
func startNginx(b *testing.B, upstream string) string {
	b.Helper()
	dir := b.TempDir()
	addr := freeAddress(b)
	conf := fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/err;\nevents {}\nhttp { access_log off; client_body_temp_path %[1]s/c; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;\n"+
		"keepalive_requests 1000000000; sendfile on; proxy_cache_path %[1]s/cache keys_zone=z:10m;\n"+
		"upstream up { server %[2]s; keepalive 16; }\nserver { listen %[3]s; location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ''; }\n"+
		"location /cached/ { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_cache z; proxy_cache_valid 200 1h; } } }", dir, upstream, addr)
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	return startPeer(b, addr, "", "nginx", "-c", path)
}

// startVerdaccio runs Verdaccio with a document of a package p in its own storage, and no way out.
func startVerdaccio(b *testing.B, doc []byte) string {
	b.Helper()
	bin, err := filepath.Abs("../../testtools/node_modules/verdaccio/bin/verdaccio")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		return ""
	}
	dir := b.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "storage/p"), 0o700); err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{
		"storage/p/package.json":     string(doc),
		"storage/.verdaccio-db.json": `{"list":["p"],"secret":"0123456789abcdef0123456789abcdef"}`,
		"config.yaml": "storage: ./storage\nuplinks: {}\nweb: {enable: false}\nmiddlewares: {audit: {enabled: false}}\n" +
			"packages: {'**': {access: $all}}\nlog: {type: stdout, format: json, level: error}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	addr := freeAddress(b)
	return startPeer(b, addr, dir, "node", bin, "-c", "config.yaml", "-l", addr)
}

func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startPeer runs a server until the benchmark ends, waits until it listens and gives its address, or nothing when it is not installed. Start it
// with the outer benchmark: the inner ones run several times.
func startPeer(b *testing.B, addr, dir, name string, args ...string) string {
	b.Helper()
	bin, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 1500 {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			c.Close()
			return addr
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.Fatalf("%s did not start", name)
	return ""
}

// hammerPeer is hammer on a server that may be missing.
func hammerPeer(b *testing.B, addr, path, header string) {
	b.Helper()
	if addr == "" {
		b.Skip("SKIPPED: the server is not installed; make setup brings it")
	}
	hammer(b, addr, path, header, http.StatusOK)
}
