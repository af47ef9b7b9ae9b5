package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ecluse-gate/ecluse/internal/gate/gatetest"
)

// world is a server between a client and two gates, in virtual time.
type world struct {
	*gatetest.World
	server *Server
	spans  *tracetest.SpanRecorder
}

const fileA = "/npm/a/-/a-1.0.0.tgz"

var longAgo = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // the virtual clock starts in 2000

// inWorld runs a test with a server of the options given; gates and what they report to are added.
func inWorld(t *testing.T, o Options, test func(*world)) {
	t.Helper()
	o.SpoolDir = t.TempDir() + "/spool"
	gatetest.Run(t, gatetest.Options{}, func(inner *gatetest.World) {
		w := &world{World: inner, spans: tracetest.NewSpanRecorder()}
		o.Mounts, o.Metrics, o.Logger = w.Mounts, w.Metrics, w.Logger
		o.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans)).Tracer("")
		w.server = New(o)
		w.Serve(w.server.Handler())
		test(w)
	})
}

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

func request(ctx context.Context, path string) *http.Request {
	return httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
}
