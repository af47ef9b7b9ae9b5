package app

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/ecosystem"
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
func benchServer(b testing.TB, registry http.Handler, settings ...string) *App {
	b.Helper()
	up := httptest.NewServer(registry)
	b.Cleanup(up.Close)
	flags := map[string]string{"mounts.npm.public": up.URL + "/", "cache.ttl": "24h", "dataDir": b.TempDir(), "artifacts.maxBytes": "0"}
	for i := 0; i+1 < len(settings); i += 2 {
		flags[settings[i]] = settings[i+1]
	}
	cfg, err := config.Load(b.Context(), config.Options{Flags: flags, Ecosystems: ecosystem.All().Known()})
	if err != nil {
		b.Fatal(err)
	}
	s, err := Build(BuildOptions{Context: b.Context(), Config: cfg, Ecosystems: ecosystem.All(), Logger: obs.Discard(), Version: "bench", Tracer: tracenoop.NewTracerProvider().Tracer("")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

// hammer sends one request over and over on kept connections, from two goroutines for each core,
// and checks the status.
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
