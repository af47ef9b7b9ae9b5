package cooldownhttp_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
	"github.com/ecluse-gate/ecluse/internal/fake/tunnel"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// R95: a cooldown that begins between the judgement and the write, here when the header fields are
// in the transport's buffer, stops the request: nothing of it arrives, and it is no attempt. With
// TLS and without, and through proxies of both kinds.
func TestJudgedByTheWriteItself(t *testing.T) {
	for _, proxy := range []string{"", "http", "https"} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(scheme+" over "+proxy, func(t *testing.T) {
				t.Parallel()
				judgedByTheWrite(t, proxy, scheme)
			})
		}
	}
}

func judgedByTheWrite(t *testing.T, proxy, scheme string) {
	t.Helper()
	var arrived atomic.Int64
	roots := x509.NewCertPool()
	srv := serveAs(t, scheme, roots, func(http.ResponseWriter, *http.Request) { arrived.Add(1) })
	base := &http.Transport{
		DialContext:     cooldownhttp.DialContext((&net.Dialer{}).DialContext),
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	passed := func() int64 { return 0 }
	if proxy != "" {
		base.Proxy, passed = proxyAs(t, proxy, roots)
	}
	g := newRig(t, cooldown.Options{}, nil)
	g.transport.Base = base
	authority, err := cooldown.ParseAuthority(srv.Listener.Addr().String(), 0)
	if err != nil {
		t.Fatal(err)
	}
	fetch(t, g.client, srv.URL) // a connection to be kept
	if proxy != "" && passed() == 0 {
		t.Fatal("nothing went through the proxy")
	}
	for range 2 { // on the kept one, and on a new one
		other, refusal := g.table.Ask(t.Context(), time.Now(), authority)
		if refusal != nil {
			t.Fatal(refusal)
		}
		before, attempts := arrived.Load(), len(g.attempts)
		var through int64
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: func() {
			now := time.Now()
			through = passed() // what is sent until now is a tunnel's making
			other.Finish(now, 429, retryafter.Parse([]string{"1"}, now))
		}})
		response, err := g.client.Do(request(t, ctx, http.MethodGet, srv.URL, nil))
		if err == nil {
			response.Body.Close()
		}
		if _, refused := cooldown.AsRefusal(err); !refused {
			t.Error(err)
		}
		time.Sleep(10 * time.Millisecond)
		if arrived.Load() != before || len(g.attempts) != attempts || proxy == "http" && scheme == "http" && passed() != through {
			t.Errorf("%d arrived, %d attempts, %d bytes through the proxy", arrived.Load()-before, len(g.attempts)-attempts, passed()-through)
		}
		time.Sleep(time.Second)
		fetch(t, g.client, srv.URL) // the probe
		base.CloseIdleConnections()
	}
}

// serveAs serves over http or https.
func serveAs(t *testing.T, scheme string, roots *x509.CertPool, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	if scheme == "https" {
		srv.StartTLS()
		roots.AddCert(srv.Certificate())
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return srv
}

// counted counts the bytes that are read from a connection.
type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

type countingListener struct {
	net.Listener
	n *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return counted{c, l.n}, err
}

// proxyAs is a proxy that is itself spoken to over http or https: it makes tunnels and passes plain
// requests on. passed is how many bytes it was sent.
func proxyAs(t *testing.T, scheme string, roots *x509.CertPool) (use func(*http.Request) (*url.URL, error), passed func() int64) {
	t.Helper()
	var n atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			tunnel.Serve(w, r, r.Host)
			return
		}
		r.RequestURI = ""
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	srv.Listener = countingListener{srv.Listener, &n}
	if scheme == "https" {
		srv.StartTLS()
		roots.AddCert(srv.Certificate())
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	address, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return http.ProxyURL(address), n.Load
}

// R34 R95: through a proxy as well, nothing is sent to an authority once its 429 is known: no
// request, and no tunnel.
func TestNothingIsSentThroughAProxyInACooldown(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		roots := x509.NewCertPool()
		var arrived atomic.Int64
		srv := serveAs(t, scheme, roots, func(w http.ResponseWriter, _ *http.Request) {
			arrived.Add(1)
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		})
		use, passed := proxyAs(t, "http", roots)
		g := newRig(t, cooldown.Options{}, nil)
		base := &http.Transport{
			DialContext: cooldownhttp.DialContext((&net.Dialer{}).DialContext), Proxy: use,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		}
		g.transport.Base = base
		fetch(t, g.client, srv.URL)
		before := passed()
		for range 20 {
			response, err := g.client.Get(srv.URL)
			if err == nil {
				response.Body.Close()
			}
			if _, refused := cooldown.AsRefusal(err); !refused {
				t.Errorf("%s: %v", scheme, err)
			}
		}
		if arrived.Load() != 1 || passed() != before {
			t.Errorf("%s: %d requests arrived, %d bytes went to the proxy", scheme, arrived.Load(), passed()-before)
		}
		base.CloseIdleConnections()
	}
}
