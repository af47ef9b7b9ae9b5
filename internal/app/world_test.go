package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ecluse-gate/ecluse/internal/admin"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/ecosystem"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/fake/memnet"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// world is a gate between a client and two registries, in virtual time.
type world struct {
	t        *testing.T
	public   *fakenpm.Registry
	private  *fakenpm.Registry
	pypi     *fakepypi.Registry
	pypiOwn  *fakepypi.Registry // the private index
	network  *memnet.Network
	app      *App
	admin    http.Handler
	client   *http.Client
	log      *syncBuffer
	spans    *tracetest.SpanRecorder
	dataDir  string
	around   func(store string) durable.Around // see BuildOptions
	upstream *http.Server
}

const (
	publicHost  = "registry.test"
	privateHost = "private.test"
	indexHost   = "index.test"
	filesHost   = "files.test"
	ownHost     = "own.test" // the private index
	gateHost    = "gate.test"
)

var longAgo = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // the virtual clock starts in 2000

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// inWorld runs a test in a bubble of virtual time. The YAML is added to a minimal configuration;
// with "private" in it the mount has a private upstream.
func inWorld(t *testing.T, yaml string, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, yaml)
		test(w)
		w.close()
	})
}

const withPrivate = "private"

func newWorld(t *testing.T, yaml string) *world {
	t.Helper()
	w := &world{
		t: t, public: fakenpm.New("http://" + publicHost), private: fakenpm.New("http://" + privateHost), network: memnet.New(),
		log: &syncBuffer{}, spans: tracetest.NewSpanRecorder(), dataDir: t.TempDir(),
	}
	w.pypi, w.pypiOwn = fakepypi.New("http://"+filesHost), fakepypi.New("http://"+ownHost)
	w.serve(indexHost+":80", w.pypi.Index)
	w.serve(filesHost+":80", w.pypi.Files)
	w.pypiOwn.RelativeLinks = true
	w.serve(ownHost+":80", w.pypiOwn.Index)
	w.serve(publicHost+":80", w.public)
	w.serve(privateHost+":80", w.private)
	w.start(yaml)
	w.client = &http.Client{
		Transport:     &http.Transport{DialContext: w.network.Dial, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return w
}

// start builds a gate and serves it.
func (w *world) start(yaml string) {
	w.t.Helper()
	cfg := w.config(yaml)
	logger, err := obs.NewLogger(w.log, "json", "info", false)
	if err != nil {
		w.t.Fatal(err)
	}
	w.app, err = Build(BuildOptions{
		Context: w.t.Context(), Config: cfg, Ecosystems: ecosystem.All(), Logger: logger, Version: "test", Dial: w.network.Dial, Around: w.around,
		Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans)).Tracer(obs.TracerName),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.admin = w.app.Admin()
	w.serve(gateHost+":80", w.app.Handler())
}

// config reads a configuration as a start would. A first line that begins with "private" gives the
// npm mount a private upstream, one that begins with a comma adds keys to it, one that begins with
// "pypi" adds keys to the PyPI mount, and one that begins with "mounts:" is all of both. Other
// files that it names are really there.
func (w *world) config(yaml string) *config.Config {
	w.t.Helper()
	npm, pypi := "public: 'http://"+publicHost+"/'", "public: 'http://"+indexHost+"/simple/', files: ['http://"+filesHost+"']"
	first, rest, more := strings.Cut(yaml, "\n")
	extra, isPyPI := strings.CutPrefix(first, "pypi")
	private, isPrivate := strings.CutPrefix(first, withPrivate)
	switch {
	case more && isPyPI && strings.HasPrefix(extra, ", public"):
		pypi = extra[2:]
	case more && isPyPI:
		pypi += extra
	case more && isPrivate:
		npm += ", private: 'http://" + privateHost + "/'" + private
	case more && strings.HasPrefix(first, ", public"):
		npm = first[2:]
	case more && strings.HasPrefix(first, ","):
		npm += first
	default:
		rest = yaml
	}
	// most tests look at what goes out, which the store would spare
	if !strings.Contains(rest, "artifacts:") {
		rest += "\nartifacts: {maxBytes: 0}"
	}
	if !strings.Contains(rest, "cache:") { // nor do they start twice
		rest += "\ncache: {diskBytes: 0}"
	}
	mounts := fmt.Sprintf("mounts: {npm: {%s}, pypi: {%s}}", npm, pypi)
	if strings.HasPrefix(yaml, "mounts:") {
		mounts = ""
	}
	text := fmt.Sprintf("dataDir: '"+w.dataDir+"'\n%s\negress: {allowHTTP: [%s]}\n%s", mounts,
		strings.Join([]string{publicHost, privateHost, indexHost, filesHost, ownHost, houseHost}, ", "), rest)
	cfg, err := config.Load(w.t.Context(), config.Options{
		File: "test.yaml", Ecosystems: ecosystem.All().Known(), ReadFile: func(name string) ([]byte, error) {
			if name != "test.yaml" {
				return os.ReadFile(name)
			}
			return []byte(text), nil
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return cfg
}

func (w *world) serve(addr string, h http.Handler) {
	srv := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	l := w.network.Listen(addr)
	go srv.Serve(l)
	w.t.Cleanup(func() { srv.Close() })
	if addr == publicHost+":80" {
		w.upstream = srv
	}
}

func (w *world) close() {
	w.client.CloseIdleConnections()
	w.app.Close()
	w.upstream.Close()
	synctest.Wait()
}

// answer is a whole response.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // of the body
}

// do sends one request; header holds names and values in turn.
func (w *world) do(method, path string, header ...string) answer {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+gateHost+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), err}
}

func (w *world) get(path string, header ...string) answer {
	w.t.Helper()
	return w.do(http.MethodGet, path, header...)
}

// want checks status and Retry-After; wait below zero means that the field must be absent.
func (w *world) want(a answer, status int, wait int) {
	w.t.Helper()
	if a.status != status {
		w.t.Errorf("status = %d (%v), want %d; body %.200s", a.status, a.err, status, a.body)
	}
	want := ""
	if wait >= 0 {
		want = strconv.Itoa(wait)
	}
	if got := a.header.Get("Retry-After"); got != want {
		w.t.Errorf("Retry-After = %q, want %q", got, want)
	}
}

// sent checks how many requests the public upstream has seen.
func (w *world) sent(n int) {
	w.t.Helper()
	if got := w.public.Count(); got != n {
		w.t.Errorf("the public upstream saw %d requests, want %d: %v", got, n, w.public.Seen())
	}
}

// versions are the versions that a listing body holds.
func (w *world) versions(a answer) map[string]json.RawMessage {
	w.t.Helper()
	var doc struct {
		Versions map[string]json.RawMessage `json:"versions"`
	}
	if err := json.Unmarshal([]byte(a.body), &doc); err != nil {
		w.t.Fatalf("listing: %v: %.200s", err, a.body)
	}
	return doc.Versions
}

// metric reads one sample from the exposition, 0 when it is absent.
func (w *world) metric(sample string) float64 {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://127.0.0.1:4874/metrics", nil))
	for line := range strings.Lines(rec.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && name+"}" == sample {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			return f
		}
	}
	return 0
}

// authorities reads the status API.
func (w *world) authorities() []admin.Authority {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://127.0.0.1:4874/api/v1/authorities", nil))
	var out []admin.Authority
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// lines are the log lines with a message.
func (w *world) lines(msg string) []map[string]any {
	w.t.Helper()
	var out []map[string]any
	for line := range strings.Lines(w.log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			w.t.Fatalf("log line %q: %v", line, err)
		}
		if m["msg"] == msg {
			out = append(out, m)
		}
	}
	return out
}
