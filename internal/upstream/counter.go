package upstream

import (
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// counter stands below the cooldown, so it sees exactly the requests that are sent (R80), and opens a client span for each and
// for no refused one (R83).
type counter struct {
	base    http.RoundTripper
	metrics *obs.Metrics
	tracer  trace.Tracer
}

// RoundTrip sends one request and counts it once, from dialling. Go's transport may write a request again when a kept connection
// turns out to be dead; what was written before counts as a broken attempt, so that the sum never hides a request.
func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	authority, err := cooldown.AuthorityOf(req.URL)
	if err != nil {
		return nil, err
	}
	kind := kindOf(req.Context())
	ctx, span := c.tracer.Start(req.Context(), "upstream "+req.Method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("server.address", authority.Host), attribute.Int("server.port", int(authority.Port)),
			attribute.String("ecluse.kind", string(kind))))
	defer span.End()
	var writes atomic.Int32
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { writes.Add(1) }})
	resp, err := c.base.RoundTrip(req.WithContext(ctx))
	for range writes.Load() - 1 {
		c.metrics.PublicRequest(authority.String(), string(kind), "connection")
	}
	outcome := ""
	if err != nil {
		outcome = outcomeOf(req.Context(), err)
		span.SetStatus(codes.Error, outcome)
	} else {
		outcome = statusOutcome(resp, time.Now())
		span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	}
	c.metrics.PublicRequest(authority.String(), string(kind), outcome)
	return resp, err
}

// CloseIdleConnections drops idle connections of the transport below.
func (c *counter) CloseIdleConnections() {
	if idle, ok := c.base.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
}

// throttles reports whether an answer starts a cooldown (R1, R2).
func throttles(resp *http.Response, now time.Time) bool {
	return cooldown.Throttles(resp.StatusCode, retryafter.Parse(resp.Header.Values("Retry-After"), now))
}

// statusOutcome is the counter's word for an answer (R81). A redirect counts as a server error (R91).
func statusOutcome(resp *http.Response, now time.Time) string {
	switch s := resp.StatusCode; {
	case throttles(resp, now):
		return "throttled"
	case s == http.StatusNotModified:
		return "not_modified"
	case s >= 200 && s < 300:
		return "success"
	case s >= 400 && s < 500:
		return "client_error"
	}
	return "server_error"
}
