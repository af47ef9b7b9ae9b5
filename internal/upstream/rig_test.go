package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/fake/memnet"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// arrival is one request at the registry's socket, which waits for the test to answer it.
type arrival struct {
	path   string
	at     time.Time
	answer chan reply
}

type reply struct {
	status     int
	retryAfter string
}

// registry is a scripted registry that notes what arrives.
type registry struct {
	t      *testing.T
	public *upstream.Public
	table  *cooldown.Table
	log    *bytes.Buffer

	mu      sync.Mutex
	all     []*arrival
	waiting []*arrival
	most    int                 // at once
	auto    func(string) *reply // answers at once; nil leaves the request waiting
}

// inRegistry runs a test in virtual time against a registry behind net/http's real transport.
func inRegistry(t *testing.T, o upstream.Options, test func(*registry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &registry{t: t, log: &bytes.Buffer{}}
		network := memnet.New()
		srv := &http.Server{Handler: g, ReadHeaderTimeout: time.Hour}
		listener := network.Listen("registry.example:80")
		go func() { _ = srv.Serve(listener) }()
		o.Dial = network.Dial
		done := g.client(o)
		test(g)
		g.script(func(string) *reply { return &reply{status: 200} })
		synctest.Wait()
		done()
		_ = srv.Close()
	})
}

// client makes the upstream of the registry at its address.
func (g *registry) client(o upstream.Options) (done func()) {
	g.t.Helper()
	g.table = cooldown.New(cooldown.Options{Strict: func(m cooldown.Misuse) { panic(fmt.Sprint("permit ", m.Kind)) }})
	o.Table, o.Metrics, o.Tracer = g.table, obs.NewMetrics(), tracenoop.NewTracerProvider().Tracer("")
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(g.log, nil))
	}
	c := upstream.New(o)
	base, _ := url.Parse("http://registry.example/")
	var err error
	if g.public, err = c.Public(base, upstream.Encoded); err != nil {
		g.t.Fatal(err)
	}
	return c.Close
}

func (g *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &arrival{path: r.URL.Path, at: time.Now(), answer: make(chan reply, 1)}
	g.mu.Lock()
	g.all, g.waiting = append(g.all, a), append(g.waiting, a)
	g.most = max(g.most, len(g.waiting))
	auto := g.auto
	g.mu.Unlock()
	if auto != nil {
		if now := auto(a.path); now != nil {
			g.answer(a, *now)
		}
	}
	select {
	case now := <-a.answer:
		if now.retryAfter != "" {
			w.Header().Set("Retry-After", now.retryAfter)
		}
		w.WriteHeader(now.status)
	case <-r.Context().Done():
	}
}

func (g *registry) answer(a *arrival, r reply) {
	g.mu.Lock()
	g.waiting = slices.DeleteFunc(g.waiting, func(b *arrival) bool { return a == b })
	g.mu.Unlock()
	a.answer <- r
}

// script answers what waits and whatever comes.
func (g *registry) script(auto func(string) *reply) {
	g.mu.Lock()
	g.auto = auto
	waiting := slices.Clone(g.waiting)
	g.mu.Unlock()
	for _, a := range waiting {
		if r := auto(a.path); r != nil {
			g.answer(a, *r)
		}
	}
}

// answerFirst answers the oldest request that waits.
func (g *registry) answerFirst(status int, retryAfter string) {
	g.t.Helper()
	synctest.Wait()
	g.mu.Lock()
	if len(g.waiting) == 0 {
		g.mu.Unlock()
		g.t.Fatal("nothing has arrived")
	}
	a := g.waiting[0]
	g.mu.Unlock()
	g.answer(a, reply{status, retryAfter})
	synctest.Wait()
}

// answerLast answers the youngest request that waits.
func (g *registry) answerLast(status int) {
	g.t.Helper()
	synctest.Wait()
	g.mu.Lock()
	a := g.waiting[len(g.waiting)-1]
	g.mu.Unlock()
	g.answer(a, reply{status, ""})
	synctest.Wait()
}

// arrived wants so many requests since the start, and so many of them unanswered.
func (g *registry) arrived(all, waiting int) {
	g.t.Helper()
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.all) != all || len(g.waiting) != waiting {
		g.t.Fatalf("%d arrived, of which %d wait; want %d and %d", len(g.all), len(g.waiting), all, waiting)
	}
}

// outcome is what one caller heard.
type outcome struct {
	status    int
	throttled bool
	wait      time.Duration
	err       error
	at        time.Time
}

// do sends requests at the same time, and gives what became of them when they have all ended.
func (g *registry) do(ctx context.Context, paths ...string) func() []outcome {
	g.t.Helper()
	out := make([]outcome, len(paths))
	var all sync.WaitGroup
	for i, path := range paths {
		u, err := g.public.Under("/" + path)
		if err != nil {
			g.t.Fatal(err)
		}
		all.Go(func() {
			resp, err := g.public.Do(ctx, upstream.Request{Method: http.MethodGet, URL: u, Kind: upstream.Metadata})
			out[i] = outcome{err: err, at: time.Now()}
			if err == nil {
				out[i].status, out[i].throttled, out[i].wait = resp.StatusCode, resp.Throttled, resp.Wait
				_ = resp.Body.Close()
			}
		})
	}
	return func() []outcome { all.Wait(); return out }
}

func paths(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(prefix, i)
	}
	return all
}

// refusals counts the callers that were refused for a cooldown, and fails for those that heard
// anything but that or one of the statuses.
func refusals(t *testing.T, got []outcome, statuses ...int) (n int) {
	t.Helper()
	for _, o := range got {
		if _, ok := errors.AsType[*cooldown.Refusal](o.err); ok {
			n++
		} else if o.err != nil || !slices.Contains(statuses, o.status) {
			t.Errorf("%d %v", o.status, o.err)
		}
	}
	return n
}
