package upstream_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/upstream"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// R63: looking takes nothing away: an authority that closes and opens while thousands look keeps
// neither a permit nor the probe for them.
func TestLookingKeepsNoPermit(t *testing.T) {
	var mu sync.Mutex
	misuse := 0
	table := cooldown.New(cooldown.Options{Strict: func(cooldown.Misuse) { mu.Lock(); misuse++; mu.Unlock() }})
	c := upstream.New(upstream.Options{Table: table, Metrics: obs.NewMetrics(), Logger: obs.Discard(), Tracer: noop.NewTracerProvider().Tracer("")})
	defer c.Close()
	p, err := c.Public(parse(t, "http://127.0.0.1:9"), upstream.Encoded)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		defer close(done)
		flicker(t, table, p.Authority())
	})
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = p.Refused(t.Context(), time.Now())
				}
			}
		})
	}
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	if n := table.Unsettled(); n != 0 || misuse != 0 {
		t.Errorf("%d permits were kept, %d lost", n, misuse)
	}
}

// R80 R96: a request that met a connection which had died while idle is sent again, and both are
// counted, as the socket sees them.
func TestResendsAreCounted(t *testing.T) {
	var requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "fine")
	}))
	defer s.Close()
	metrics := obs.NewMetrics()
	c := upstream.New(upstream.Options{
		Table: cooldown.New(cooldown.Options{}), Metrics: metrics, Logger: obs.Discard(), Tracer: noop.NewTracerProvider().Tracer(""),
	})
	defer c.Close()
	p, err := c.Public(parse(t, s.URL), upstream.Encoded)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		resp, err := p.Do(t.Context(), upstream.Request{Method: http.MethodGet, URL: parse(t, s.URL), Kind: upstream.Metadata})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if got := outcomes(t, metrics); requests.Load() != 3 || got["success"] != 2 || got["connection"] != 1 || len(got) != 2 {
		t.Errorf("%d requests arrived, counted %v", requests.Load(), got)
	}
}

type tokenKey struct{}

// An exchange that has ended leaves nothing behind until a timer of its own runs out: not the
// answered one, not the refused one, of which there are thousands a second, not the one without a
// connection, and no write. Area memory.
func TestEndedExchangesLeaveNothing(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer busy.Close()
	c := upstream.New(upstream.Options{
		Table: cooldown.New(cooldown.Options{}), Metrics: obs.NewMetrics(), Logger: obs.Discard(), Tracer: noop.NewTracerProvider().Tracer(""),
	})
	defer c.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + gone.Addr().String()
	gone.Close()
	read := func(ctx context.Context, base string, kind upstream.Kind) error {
		p, err := c.Public(parse(t, base), upstream.Encoded)
		if err != nil {
			return err
		}
		resp, err := p.Do(ctx, upstream.Request{Method: http.MethodGet, URL: parse(t, base+"/x"), Kind: kind})
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Body.Close()
	}
	if err := read(t.Context(), busy.URL, upstream.Metadata); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		send  func(context.Context) error
		fails bool
	}{
		{"metadata", func(ctx context.Context) error { return read(ctx, s.URL, upstream.Metadata) }, false},
		{"artifact", func(ctx context.Context) error { return read(ctx, s.URL, upstream.Artifact) }, false},
		{"no connection", func(ctx context.Context) error { return read(ctx, nobody, upstream.Metadata) }, true},
		{"write", func(ctx context.Context) error { return writeTo(ctx, t, c, s.URL) }, false},
		{"write answered before its body is read", func(ctx context.Context) error { return writeLate(ctx, t, c, s.URL) }, false},
		{"failed write", func(ctx context.Context) error { return writeTo(ctx, t, c, nobody) }, true},
		{"refused", func(ctx context.Context) error { return read(ctx, busy.URL, upstream.Metadata) }, true},
	} {
		t.Run(test.name, func(t *testing.T) { collected(t, test.send, test.fails) })
	}
}

func writeTo(ctx context.Context, t *testing.T, c *upstream.Client, base string) error {
	target, err := c.Target(parse(t, base), upstream.Encoded)
	if err != nil {
		return err
	}
	resp, err := target.Write(ctx, upstream.Write{Method: http.MethodPut, URL: target.URL(), Body: strings.NewReader("x"), Length: 1})
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}

// writeLate sends a write whose answer comes, and is done with, before the body gives its first
// byte.
func writeLate(ctx context.Context, t *testing.T, c *upstream.Client, base string) error {
	target, err := c.Target(parse(t, base), upstream.Encoded)
	if err != nil {
		return err
	}
	body := lateBody{make(chan struct{}), make(chan struct{})}
	resp, err := target.Write(ctx, upstream.Write{Method: http.MethodPut, URL: target.URL(), Body: body, Length: 2})
	if err != nil {
		return err
	}
	<-body.asked
	_ = resp.Body.Close()
	close(body.release)
	return nil
}

// lateBody gives one byte when it is released, and never the second.
type lateBody struct{ asked, release chan struct{} }

func (b lateBody) Read(p []byte) (int, error) {
	select {
	case <-b.release:
		return 0, io.EOF
	default:
	}
	close(b.asked)
	<-b.release
	p[0] = 'x'
	return 1, nil
}

// collected sends requests whose contexts hold a value, and waits for the garbage collector to get
// the values. Idle connections may keep a few.
func collected(t *testing.T, send func(context.Context) error, fails bool) {
	t.Helper()
	const requests, kept = 20, 3
	var tokens []weak.Pointer[[64]byte]
	for range requests {
		token := new([64]byte)
		tokens = append(tokens, weak.Make(token))
		if err := send(context.WithValue(t.Context(), tokenKey{}, token)); (err != nil) != fails {
			t.Fatalf("ended with %v", err)
		}
	}
	limit := time.Now().Add(5 * time.Second) // the timers run for 30 s and more
	for left := requests; left > kept; {
		if time.Now().After(limit) {
			t.Fatalf("%d of %d requests are still held", left, requests)
		}
		runtime.GC()
		left = 0
		for _, w := range tokens {
			if w.Value() != nil {
				left++
			}
		}
	}
}

// flicker closes and opens an authority for a while.
func flicker(t *testing.T, table *cooldown.Table, a cooldown.Authority) {
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		now := time.Now()
		entry, refusal := table.Ask(t.Context(), now, a)
		if refusal != nil {
			t.Errorf("%v", refusal)
			return
		}
		entry.Finish(now, http.StatusTooManyRequests, retryafter.Parse([]string{"1"}, now))
		later := now.Add(time.Second)
		probe, refusal := table.Ask(t.Context(), later, a)
		if refusal != nil {
			t.Errorf("%v: somebody else has the probe", refusal)
			return
		}
		probe.Finish(later, http.StatusOK, retryafter.Parse([]string{"1"}, now))
	}
}
