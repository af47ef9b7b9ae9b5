package upstream

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"

	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/netguard"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// target counts connections to a listener on loopback.
func target(t *testing.T) (port string, hits *atomic.Int32) {
	t.Helper()
	hits = new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(srv.Close)
	_, port, _ = net.SplitHostPort(srv.Listener.Addr().String())
	return port, hits
}

// A public name that resolves to an internal address is not dialled, however the address is spelled
// and whenever the name changes its answer: the judgement falls on the address of the very
// connection.
func TestNamesOnInternalNetworksAreNotDialled(t *testing.T) {
	port, hits := target(t)
	for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "localhost"} {
		g := newGuard(Egress{})
		conn, err := g.dial(t.Context(), "tcp", host+":"+port)
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, ErrForbiddenAddress) {
			t.Errorf("%s: %v", host, err)
		}
	}
	// whatever a resolver makes of them
	for _, host := range []string{"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "localhost."} {
		if conn, err := newGuard(Egress{}).dial(t.Context(), "tcp", host+":"+port); err == nil {
			conn.Close()
			t.Errorf("%s was dialled", host)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests arrived", hits.Load())
	}
	for _, e := range []Egress{
		{Internal: []cooldown.Authority{{Host: "localhost", Port: 1}}},
		{Internal: []cooldown.Authority{{Host: "localhost", Port: portOf(t, port)}}, Blocked: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	} {
		if _, err := newGuard(e).dial(t.Context(), "tcp4", "localhost:"+port); !errors.Is(err, ErrForbiddenAddress) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	conn, err := newGuard(Egress{Internal: []cooldown.Authority{{Host: "localhost", Port: portOf(t, port)}}}).dial(t.Context(), "tcp4", "localhost:"+port)
	if err != nil {
		t.Errorf("an authority that is meant to be internal: %v", err)
	} else {
		conn.Close()
	}
}

func portOf(t *testing.T, s string) uint16 {
	t.Helper()
	a, err := cooldown.ParseAuthority("x:"+s, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a.Port
}

// R91: a private redirect never leads to an internal address of another authority.
func TestPrivateRedirectStaysOutside(t *testing.T) {
	metadata, hits := target(t)
	from := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.1:"+metadata+"/latest/meta-data", http.StatusFound)
	}))
	defer from.Close()
	c := New(Options{
		Table: cooldown.New(cooldown.Options{}), Metrics: obs.NewMetrics(), Logger: obs.Discard(), Tracer: tracenoop.NewTracerProvider().Tracer(""),
		RootCAs: from.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
	})
	defer c.Close()
	base, _ := url.Parse(from.URL)
	p, err := c.Private(base, Encoded)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := p.Under("/x")
	resp, err := p.Do(t.Context(), Request{Method: http.MethodGet, URL: u, Kind: Artifact}, "Bearer secret")
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, ErrForbiddenAddress) || hits.Load() != 0 {
		t.Errorf("err = %v, %d requests arrived", err, hits.Load())
	}
}

// A name that answered with a public address when somebody looked, and answers with an internal one
// when it is dialled, gains nothing.
func TestRebindingResolver(t *testing.T) {
	port, hits := target(t)
	var asked atomic.Int32
	g := newGuard(Egress{})
	g.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		client, server := net.Pipe()
		go answerDNS(server, func() [4]byte {
			if asked.Add(1) == 1 {
				return [4]byte{8, 8, 8, 8}
			}
			return [4]byte{127, 0, 0, 1}
		})
		return client, nil
	}}
	first, err := g.dialer.Resolver.LookupNetIP(t.Context(), "ip4", "rebind.test")
	if err != nil || len(first) != 1 || netguard.Internal(first[0]) {
		t.Fatalf("first answer: %v, %v", first, err)
	}
	conn, err := g.dial(t.Context(), "tcp4", "rebind.test:"+port)
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, ErrForbiddenAddress) || hits.Load() != 0 {
		t.Errorf("err = %v, %d requests arrived", err, hits.Load())
	}
}

// answerDNS answers the questions of one connection, in the framing of TCP, with an address of its
// own choice each time.
func answerDNS(conn net.Conn, address func() [4]byte) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		raw := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, raw); err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(raw); err != nil || len(m.Questions) == 0 {
			return
		}
		q := m.Questions[0]
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 0},
				Body:   &dnsmessage.AResource{A: address()},
			}}
		}
		out, err := m.Pack()
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
			return
		}
	}
}
