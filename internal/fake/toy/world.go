package toy

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/memnet"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// The hosts of a world. The files host serves what the public registry has.
const (
	PublicHost  = "registry.test"
	PrivateHost = "private.test"
	FilesHost   = "files.test"
	TargetHost  = "target.test"
)

// LongAgo is before any clock of a test: the virtual one starts in 2000.
var LongAgo = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

// World is a public and a private registry behind a real client and a network in memory.
type World struct {
	T               testing.TB
	Public, Private *fakenpm.Registry
	Client          *upstream.Client
	Metrics         *obs.Metrics
	Logger          *slog.Logger
	network         *memnet.Network
	servers         []*http.Server
	log             *text
}

// text is a log that may be read while it is written.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *text) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// NewWorld returns a world. Close it before a bubble of virtual time ends.
func NewWorld(t testing.TB) *World {
	t.Helper()
	w := &World{
		T: t, Public: fakenpm.New("http://" + PublicHost), Private: fakenpm.New("http://" + PrivateHost),
		Metrics: obs.NewMetrics(), network: memnet.New(), log: &text{},
	}
	w.Logger = slog.New(slog.NewTextHandler(w.log, nil))
	w.Client = upstream.New(upstream.Options{
		Table: cooldown.New(cooldown.Options{}), Metrics: w.Metrics, Logger: w.Logger, Tracer: tracenoop.NewTracerProvider().Tracer(""),
		UserAgent: "test", Dial: w.network.Dial,
	})
	w.Serve(PublicHost, w.Public)
	w.Serve(FilesHost, w.Public)
	w.Serve(PrivateHost, w.Private)
	return w
}

// Close ends the world.
func (w *World) Close() {
	w.Client.Close()
	for _, s := range w.servers {
		_ = s.Close()
	}
}

// Inside runs a test in a world in virtual time.
func Inside(t *testing.T, test func(*testing.T, *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := NewWorld(t)
		defer w.Close()
		test(t, w)
	})
}

// Serve answers for a host.
func (w *World) Serve(host string, h http.Handler) {
	srv := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	l := w.network.Listen(host + ":80")
	go func() { _ = srv.Serve(l) }()
	w.servers = append(w.servers, srv)
}

// Base is the address of a host.
func Base(host string) *url.URL { return &url.URL{Scheme: "http", Host: host, Path: "/"} }

// PublicUpstream is the public upstream at a host.
func (w *World) PublicUpstream(host string) *upstream.Public {
	w.T.Helper()
	p, err := w.Client.Public(Base(host), upstream.Encoded)
	if err != nil {
		w.T.Fatal(err)
	}
	return p
}

// PrivateUpstream is the private upstream.
func (w *World) PrivateUpstream() *upstream.Private {
	w.T.Helper()
	p, err := w.Client.Private(Base(PrivateHost), upstream.Encoded)
	if err != nil {
		w.T.Fatal(err)
	}
	return p
}

// Throttle lets the public registry answer 429 from now on.
func (w *World) Throttle(seconds int) {
	w.Public.Always(http.StatusTooManyRequests, "Retry-After", strconv.Itoa(seconds))
}

// Sent checks how many requests the public registry has seen.
func (w *World) Sent(n int) {
	w.T.Helper()
	if got := w.Public.Count(); got != n {
		w.T.Errorf("the public registry saw %d requests, want %d: %v", got, n, w.Public.Seen())
	}
}

// Logged reports whether the log holds a text.
func (w *World) Logged(what string) bool {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return strings.Contains(w.log.b.String(), what)
}

// Metric reads one sample, 0 when it is absent.
func (w *World) Metric(sample string) string {
	w.T.Helper()
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(w.Metrics.Gatherer(), promhttp.HandlerOpts{}).
		ServeHTTP(rec, httptest.NewRequestWithContext(w.T.Context(), http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(rec.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && name+"}" == sample {
			return value
		}
	}
	return "0"
}
