package upstream

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/fake/tunnel"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// scriptedProxy is a proxy on a real socket. Every tunnel and every request ends at one server.
type scriptedProxy struct {
	*httptest.Server
	leadsTo string // host:port
	status  int    // of its own answers; 0: it does its work

	mu    sync.Mutex
	asked []string // "CONNECT host:port" or "GET http://host/path"
}

func newProxy(t *testing.T, leadsTo string) *scriptedProxy {
	t.Helper()
	p := &scriptedProxy{leadsTo: leadsTo}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *scriptedProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.RequestURI)
	p.mu.Unlock()
	if p.status != 0 {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(p.status)
		return
	}
	if r.Method != http.MethodConnect {
		_, _ = io.WriteString(w, "by the proxy")
		return
	}
	tunnel.Serve(w, r, p.leadsTo)
}

func (p *scriptedProxy) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// use leads everything but loopback addresses through the proxy, as httpproxy does.
func (p *scriptedProxy) use(u *url.URL) (*url.URL, error) {
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsLoopback() {
		return nil, nil
	}
	return url.Parse(p.URL)
}

// resolving is a resolver for which every name has one address; none when it is zero.
func resolving(address [4]byte) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		if address == [4]byte{} {
			return nil, errors.New("no name server")
		}
		client, server := net.Pipe()
		go answerDNS(server, func() [4]byte { return address })
		return client, nil
	}}
}

// behind is a client behind a proxy, on a machine with a resolver.
func behind(t *testing.T, p *scriptedProxy, roots *x509.CertPool, r *net.Resolver, e Egress) *Client {
	t.Helper()
	c := New(Options{
		Table: cooldown.New(cooldown.Options{}), Metrics: obs.NewMetrics(), Logger: obs.Discard(), Tracer: tracenoop.NewTracerProvider().Tracer(""),
		RootCAs: roots, Proxy: p.use, Egress: e,
	})
	c.guard.dialer.Resolver = r
	t.Cleanup(c.Close)
	return c
}

func tlsOrigin(t *testing.T, h http.HandlerFunc) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	srv := httptest.NewTLSServer(h) // its certificate is for example.com
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return srv, roots
}

func (c *Client) fetch(t *testing.T, base string) (int, error) {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Public(u, Encoded)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.Do(t.Context(), Request{Method: http.MethodGet, URL: u, Kind: Artifact})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// Public upstreams are reached through the proxy, whatever network that is on, and what lies behind
// it is judged by the addresses that this machine finds: an internal one gets no tunnel.
func TestGuardBehindAProxy(t *testing.T) {
	origin, roots := tlsOrigin(t, func(http.ResponseWriter, *http.Request) {})
	public, internal := [4]byte{8, 8, 8, 8}, [4]byte{10, 1, 2, 3}
	example := []cooldown.Authority{{Host: "example.com", Port: 443}}
	for _, c := range []struct {
		name, base string
		finds      [4]byte
		egress     Egress
		asked      string // of the proxy; empty: nothing, since it is forbidden
	}{
		{"a public name", "https://example.com/a", public, Egress{}, "CONNECT example.com:443"},
		{"a name that this machine does not know", "https://example.com/a", [4]byte{}, Egress{}, "CONNECT example.com:443"},
		{"a name on an internal network", "https://example.com/a", internal, Egress{}, ""},
		{"one that is meant to be", "https://example.com/a", internal, Egress{Internal: example}, "CONNECT example.com:443"},
		{"a blocked range", "https://example.com/a", public, Egress{Blocked: []netip.Prefix{netip.MustParsePrefix("8.0.0.0/8")}}, ""},
		{"plain http", "http://example.com/a", public, Egress{}, "GET http://example.com/a"},
		{"plain http to an internal network", "http://example.com/a", internal, Egress{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProxy(t, origin.Listener.Addr().String())
			status, err := behind(t, p, roots, resolving(c.finds), c.egress).fetch(t, c.base)
			if c.asked == "" {
				if !errors.Is(err, ErrForbiddenAddress) || len(p.seen()) != 0 {
					t.Errorf("%d %v, the proxy saw %v", status, err, p.seen())
				}
				return
			}
			if err != nil || status != http.StatusOK || !slices.Equal(p.seen(), []string{c.asked}) {
				t.Errorf("%d %v, the proxy saw %v", status, err, p.seen())
			}
		})
	}
}

// R91: where a private upstream redirects to is judged behind a proxy as well: no internal address,
// and not the proxy itself, which may be internal only as the proxy.
func TestPrivateRedirectBehindAProxy(t *testing.T) {
	to := ""
	origin, roots := tlsOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	})
	p := newProxy(t, origin.Listener.Addr().String())
	for _, to = range []string{"https://169.254.169.254/latest", "https://[fd00::1]/", strings.Replace(p.URL, "http:", "https:", 1) + "/"} {
		c := behind(t, p, roots, resolving([4]byte{8, 8, 8, 8}), Egress{})
		base, err := url.Parse(origin.URL)
		if err != nil {
			t.Fatal(err)
		}
		private, err := c.Private(base, Encoded)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := private.Do(t.Context(), Request{Method: http.MethodGet, URL: base, Kind: Artifact}, "Bearer secret")
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, ErrForbiddenAddress) || len(p.seen()) != 0 {
			t.Errorf("%s: %v, the proxy saw %v", to, err, p.seen())
		}
	}
}

// R1 R34: the cooldown is the upstream's, also behind a proxy: after its 429 nothing is sent to the
// proxy for it. What the proxy itself answers to CONNECT is no answer of the upstream's.
func TestCooldownBehindAProxy(t *testing.T) {
	origin, roots := tlsOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	p := newProxy(t, origin.Listener.Addr().String())
	c := behind(t, p, roots, resolving([4]byte{8, 8, 8, 8}), Egress{})
	if status, err := c.fetch(t, "https://example.com/a"); status != http.StatusTooManyRequests || err != nil {
		t.Fatalf("%d %v", status, err)
	}
	for range 3 {
		if _, err := c.fetch(t, "https://example.com/b"); !isRefusal(err) {
			t.Errorf("%v", err)
		}
	}
	if got := p.seen(); len(got) != 1 {
		t.Errorf("the proxy saw %v", got)
	}
	p.status = http.StatusTooManyRequests
	c = behind(t, p, roots, resolving([4]byte{8, 8, 8, 8}), Egress{})
	for range 2 {
		_, err := c.fetch(t, "https://example.com/a")
		if f, ok := errors.AsType[*Failure](err); !ok || f.Outcome != "connection" {
			t.Errorf("the proxy's own 429: %v", err)
		}
	}
}

func isRefusal(err error) bool {
	_, ok := cooldown.AsRefusal(err)
	return ok
}
