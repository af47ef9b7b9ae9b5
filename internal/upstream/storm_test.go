package upstream_test

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/fake/storm"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// realClient is a client over net/http's transport and real sockets.
func realClient(t *testing.T, roots *x509.CertPool) *upstream.Client {
	t.Helper()
	c := upstream.New(upstream.Options{
		Table: cooldown.New(cooldown.Options{}), Metrics: obs.NewMetrics(), Logger: obs.Discard(), RootCAs: roots,
		Tracer: tracenoop.NewTracerProvider().Tracer(""),
	})
	t.Cleanup(c.Close)
	return c
}

// get is one read of a whole answer.
func get(t *testing.T, c *upstream.Client) storm.Get {
	t.Helper()
	return func(ctx context.Context, address string) (int, error) {
		u, err := url.Parse(address)
		if err != nil {
			return 0, err
		}
		p, err := c.Public(u, upstream.Encoded)
		if err != nil {
			return 0, err
		}
		resp, err := p.Do(ctx, upstream.Request{Method: http.MethodGet, URL: u, Kind: upstream.Metadata})
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return resp.StatusCode, err
	}
}

// R34, R95, R96, R97: a thousand clients on real sockets. No request arrives during the cooldown,
// one is the probe, and no client hears of trouble while there is none, whatever the connections go
// through.
func TestThousandClients(t *testing.T) {
	for name, w := range map[string]storm.Weather{
		"dying connections": {Dying: true}, "slow TLS": {TLS: true, Handshake: 100 * time.Millisecond}, "HTTP2 with GOAWAY": {HTTP2: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storm.Run(t, w, func(roots *x509.CertPool) storm.Get {
				return get(t, realClient(t, roots))
			})
		})
	}
}

// R34, R97: 500 cold clients of a server that throttles all: 16 requests arrive.
func TestColdClientsOnRealSockets(t *testing.T) {
	var arrived atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer srv.Close()
	ask := get(t, realClient(t, nil))
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			status, err := ask(t.Context(), srv.URL)
			if _, refused := cooldown.AsRefusal(err); !refused && status != http.StatusTooManyRequests {
				t.Errorf("%d %v", status, err)
			}
		})
	}
	all.Wait()
	if n := arrived.Load(); n > 16 {
		t.Errorf("%d arrived, want 16 at most", n)
	}
}

// An answer of any status with a small body gives its connection back, read or not; a large one
// that nobody wants does not.
func TestConnectionsAreUsedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		most    int64
	}{
		"404 with a length": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "not found", http.StatusNotFound)
		}, 2},
		"404 in chunks": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			w.(http.Flusher).Flush()
			_, _ = w.Write([]byte("not found"))
		}, 2},
		"large": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(8<<20))
			_, _ = w.Write(make([]byte, 8<<20))
		}, 60},
	} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int64
			srv := httptest.NewUnstartedServer(c.handler)
			srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					conns.Add(1)
				}
			}
			srv.Start()
			defer srv.Close()
			client := realClient(t, nil)
			u, _ := url.Parse(srv.URL)
			p, err := client.Public(u, upstream.Encoded)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			for range 60 {
				resp, err := p.Do(t.Context(), upstream.Request{Method: http.MethodGet, URL: u, Kind: upstream.Artifact})
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			}
			if n := conns.Load(); n > c.most || c.most == 60 && n < 60 {
				t.Errorf("%d connections for 60 requests in %v", n, time.Since(begin))
			}
		})
	}
}
