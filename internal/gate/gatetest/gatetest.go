// Package gatetest makes two gates in front of scripted registries, in a network of memory and
// under virtual time, for tests of what stands in front of gates.
package gatetest

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/fake/memnet"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/npm/npmserving"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/pypi/pypiserving"
	"github.com/ecluse-gate/ecluse/internal/serving"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// Hosts of the world.
const (
	publicHost = "registry.test"
	indexHost  = "index.test"
	filesHost  = "files.test"
	targetHost = "house.test"
	gateHost   = "gate.test"
)

// World is two gates and all that they reach. Public versions must be a week old, and the packages
// @acme/* and acme-tool are first-party and published to Target.
type World struct {
	T         *testing.T // of the bubble
	Public    *fakenpm.Registry
	Index     *fakepypi.Registry
	Target    http.HandlerFunc // nil: there is nobody
	NPM       *gate.Gate
	PyPI      *gate.Gate
	Mounts    serving.Mounts // of both
	Documents *documents.Memory
	Table     *cooldown.Table
	Metrics   *obs.Metrics
	Logger    *slog.Logger
	Tracer    trace.Tracer

	network *memnet.Network
	client  *http.Client
}

// Options are what the gates differ in.
type Options struct {
	// ReadOnly leaves the place of publication away.
	ReadOnly bool
}

// Run runs a test in a bubble of virtual time.
func Run(t *testing.T, o Options, test func(*World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &World{
			T: t, Public: fakenpm.New("http://" + publicHost), Index: fakepypi.New("http://" + filesHost),
			Documents: documents.NewMemory(64 << 20), Table: cooldown.New(cooldown.Options{}), Metrics: obs.NewMetrics(),
			Logger: obs.Discard(), Tracer: noop.NewTracerProvider().Tracer(""), network: memnet.New(),
		}
		w.client = &http.Client{
			Transport:     &http.Transport{DialContext: w.network.Dial, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		w.listen(publicHost, w.Public)
		w.listen(indexHost, w.Index.Index)
		w.listen(filesHost, w.Index.Files)
		w.listen(targetHost, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.Target(rw, r) }))
		client := w.gates(o)
		test(w)
		w.client.CloseIdleConnections()
		client.Close()
		w.Documents.Close()
		synctest.Wait()
	})
}

// gates makes the gates, and returns what carries their requests.
func (w *World) gates(o Options) *upstream.Client {
	w.T.Helper()
	var inside []cooldown.Authority
	for _, host := range []string{publicHost, indexHost, filesHost, targetHost} {
		inside = append(inside, must(cooldown.ParseAuthority(host, 80)))
	}
	client := upstream.New(upstream.Options{
		Table: w.Table, Metrics: w.Metrics, Logger: w.Logger, Tracer: w.Tracer, UserAgent: "gatetest",
		Dial: w.network.Dial, Egress: upstream.Egress{Internal: inside},
	})
	node, python := npmserving.Ecosystem(), pypiserving.Ecosystem()
	npm := w.common(node.Protocol)
	npm.Public = must(client.Public(must(url.Parse("http://"+publicHost+"/")), upstream.Encoded))
	pypi := w.common(python.Protocol)
	pypi.Public = must(client.Public(must(url.Parse("http://"+indexHost+"/simple/")), upstream.Encoded))
	pypi.Files = append(pypi.Files, pypi.Public, must(client.Public(must(url.Parse("http://"+filesHost)), upstream.Encoded)))
	if !o.ReadOnly {
		npm.Publish = must(client.Target(must(url.Parse("http://"+targetHost+"/")), upstream.Encoded))
		pypi.Publish = must(client.Target(must(url.Parse("http://"+targetHost+"/legacy/")), upstream.Encoded))
	}
	w.NPM, w.PyPI = gate.New(npm), gate.New(pypi)
	w.Mounts = serving.Mounts{{Ecosystem: node, Gate: w.NPM}, {Ecosystem: python, Gate: w.PyPI}}
	return client
}

// common is what both gates share.
func (w *World) common(e gate.Ecosystem) gate.Options {
	return gate.Options{
		Ecosystem: e, Memory: w.Documents, TTL: time.Minute, Metrics: w.Metrics, Logger: w.Logger,
		FirstParty: []policy.Pattern{must(policy.ParsePattern("npm:@acme/*", ecosystemtest.All())), must(policy.ParsePattern("pypi:acme-tool", ecosystemtest.All()))},
		Policy:     must(policy.New([]policy.Spec{{Name: "min-age", Type: policy.AllowIfOlderThan, Age: 7 * 24 * time.Hour}}, ecosystemtest.All())),
	}
}

// Serve lets a handler answer the client.
func (w *World) Serve(h http.Handler) { w.listen(gateHost, h) }

func (w *World) listen(host string, h http.Handler) {
	srv := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	l := w.network.Listen(host + ":80")
	go func() { _ = srv.Serve(l) }() // until it is closed
	w.T.Cleanup(func() { _ = srv.Close() })
}

// Dial connects to what Serve serves.
func (w *World) Dial() net.Conn {
	w.T.Helper()
	c, err := w.network.Dial(w.T.Context(), "tcp", gateHost+":80")
	if err != nil {
		w.T.Fatal(err)
	}
	return c
}

// Send sends a request, and returns the answer before its body is read; header holds names and
// values in turn.
func (w *World) Send(method, path, body string, header ...string) *http.Response {
	w.T.Helper()
	req, err := http.NewRequestWithContext(w.T.Context(), method, "http://"+gateHost+path, strings.NewReader(body))
	if err != nil {
		w.T.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	return resp
}

// Answer is a whole response.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	Err    error // of the body
}

// Do sends a request and reads the whole answer.
func (w *World) Do(method, path, body string, header ...string) Answer {
	w.T.Helper()
	resp := w.Send(method, path, body, header...)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, string(text), err}
}

// Get is Do for GET.
func (w *World) Get(path string, header ...string) Answer {
	w.T.Helper()
	return w.Do(http.MethodGet, path, "", header...)
}

// Want checks status and Retry-After; wait below zero means that the field must be absent.
func (w *World) Want(a Answer, status, wait int) {
	w.T.Helper()
	want := ""
	if wait >= 0 {
		want = strconv.Itoa(wait)
	}
	if got := a.Header.Get("Retry-After"); a.Status != status || got != want {
		w.T.Errorf("status %d, Retry-After %q; want %d, %q; body %.200s", a.Status, got, status, want, a.Body)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
