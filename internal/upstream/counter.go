package upstream

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
)

// attempt counts one request that was really sent (R80), and opens a client span for it; none for a
// refused one (R83).
func (c *Client) attempt(ctx context.Context, a cooldownhttp.Attempt) {
	kind, outcome := string(kindOf(ctx)), a.Outcome()
	_, span := c.opts.Tracer.Start(ctx, "upstream "+a.Method, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(a.Began),
		trace.WithAttributes(attribute.String("server.address", a.Authority.Host), attribute.Int("server.port", int(a.Authority.Port)),
			attribute.String("ecluse.kind", kind)))
	if a.Err != nil {
		span.SetStatus(codes.Error, outcome)
	} else {
		span.SetAttributes(attribute.Int("http.response.status_code", a.Status))
	}
	span.End(trace.WithTimestamp(a.Ended))
	c.opts.Metrics.PublicRequest(a.Authority.String(), kind, outcome)
}
