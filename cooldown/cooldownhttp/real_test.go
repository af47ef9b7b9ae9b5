package cooldownhttp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
)

// wireServer is an HTTP/1 server of bare connections: it counts the requests that arrive at its
// socket, and a script says what becomes of each.
type wireServer struct {
	URL      string
	mu       sync.Mutex
	requests int
	act      func(n int, c net.Conn)
	conns    []net.Conn
}

func newWireServer(t *testing.T, act func(n int, c net.Conn)) *wireServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &wireServer{URL: "http://" + l.Addr().String(), act: act}
	t.Cleanup(func() {
		l.Close()
		s.dropAll()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			go s.serve(c)
		}
	}()
	return s
}

func (s *wireServer) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		s.mu.Lock()
		s.requests++
		n, act := s.requests, s.act
		s.mu.Unlock()
		act(n, c)
	}
}

func (s *wireServer) script(act func(n int, c net.Conn)) (seen int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.act = act
	return s.requests
}

func (s *wireServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *wireServer) dropAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
}

func write(c net.Conn, text string) { _, _ = io.WriteString(c, text) }

func fine(_ int, c net.Conn) { write(c, wire200) }

// kept makes n connections that are idle afterwards.
func kept(t *testing.T, s *wireServer, client *http.Client, n int) {
	t.Helper()
	var arrived sync.WaitGroup
	arrived.Add(n)
	s.script(func(_ int, c net.Conn) {
		arrived.Done()
		arrived.Wait()
		write(c, wire200)
	})
	var done sync.WaitGroup
	for range n {
		done.Go(func() { fetch(t, client, s.URL) })
	}
	done.Wait()
}

func fetch(t *testing.T, client *http.Client, url string) {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
}

// clocked is a client whose clock can be moved past a cooldown.
func clocked(t *testing.T) (client *http.Client, g *rig, ahead *atomic.Int64) {
	t.Helper()
	g, ahead = newRig(t, cooldown.Options{}, nil), new(atomic.Int64)
	base := &http.Transport{MaxIdleConnsPerHost: 100}
	g.transport.Base = base
	g.transport.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	t.Cleanup(base.CloseIdleConnections)
	return g.client, g, ahead
}

// R95: eight kept connections that die under what is written to them: a probe is one request on the
// wire all the same, and a request in flight during a cooldown is not written again.
func TestProbeIsOneRequestOnDyingConnections(t *testing.T) {
	client, g, ahead := clocked(t)
	s := newWireServer(t, fine)
	kept(t, s, client, 8)
	s.script(func(_ int, c net.Conn) { write(c, wire429) })
	fetch(t, client, s.URL)
	before := s.script(func(_ int, c net.Conn) { c.Close() })
	ahead.Add(int64(10 * time.Minute))
	if response, err := client.Get(s.URL); err == nil {
		response.Body.Close()
		t.Fatal("answered")
	} else if _, refused := cooldown.AsRefusal(err); refused {
		t.Fatal(err)
	}
	if got := s.count() - before; got != 1 {
		t.Errorf("the probe arrived as %d requests", got)
	}
	s.script(fine)
	fetch(t, client, s.URL)
	if got := g.heard(); got != "entered recovered" {
		t.Errorf("%s", got)
	}
}

// R95 R52: requests in flight on kept connections that die during a cooldown are written no second
// time.
func TestNothingIsWrittenAgainInACooldown(t *testing.T) {
	client, g, _ := clocked(t)
	s := newWireServer(t, fine)
	kept(t, s, client, 6)
	arrived, cooling := make(chan struct{}, 4), make(chan struct{})
	before := s.script(func(_ int, c net.Conn) {
		arrived <- struct{}{}
		<-cooling
		c.Close()
	})
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			if response, err := client.Get(s.URL); err == nil {
				response.Body.Close()
				t.Error("answered")
			}
		})
	}
	for range 4 {
		<-arrived
	}
	s.script(func(_ int, c net.Conn) { write(c, wire429) })
	fetch(t, client, s.URL)
	close(cooling)
	done.Wait()
	if got := s.count() - before; got != 5 {
		t.Errorf("%d requests arrived, want the four in flight and the one that met the 429", got)
	}
	if got := g.heard(); got != "entered" {
		t.Errorf("%s", got)
	}
}

// R96: requests that meet connections which died while idle cost the client nothing while the
// authority is open: one repetition, on a fresh connection, and each write is an attempt. A write
// is never repeated.
func TestRepeatedOnceAfterDeadIdleConnection(t *testing.T) {
	client, g, _ := clocked(t)
	s := newWireServer(t, fine)
	kept(t, s, client, 8)
	var mu sync.Mutex
	old := map[net.Conn]bool{}
	s.mu.Lock()
	for _, c := range s.conns {
		old[c] = true
	}
	s.mu.Unlock()
	before := s.script(func(_ int, c net.Conn) {
		mu.Lock()
		dead := old[c]
		mu.Unlock()
		if dead { // as one that died while idle, and whose end is noticed only when it is used
			c.Close()
			return
		}
		write(c, wire200)
	})
	for range 3 {
		fetch(t, client, s.URL)
	}
	if got := s.count() - before; got > 6 || got < 3 {
		t.Errorf("%d requests for three", got)
	}
	g.mu.Lock()
	attempts := len(g.attempts)
	g.mu.Unlock()
	if attempts != s.count() {
		t.Errorf("%d attempts told, %d requests arrived", attempts, s.count())
	}

	kept(t, s, client, 2)
	before = s.script(func(_ int, c net.Conn) { c.Close() })
	r := request(t, context.Background(), http.MethodDelete, s.URL, nil)
	r.Header.Set("Idempotency-Key", "which makes net/http send it again")
	if response, err := client.Do(r); err == nil {
		response.Body.Close()
		t.Error("answered")
	}
	if got := s.count() - before; got != 1 {
		t.Errorf("a write arrived %d times", got)
	}
}

// R95: requests that wait for a connection, because dialling or the handshake takes long, are
// refused when the authority cools, and nothing of them is written.
func TestWaitingForAConnection(t *testing.T) {
	for name, phase := range map[string]string{"dialling": "dial", "handshake": "tls"} {
		t.Run(name, func(t *testing.T) {
			var seen atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				seen.Add(1)
				w.Header().Set("Retry-After", "60")
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			defer server.Close()
			base := server.Client().Transport.(*http.Transport).Clone()
			gate, dials := make(chan struct{}), new(atomic.Int64)
			dial := (&net.Dialer{}).DialContext
			base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := dial(ctx, network, address)
				if err != nil || dials.Add(1) == 1 {
					return c, err
				}
				if phase == "dial" {
					<-gate
					return c, nil
				}
				return &slowConn{Conn: c, gate: gate}, nil
			}
			g := newRig(t, cooldown.Options{}, nil)
			g.transport.Base = base
			defer base.CloseIdleConnections()
			var done sync.WaitGroup
			warm := make(chan struct{})
			for i := range 50 {
				done.Go(func() {
					if i > 0 {
						<-warm
					}
					response, err := g.client.Get(server.URL)
					if err == nil {
						response.Body.Close()
					} else if refusal, ok := cooldown.AsRefusal(err); !ok || refusal.RetryAfterSeconds() < 50 {
						t.Error(err)
					}
				})
				if i == 0 {
					for dials.Load() == 0 {
						time.Sleep(time.Millisecond)
					}
					close(warm)
				}
			}
			// before the gate opens: nobody waits for a connection that is of no use any more
			done.Wait()
			sent := seen.Load()
			close(gate)
			time.Sleep(50 * time.Millisecond)
			if sent != 1 || seen.Load() != 1 {
				t.Errorf("%d, then %d requests arrived; want 1", sent, seen.Load())
			}
		})
	}
}

// slowConn is a connection whose first bytes come when the gate opens.
type slowConn struct {
	net.Conn
	gate chan struct{}
}

func (c *slowConn) Read(p []byte) (int, error) {
	<-c.gate
	return c.Conn.Read(p)
}

// R95: a base that sends requests again after an answer that it swallows is found out.
func TestRetryingBaseIsFoundOut(t *testing.T) {
	client, g, _ := clocked(t)
	s := newWireServer(t, func(_ int, c net.Conn) { write(c, wire429) })
	inner := g.transport.Base
	g.transport.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
		for {
			response, err := inner.RoundTrip(r)
			if err != nil || response.StatusCode != 429 {
				return response, err
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	})
	if _, err := client.Get(s.URL); !errors.Is(err, cooldownhttp.ErrHiddenAnswer) {
		t.Errorf("%v", err)
	}
	if s.count() != 1 {
		t.Errorf("%d requests arrived", s.count())
	}
}

// R95: requests that wait for the one connection get it when an answer without a body has been read
// from it, which may be before the table has heard of that answer. They are judged after it all the
// same, and a refusal is no attempt.
func TestConnectionThatBroughtThe429(t *testing.T) {
	for range 10 {
		client, g, _ := clocked(t)
		g.transport.Base.(*http.Transport).MaxConnsPerHost = 1
		var late atomic.Bool
		g.transport.Now = func() time.Time {
			if late.CompareAndSwap(true, false) { // the verdict takes its time
				time.Sleep(5 * time.Millisecond)
			}
			return time.Now()
		}
		waiting := make(chan struct{})
		s := newWireServer(t, func(_ int, c net.Conn) {
			<-waiting
			late.Store(true)
			write(c, wire429)
		})
		var done sync.WaitGroup
		for range 20 {
			done.Go(func() {
				if response, err := client.Get(s.URL); err == nil {
					response.Body.Close()
				} else if _, refused := cooldown.AsRefusal(err); !refused {
					t.Error(err)
				}
			})
		}
		for s.count() == 0 {
			time.Sleep(time.Millisecond)
		}
		close(waiting)
		done.Wait()
		if s.count() != 1 || g.outcomes() != "throttled" {
			t.Fatalf("%d requests arrived, attempts %s", s.count(), g.outcomes())
		}
	}
}

// R52 R95: of a base that says nothing of connections nobody knows whether a request was written,
// so that one in flight goes on when its authority begins to cool.
func TestOpaqueBaseGoesOn(t *testing.T) {
	began, cooling := make(chan struct{}), make(chan struct{})
	g := newRig(t, cooldown.Options{}, func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/429" {
			return reply(r, 429, "60"), nil
		}
		close(began)
		select {
		case <-cooling:
			return reply(r, 200), nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	})
	var done sync.WaitGroup
	done.Go(func() { g.get("https://registry.example/slow", 200) })
	<-began
	g.get("https://registry.example/429", 429)
	time.Sleep(10 * time.Millisecond) // for the watcher, which must not act
	close(cooling)
	done.Wait()
}

// A transport remembers connections only while an exchange has them.
func TestNoConnectionIsRemembered(t *testing.T) {
	client, g, _ := clocked(t)
	s := newWireServer(t, fine)
	kept(t, s, client, 5)
	s.script(func(_ int, c net.Conn) { c.Close() })
	if response, err := client.Get(s.URL); err == nil {
		response.Body.Close()
	}
	if n := cooldownhttp.Remembered(g.transport); n != 0 {
		t.Errorf("%d connections", n)
	}
}
