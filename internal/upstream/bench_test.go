package upstream_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/fake/memnet"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// bench is a client and one upstream, public and private at the same address, in virtual time.
type bench struct {
	t       *testing.T
	network *memnet.Network
	metrics *obs.Metrics
	public  *upstream.Public
	private *upstream.Private
	target  *upstream.Target

	mu      sync.Mutex
	handler http.HandlerFunc
	dial    upstream.DialFunc
}

const benchHost = "registry.test"

// onBench runs a test in a bubble of virtual time. The handler answers until answer sets another.
func onBench(t *testing.T, o upstream.Options, handler http.HandlerFunc, test func(*bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, network: memnet.New(), metrics: obs.NewMetrics(), handler: handler}
		b.dial = b.network.Dial
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b.mu.Lock()
			h := b.handler
			b.mu.Unlock()
			h(w, r)
		}), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		go srv.Serve(b.network.Listen(benchHost + ":80"))
		o.Table, o.Metrics, o.Logger, o.Tracer = cooldown.New(cooldown.Options{}), b.metrics, obs.Discard(), noop.NewTracerProvider().Tracer("")
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			b.mu.Lock()
			dial := b.dial
			b.mu.Unlock()
			return dial(ctx, network, addr)
		}
		c := upstream.New(o)
		base := parse(t, "http://"+benchHost)
		var err1, err2, err3 error
		b.public, err1 = c.Public(base, upstream.Encoded)
		b.private, err2 = c.Private(base, upstream.Encoded)
		b.target, err3 = c.Target(base, upstream.Encoded)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		test(b)
		c.Close()
		srv.Close()
		synctest.Wait()
	})
}

func (b *bench) answer(h http.HandlerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handler = h
}

// hang makes every dial hang until its caller gives up.
func (b *bench) hang() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
}

func (b *bench) request(kind upstream.Kind) upstream.Request {
	return upstream.Request{Method: http.MethodGet, URL: parse(b.t, "http://"+benchHost+"/x"), Kind: kind}
}

// body sends a public read and reads its body to the end, with a pause before each piece.
func (b *bench) body(ctx context.Context, kind upstream.Kind, pause time.Duration) (string, error) {
	resp, err := b.public.Do(ctx, b.request(kind))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var out strings.Builder
	piece := make([]byte, 8<<10)
	for {
		time.Sleep(pause)
		n, err := resp.Body.Read(piece)
		out.Write(piece[:n])
		if err == io.EOF {
			return out.String(), nil
		}
		if err != nil {
			return out.String(), err
		}
	}
}

// outcomes counts the attempts by outcome, as the metric tells.
func (b *bench) outcomes() map[string]int { return outcomes(b.t, b.metrics) }

func outcomes(t *testing.T, m *obs.Metrics) map[string]int {
	t.Helper()
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, f := range families {
		if f.GetName() != "ecluse_public_requests_total" {
			continue
		}
		for _, sample := range f.GetMetric() {
			for _, label := range sample.GetLabel() {
				if label.GetName() == "outcome" {
					out[label.GetValue()] += int(sample.GetCounter().GetValue())
				}
			}
		}
	}
	return out
}

// wantFailure checks what a read ended with and when.
func (b *bench) wantFailure(what string, err error, outcome string, took, want time.Duration) {
	b.t.Helper()
	if failure, ok := errors.AsType[*upstream.Failure](err); !ok || failure.Outcome != outcome {
		b.t.Errorf("%s ended with %v, want %s", what, err, outcome)
	}
	if took < want || took > want+time.Second {
		b.t.Errorf("%s ended after %v, want %v", what, took, want)
	}
}

// silent never answers.
func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// trickle sends a body of n bytes, one at a time, with a pause before each.
func trickle(n int, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.Flush()
		for range n {
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
			_, _ = io.WriteString(w, "x")
			_ = rc.Flush()
		}
	}
}
