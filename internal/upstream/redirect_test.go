package upstream_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// asked is one request as a server saw it.
type asked struct{ path, authorization, agent string }

// tlsServer is a server on a real socket that remembers what it was asked. Requests below /to/ are
// redirected to what follows.
type tlsServer struct {
	*httptest.Server
	mu   sync.Mutex
	seen []asked
}

func newTLSServer(t *testing.T) *tlsServer {
	t.Helper()
	s := &tlsServer{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, asked{r.URL.Path, r.Header.Get("Authorization"), r.UserAgent()})
		s.mu.Unlock()
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprint(w, "the file")
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *tlsServer) asked() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]asked(nil), s.seen...)
}

func (s *tlsServer) authority(t *testing.T) cooldown.Authority {
	t.Helper()
	a, err := cooldown.ParseAuthority(s.URL, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// privateAt is a private upstream at a server, from where redirects may lead to the other servers.
func privateAt(t *testing.T, at *tlsServer, others ...*tlsServer) *upstream.Private {
	t.Helper()
	pool := x509.NewCertPool()
	var internal []cooldown.Authority
	for _, s := range append(others, at) {
		pool.AddCert(s.Certificate())
		internal = append(internal, s.authority(t))
	}
	c := upstream.New(upstream.Options{
		Table: cooldown.New(cooldown.Options{}), Metrics: obs.NewMetrics(), Logger: obs.Discard(), Tracer: noop.NewTracerProvider().Tracer(""),
		UserAgent: "ecluse/gap", RootCAs: pool, Egress: upstream.Egress{Internal: internal},
	})
	t.Cleanup(c.Close)
	p, err := c.Private(parse(t, at.URL), upstream.Encoded)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// read sends one read of an artifact and gives its status and body.
func read(t *testing.T, p *upstream.Private, kind upstream.Kind, address string) (int, string) {
	t.Helper()
	resp, err := p.Do(t.Context(), upstream.Request{Method: http.MethodGet, URL: parse(t, address), Kind: kind}, "Bearer secret")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// via is an address at a server that redirects to another address.
func via(base, path, to string) string { return base + path + "?to=" + url.QueryEscape(to) }

// R91 R106: the caller's credential goes along a redirect within its authority, and no farther: not
// to another port of the same host, and not back to its own authority either, since it is the other
// one that chose the address.
func TestRedirectDropsTheCredential(t *testing.T) {
	own, other := newTLSServer(t), newTLSServer(t)
	p := privateAt(t, own, other)
	if status, body := read(t, p, upstream.Artifact, via(own.URL, "/1", own.URL+"/2")); status != 200 || body != "the file" {
		t.Fatalf("%d %q", status, body)
	}
	back := via(other.URL, "/away", own.URL+"/back")
	if status, body := read(t, p, upstream.Artifact, via(own.URL, "/3", back)); status != 200 || body != "the file" {
		t.Fatalf("%d %q", status, body)
	}
	for path, want := range map[string]string{"/1": "Bearer secret", "/2": "Bearer secret", "/3": "Bearer secret", "/away": "", "/back": ""} {
		found := false
		for _, a := range append(own.asked(), other.asked()...) {
			if a.path != path {
				continue
			}
			found = true
			if a.authorization != want {
				t.Errorf("%s was asked with %q, want %q", path, a.authorization, want)
			}
		}
		if !found {
			t.Errorf("%s was not asked", path)
		}
	}
}

// R91: an artifact's redirects are followed three times and not once more; metadata's not at all,
// nor one with user information.
func TestRedirectHops(t *testing.T) {
	chain := func(s *tlsServer, hops int) string {
		address := s.URL + "/file"
		for i := range hops {
			address = via(s.URL, fmt.Sprint("/", i), address)
		}
		return address
	}
	for _, c := range []struct {
		name          string
		kind          upstream.Kind
		hops          int
		status, asked int
	}{
		{"three", upstream.Artifact, 3, 200, 4},
		{"companion", upstream.Companion, 3, 200, 4},
		{"four", upstream.Artifact, 4, 302, 4},
		{"ten", upstream.Artifact, 10, 302, 4},
		{"metadata", upstream.Metadata, 1, 302, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTLSServer(t)
			status, _ := read(t, privateAt(t, s), c.kind, chain(s, c.hops))
			if n := len(s.asked()); status != c.status || n != c.asked {
				t.Errorf("%d after %d requests, want %d after %d", status, n, c.status, c.asked)
			}
		})
	}
	s := newTLSServer(t)
	withUser := strings.Replace(s.URL, "://", "://user:word@", 1) + "/file"
	if status, _ := read(t, privateAt(t, s), upstream.Artifact, via(s.URL, "/1", withUser)); status != 302 || len(s.asked()) != 1 {
		t.Errorf("user information in a redirect: %d, %v", status, s.asked())
	}
}

// C81: every request names the gate, whatever it is for: public and private reads, redirected ones,
// a target's reads and writes.
func TestEveryRequestNamesTheGate(t *testing.T) {
	own, other := newTLSServer(t), newTLSServer(t)
	pool := x509.NewCertPool()
	pool.AddCert(own.Certificate())
	pool.AddCert(other.Certificate())
	c := upstream.New(upstream.Options{
		Table: cooldown.New(cooldown.Options{}), Metrics: obs.NewMetrics(), Logger: obs.Discard(), Tracer: noop.NewTracerProvider().Tracer(""),
		UserAgent: "ecluse/gap", RootCAs: pool, Egress: upstream.Egress{Internal: []cooldown.Authority{other.authority(t)}},
	})
	defer c.Close()
	base := parse(t, own.URL)
	public, err1 := c.Public(base, upstream.Encoded)
	private, err2 := c.Private(base, upstream.Encoded)
	target, err3 := c.Target(base, upstream.Encoded)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	get := func(path string) upstream.Request {
		return upstream.Request{Method: http.MethodGet, URL: parse(t, own.URL+path), Kind: upstream.Artifact}
	}
	for what, send := range map[string]func() (*http.Response, error){
		"public": func() (*http.Response, error) {
			resp, err := public.Do(t.Context(), get("/public"))
			if err != nil {
				return nil, err
			}
			return resp.Response, nil
		},
		"private": func() (*http.Response, error) {
			return private.Do(t.Context(), get("/private?to="+url.QueryEscape(other.URL+"/redirected")), "")
		},
		"read": func() (*http.Response, error) { return target.Read(t.Context(), get("/read"), "") },
		"write": func() (*http.Response, error) {
			return target.Write(t.Context(), upstream.Write{
				Method: http.MethodPut, URL: parse(t, own.URL+"/write"), Header: http.Header{"User-Agent": {"npm/11"}},
				Body: strings.NewReader("x"), Length: 1,
			})
		},
	} {
		resp, err := send()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		resp.Body.Close()
	}
	all := append(own.asked(), other.asked()...)
	if len(all) != 5 {
		t.Errorf("%d requests arrived, want 5: %v", len(all), all)
	}
	for _, a := range all {
		if a.agent != "ecluse/gap" {
			t.Errorf("%s was asked by %q", a.path, a.agent)
		}
	}
}
