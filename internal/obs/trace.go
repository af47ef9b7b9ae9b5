package obs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// TracerName is the instrumentation scope of every span of Écluse.
const TracerName = "github.com/ecluse-gate/ecluse"

// NewTracerProvider returns a provider that sends spans to an OTLP/HTTP endpoint
// ("http://127.0.0.1:4318"), or one that drops them when the endpoint is empty. Stop flushes and
// ends it. What the library has to say goes to the logger.
func NewTracerProvider(ctx context.Context, endpoint string, l *slog.Logger) (tp trace.TracerProvider, stop func(context.Context) error, err error) {
	if endpoint == "" {
		return noop.NewTracerProvider(), func(context.Context) error { return nil }, nil
	}
	otel.SetErrorHandler(&traceErrors{logger: l})
	exp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("start traces to %s: %v", endpoint, err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exp))
	return p, p.Shutdown, nil
}

// traceErrors logs what goes wrong with traces, now and then.
type traceErrors struct {
	logger *slog.Logger
	mu     sync.Mutex // guards warned
	warned time.Time
}

// Handle implements otel.ErrorHandler.
func (t *traceErrors) Handle(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.warned) >= quietFor {
		t.warned = now
		t.logger.Warn("traces could not be exported", Err(err))
	}
}
