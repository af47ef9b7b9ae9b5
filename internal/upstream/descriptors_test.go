package upstream_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// A connection that cannot be opened for want of a file descriptor is told as that.
func TestDialWithoutADescriptor(t *testing.T) {
	var log strings.Builder
	c := upstream.New(upstream.Options{
		Table: cooldown.New(cooldown.Options{}), Metrics: obs.NewMetrics(), Logger: slog.New(slog.NewTextHandler(&log, nil)), Tracer: noop.NewTracerProvider().Tracer(""),
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: syscall.EMFILE}
		},
	})
	defer c.Close()
	u := &url.URL{Scheme: "https", Host: "registry.test", Path: "/"}
	public, err := c.Public(u, upstream.Encoded)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if resp, err := public.Do(t.Context(), upstream.Request{Method: http.MethodGet, URL: u, Kind: upstream.Metadata}); err == nil {
			resp.Body.Close()
			t.Error("it was sent")
		}
	}
	if n := strings.Count(log.String(), "out of file descriptors"); n != 1 {
		t.Errorf("it is said %d times: %s", n, log.String())
	}
}
