package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// benchGate is a gate on loopback in front of a registry on loopback.
func benchGate(b *testing.B, registry http.Handler, settings ...string) *httptest.Server {
	b.Helper()
	gate := httptest.NewServer(benchServer(b, registry, settings...).Handler())
	b.Cleanup(gate.Close)
	return gate
}

// benchServer is a gate in front of a registry on loopback.
func benchServer(b *testing.B, registry http.Handler, settings ...string) *Server {
	b.Helper()
	up := httptest.NewServer(registry)
	b.Cleanup(up.Close)
	flags := map[string]string{"mounts.npm.public": up.URL + "/", "cache.ttl": "24h", "dataDir": b.TempDir(), "artifacts.maxBytes": "0"}
	for i := 0; i+1 < len(settings); i += 2 {
		flags[settings[i]] = settings[i+1]
	}
	cfg, err := config.Load(b.Context(), config.Options{Flags: flags})
	if err != nil {
		b.Fatal(err)
	}
	s, err := Build(BuildOptions{Context: b.Context(), Config: cfg, Logger: obs.Discard(), Version: "bench", Tracer: tracenoop.NewTracerProvider().Tracer("")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

// hammer sends one request over and over on kept connections, from two goroutines for each core, and checks the status.
func hammer(b *testing.B, addr, path, header string, status int) {
	b.Helper()
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\n" + header + "\r\n")
	once := func(conn net.Conn, br *bufio.Reader) (int, int64, error) {
		if _, err := conn.Write(request); err != nil {
			return 0, 0, err
		}
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			return 0, 0, err
		}
		defer resp.Body.Close()
		n, err := io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, n, err
	}
	var size int64
	b.SetParallelism(2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		br := bufio.NewReaderSize(conn, 64<<10)
		for pb.Next() {
			got, n, err := once(conn, br)
			if err != nil || got != status {
				b.Errorf("status %d, %v", got, err)
				return
			}
			size = n
		}
	})
	b.SetBytes(size)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

func host(url string) string { return strings.TrimPrefix(url, "http://") }

// BenchmarkListing compares a warm listing with what else could serve the same document, in the same run and as whole requests over loopback:
// a plain Go file server, one that has it packed already, nginx with a warm cache, and Verdaccio, which holds it as its own.
func BenchmarkListing(b *testing.B) {
	for _, size := range []struct {
		name string
		doc  []byte
	}{{"160KB", packument.Generate("p", 118, 1)}, {"3.7MB", large(time.Now().Add(-30 * 24 * time.Hour))}} {
		up := fakenpm.New("http://unused.test")
		up.SetDocument("p", size.doc)
		gate := benchGate(b, up)
		plain, ready := fileServer(b, size.doc, ""), fileServer(b, gzipBytes(b, size.doc), "gzip")
		nginx, verdaccio := startNginx(b, host(plain.URL)), startVerdaccio(b, size.doc)
		req, _ := http.NewRequestWithContext(b.Context(), http.MethodGet, gate.URL+"/npm/p", nil)
		req.Header.Set("Accept-Encoding", "identity")
		resp, err := gate.Client().Transport.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		n, _ := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		b.Logf("%s: document %d bytes, served %d", size.name, len(size.doc), n)
		const packed, short = "Accept-Encoding: gzip\r\n", "Accept: application/vnd.npm.install-v1+json\r\n"
		tag := "If-None-Match: " + resp.Header.Get("ETag") + "\r\n"
		b.Run(size.name+"/plain", func(b *testing.B) { hammer(b, host(plain.URL), "/p", "", 200) })
		b.Run(size.name+"/full", func(b *testing.B) { hammer(b, host(gate.URL), "/npm/p", "", 200) })
		b.Run(size.name+"/nginx-cache", func(b *testing.B) { hammerPeer(b, nginx, "/cached/p", "") })
		b.Run(size.name+"/plain-gzip", func(b *testing.B) { hammer(b, host(ready.URL), "/p", packed, 200) })
		b.Run(size.name+"/full-gzip", func(b *testing.B) { hammer(b, host(gate.URL), "/npm/p", packed, 200) })
		b.Run(size.name+"/abbreviated", func(b *testing.B) { hammer(b, host(gate.URL), "/npm/p", short, 200) })
		b.Run(size.name+"/abbreviated-gzip", func(b *testing.B) { hammer(b, host(gate.URL), "/npm/p", short+packed, 200) })
		b.Run(size.name+"/304", func(b *testing.B) { hammer(b, host(gate.URL), "/npm/p", tag, 304) })
		b.Run(size.name+"/verdaccio", func(b *testing.B) { hammerPeer(b, verdaccio, "/p", "") })
		b.Run(size.name+"/verdaccio-gzip", func(b *testing.B) { hammerPeer(b, verdaccio, "/p", packed) })
	}
}

// BenchmarkRefusal is what a refused client costs while an authority cools (C80).
func BenchmarkRefusal(b *testing.B) {
	up := fakenpm.New("http://unused.test")
	up.Always(http.StatusTooManyRequests, "Retry-After", "600")
	gate := benchGate(b, up)
	resp, err := http.Get(gate.URL + "/npm/p")
	if err != nil {
		b.Fatal(err)
	}
	resp.Body.Close()
	hammer(b, host(gate.URL), "/npm/p", "", 503)
}

// BenchmarkArtifact streams a 10 MB file through the gate, which hashes it, beside http.ServeContent and, where it is installed,
// nginx as a proxy, all from the same bytes in the same run.
func BenchmarkArtifact(b *testing.B) {
	file := bytes.Repeat([]byte("0123456789abcdef"), 10<<16)
	doc := fmt.Appendf(nil, `{"name":"p","versions":{"1.0.0":{"name":"p","version":"1.0.0","dist":{"tarball":"http://x.test/p/-/p-1.0.0.tgz","integrity":%q}}},"time":{"1.0.0":"1999-01-01T00:00:00Z"}}`,
		fakenpm.Integrity(file))
	up := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/-/") {
			_, _ = w.Write(doc)
			return
		}
		http.ServeContent(w, r, "p.tgz", time.Time{}, bytes.NewReader(file))
	})
	gate, kept := benchGate(b, up), benchGate(b, up, "artifacts.maxBytes", "1GiB")
	plain := httptest.NewServer(up)
	defer plain.Close()
	nginx := startNginx(b, host(plain.URL))
	b.Run("kept", func(b *testing.B) { hammer(b, host(kept.URL), "/npm/p/-/p-1.0.0.tgz", "", 200) })
	b.Run("plain", func(b *testing.B) { hammer(b, host(plain.URL), "/p/-/p-1.0.0.tgz", "", 200) })
	b.Run("gate", func(b *testing.B) { hammer(b, host(gate.URL), "/npm/p/-/p-1.0.0.tgz", "", 200) })
	b.Run("nginx-proxy", func(b *testing.B) { hammerPeer(b, nginx, "/p/-/p-1.0.0.tgz", "") })
}
