package obs

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// TracerName is the instrumentation scope of every span of Écluse.
const TracerName = "github.com/ecluse-gate/ecluse"

// NewTracerProvider returns a provider that sends spans to an OTLP/HTTP endpoint
// ("http://127.0.0.1:4318"), or one that drops them when the endpoint is empty. Stop flushes and
// ends it.
func NewTracerProvider(ctx context.Context, endpoint string) (tp trace.TracerProvider, stop func(context.Context) error, err error) {
	if endpoint == "" {
		return noop.NewTracerProvider(), func(context.Context) error { return nil }, nil
	}
	exp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("start traces to %s: %v", endpoint, err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exp))
	return p, p.Shutdown, nil
}
