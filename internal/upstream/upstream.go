// Package upstream is every exchange with a registry: public reads, which a cooldown can refuse,
// and private reads, which it never concerns. It counts public attempts where they are really sent.
// It knows no JSON and no package names. Of public redirects it follows those of metadata within
// their authority, once. A read is repeated in two cases only: its connection had died while idle,
// or Hold covers the pause that its answer asks for.
package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// Kind says what a read is for (R81).
type Kind string

// The kinds of reads.
const (
	Metadata  Kind = "metadata"
	Artifact  Kind = "artifact"
	Companion Kind = "companion"
)

// Time limits of one exchange. A probe is bounded by them (R72).
const (
	dialTimeout     = 10 * time.Second
	headerTimeout   = 30 * time.Second
	metadataTimeout = 90 * time.Second // a whole metadata exchange, body included
	stallTimeout    = 30 * time.Second // an artifact's body without a single byte
)

// maxHolders bounds how many requests may wait for a recovery at once (R89).
const maxHolders = 4096

// Options make a Client.
type Options struct {
	Table   *cooldown.Table
	Metrics *obs.Metrics
	Logger  *slog.Logger
	Tracer  trace.Tracer
	// UserAgent names the gate to upstreams, which publish no limits but ask callers to identify
	// themselves (C81).
	UserAgent string
	// RootCAs are trusted beside TLS's usual rules; nil means the system's.
	RootCAs *x509.CertPool
	// Budgets bound the rate of requests to some authorities; the others have no such bound (R90).
	Budgets map[cooldown.Authority]Budget
	// Hold is how long a public read may wait for the end of a cooldown instead of being refused; 0
	// is off (R89).
	Hold time.Duration
	// Egress says where connections to public hosts may end.
	Egress Egress
	// Proxy is asked which proxy leads to an address, nil for none; nil means that there are none.
	Proxy func(*url.URL) (*url.URL, error)
	// Dial replaces the network in tests; nil means the network, under Egress.
	Dial DialFunc
}

// DialFunc opens a connection, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Client is the one way out. Its public side shares one cooldown table (R29). It is safe for
// concurrent use.
type Client struct {
	opts    Options
	guard   *guard
	public  *cooldownhttp.Transport // cooled and counted
	outside http.RoundTripper       // where a private upstream redirects to
	private http.RoundTripper
	holders chan struct{}

	mu    sync.Mutex
	lines map[cooldown.Authority]*line // of the public upstreams
}

// New returns a client. Close it to drop idle connections.
func New(o Options) *Client {
	c := &Client{opts: o, guard: newGuard(o.Egress), holders: make(chan struct{}, maxHolders), lines: map[cooldown.Authority]*line{}}
	c.private = c.transport(c.guard.dialer.DialContext)
	c.outside = c.guarded(newGuard(o.Egress))
	base := c.guarded(c.guard)
	base.DialContext = cooldownhttp.DialContext(base.DialContext)
	c.public = &cooldownhttp.Transport{
		Base:         base,
		Table:        o.Table,
		OnTransition: c.transition,
		OnAttempt:    c.attempt,
	}
	return c
}

func (c *Client) transport(dial DialFunc) *http.Transport {
	if c.opts.Dial != nil {
		dial = c.opts.Dial
	}
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			c.opts.Metrics.Exhausted(c.opts.Logger, err)
			return conn, err
		},
		TLSClientConfig:        &tls.Config{RootCAs: c.opts.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    64,
		MaxResponseHeaderBytes: 64 << 10,
		// encodings are asked for, bounded and checked by payload.Read
		DisableCompression: true,
		ForceAttemptHTTP2:  c.opts.Dial == nil,
	}
	if c.opts.Proxy != nil {
		t.Proxy = func(r *http.Request) (*url.URL, error) { return c.opts.Proxy(r.URL) }
	}
	return t
}

// guarded is a transport to public hosts, whose connections and tunnels g judges.
func (c *Client) guarded(g *guard) *http.Transport {
	t := c.transport(g.dial)
	if c.opts.Proxy != nil {
		g.through(c.opts.Proxy)
		t.Proxy = func(r *http.Request) (*url.URL, error) { return g.proxy(r, c.opts.Proxy) }
		t.GetProxyConnectHeader = func(ctx context.Context, _ *url.URL, target string) (http.Header, error) {
			return nil, g.judge(ctx, target)
		}
	}
	return t
}

// transition logs and counts what the cooldown decided: one line per transition, none per refused
// request (R78, R79).
func (c *Client) transition(ctx context.Context, t cooldown.Transition) {
	a := t.Authority
	entry := obs.Entry{
		Host: a.Host, Port: int(a.Port), Status: t.Status, Delay: t.Delay, Hint: t.Hint, Ceiling: t.Ceiling,
		Kind: string(kindOf(ctx)),
	}
	switch t.Kind {
	case cooldown.TransitionEntered:
		c.opts.Metrics.CooldownEntered(a.String(), t.Hint)
		c.line(a).told(time.Now().Add(t.Delay))
		obs.LogEntered(ctx, c.opts.Logger, entry)
	case cooldown.TransitionRecovered:
		obs.LogRecovered(ctx, c.opts.Logger, a.Host, int(a.Port))
	case cooldown.TransitionExtended:
		if end := time.Now().Add(t.Delay); c.line(a).longer(end) {
			obs.LogExtended(ctx, c.opts.Logger, entry, end)
		}
	case cooldown.TransitionNone:
	}
	c.line(a).restart()
}

// line is the order of the requests to an authority, the same for all upstreams there.
func (c *Client) line(a cooldown.Authority) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[a]
	if l == nil {
		l = newLine(func() bool { return c.opts.Table.Look(time.Now(), a).Phase != cooldown.PhaseOpen }, c.opts.Budgets[a])
		c.lines[a] = l
	}
	return l
}

// Failure is a request that got no answer.
type Failure struct {
	// Outcome is connection, timeout or cancelled.
	Outcome string
	err     error
}

// Error says what happened, without the address.
func (f *Failure) Error() string { return "no response from the upstream: " + f.Outcome }

// Unwrap gives the transport's error, for logs.
func (f *Failure) Unwrap() error { return f.err }

// failure types an error of a transport, leaving a cooldown's refusal as it is.
func failure(ctx context.Context, err error) error {
	if refusal, ok := errors.AsType[*cooldown.Refusal](err); ok {
		return refusal
	}
	if busy, ok := errors.AsType[*Busy](err); ok {
		return busy
	}
	return &Failure{Outcome: cooldownhttp.OutcomeOf(ctx, err), err: err}
}

// errExchangeTimeout is why an exchange's context ends when its time is over.
var errExchangeTimeout error = exchangeTimeout{}

type exchangeTimeout struct{}

func (exchangeTimeout) Error() string { return "the upstream took too long" }
func (exchangeTimeout) Timeout() bool { return true }

type kindKey struct{}

func withKind(ctx context.Context, k Kind) context.Context {
	return context.WithValue(ctx, kindKey{}, k)
}

func kindOf(ctx context.Context) Kind {
	k, _ := ctx.Value(kindKey{}).(Kind)
	return k
}

// Close drops idle connections.
func (c *Client) Close() {
	for _, rt := range []http.RoundTripper{c.private, c.outside, c.public} {
		if idle, ok := rt.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	}
}

// join puts an escaped path under a base address.
func join(base *url.URL, path string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(base.String(), "/") + path)
	if err != nil {
		return nil, fmt.Errorf("upstream address: %v", err)
	}
	return u, nil
}
