package cooldownhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
)

const registry = "https://registry.example/left-pad"

// rig is a transport over a scripted upstream, with what its hooks heard. In a synctest bubble its
// clock is the bubble's.
type rig struct {
	t           *testing.T
	table       *cooldown.Table
	transport   *cooldownhttp.Transport
	client      *http.Client
	mu          sync.Mutex
	sent        []*http.Request
	transitions []cooldown.Transition
	attempts    []cooldownhttp.Attempt
}

// newRig answers every request by the given function.
func newRig(t *testing.T, o cooldown.Options, upstream func(*http.Request) (*http.Response, error)) *rig {
	t.Helper()
	g := &rig{t: t}
	o.Strict = func(m cooldown.Misuse) { panic(fmt.Sprintf("permit %v: %+v", m.Kind, m)) }
	g.table = cooldown.New(o)
	g.transport = &cooldownhttp.Transport{
		Table: g.table,
		Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			g.mu.Lock()
			g.sent = append(g.sent, r)
			g.mu.Unlock()
			return upstream(r)
		}),
		OnTransition: func(_ context.Context, tr cooldown.Transition) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.transitions = append(g.transitions, tr)
		},
		OnAttempt: func(_ context.Context, a cooldownhttp.Attempt) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.attempts = append(g.attempts, a)
		},
	}
	g.client = &http.Client{Transport: g.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		if n := g.table.Unsettled(); n != 0 && !t.Failed() {
			t.Errorf("%d permits were not settled", n)
		}
	})
	return g
}

// reply is a response with the given status, Retry-After lines and a small body.
func reply(r *http.Request, status int, retryAfter ...string) *http.Response {
	header := http.Header{"X-Upstream": {"yes"}}
	if retryAfter != nil {
		header["Retry-After"] = retryAfter
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader("upstream body")), ContentLength: 13, Request: r,
	}
}

// script answers one request after the other with the given statuses, and then with the last for
// ever. "429:5" has a Retry-After.
func script(statuses ...string) func(*http.Request) (*http.Response, error) {
	var mu sync.Mutex
	next := 0
	return func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		status, hint, hinted := strings.Cut(statuses[min(next, len(statuses)-1)], ":")
		next++
		var code int
		if _, err := fmt.Sscan(status, &code); err != nil {
			return nil, errors.New(status)
		}
		if hinted {
			return reply(r, code, hint), nil
		}
		return reply(r, code), nil
	}
}

func (g *rig) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sent)
}

// get wants a response of this status, and closes its body.
func (g *rig) get(url string, status int) {
	g.t.Helper()
	response, err := g.client.Get(url)
	if err != nil {
		g.t.Fatalf("%v, want %d", err, status)
	}
	response.Body.Close()
	if response.StatusCode != status {
		g.t.Fatalf("%d, want %d", response.StatusCode, status)
	}
}

// refused wants a refusal, through the client.
func (g *rig) refused(url string, wait time.Duration, probing bool) {
	g.t.Helper()
	response, err := g.client.Get(url)
	if err == nil {
		response.Body.Close()
		g.t.Fatalf("%d, want a refusal", response.StatusCode)
	}
	refusal, ok := cooldown.AsRefusal(err)
	if !ok || refusal.Wait != wait || refusal.Probing != probing {
		g.t.Fatalf("%v, want a refusal for %v", err, wait)
	}
}

// outcomes lists what the attempt hook heard.
func (g *rig) outcomes() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []string
	for _, a := range g.attempts {
		all = append(all, a.Outcome())
	}
	return strings.Join(all, " ")
}

// heard lists the kinds of transitions.
func (g *rig) heard() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []string
	for _, tr := range g.transitions {
		all = append(all, tr.Kind.String())
	}
	return strings.Join(all, " ")
}

func (g *rig) phase() cooldown.Phase {
	g.t.Helper()
	states := g.table.Snapshot(time.Now())
	if len(states) != 1 {
		g.t.Fatalf("%+v, want one authority", states)
	}
	return states[0].Phase
}

func request(t *testing.T, ctx context.Context, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
