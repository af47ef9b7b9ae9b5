// Package storm is a thousand clients on real sockets against a server that throttles, with
// connections that die, are slow, or are told to go away. It counts at the server what must not
// arrive.
package storm

import (
	"context"
	"crypto/x509"
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
)

// Weather is what the connections go through.
type Weather struct {
	// TLS asks for encryption, and HTTP2 for streams that share a connection, of which some are
	// told to go away (GOAWAY).
	TLS, HTTP2 bool
	// Handshake is how long the server takes before its first byte on a new connection.
	Handshake time.Duration
	// Dying drops every seventh request on a connection that has served before, and closes every
	// fifth after its answer.
	Dying bool
}

// Get is one request by one client. Its error is a refusal of the cooldown, or a failure.
type Get func(ctx context.Context, url string) (status int, err error)

const (
	// of each client between two requests
	rest    = 2 * time.Second
	healthy = 2500 * time.Millisecond
	// what the 429 asks for
	pause = 6 * time.Second
	// without an arrival: what was written before is through by then
	settled = time.Second
	// before the end of the pause as a client reckons it
	early = 500 * time.Millisecond
	// what the probe's answer takes
	probe = 200 * time.Millisecond
)

// clients is a thousand; fewer where each costs a handshake, since a crowd that takes more than its
// second proves nothing.
func (w Weather) clients() int {
	if w.TLS || w.HTTP2 {
		return 200
	}
	return 1000
}

// Run lets the clients go through health, a cooldown, its probe and health again, and fails the
// test for a request during the cooldown, a second probe, or a client that hears of trouble while
// there is none. It takes some fifteen seconds.
func Run(t *testing.T, w Weather, client func(roots *x509.CertPool) Get) {
	t.Helper()
	s := &server{weather: w}
	srv := httptest.NewUnstartedServer(s)
	srv.Listener = &slowListener{srv.Listener, w.Handshake}
	srv.EnableHTTP2 = w.HTTP2
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, countKey{}, new(atomic.Int64))
	}
	roots := x509.NewCertPool()
	if w.TLS || w.HTTP2 {
		srv.StartTLS()
		roots.AddCert(srv.Certificate())
	} else {
		srv.Start()
	}
	defer srv.Close()
	s.crowd(t, srv.URL, client(roots))
	if n := s.late.Load(); n != 0 {
		t.Errorf("%d requests arrived during the cooldown", n)
	}
	if n := s.probes.Load(); n != 1 {
		t.Errorf("%d requests arrived as the probe", n)
	}
	t.Logf("%d requests, %d of them met a 429", s.served.Load(), s.throttled.Load())
}

// phase is what the server does.
type phase int32

const (
	serving phase = iota
	throttling
	quiet      // the cooldown is known: nothing may arrive
	probing    // the cooldown is over, or nearly: one request may arrive, until it is answered
	recovering // it was answered; not every client knows yet
)

type server struct {
	weather                         Weather
	phase                           atomic.Int32
	served, throttled, late, probes atomic.Int64
}

type countKey struct{}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	nth := r.Context().Value(countKey{}).(*atomic.Int64).Add(1) //nolint:errcheck // set for every connection
	switch phase(s.phase.Load()) {
	case serving, recovering:
		n := s.served.Add(1)
		switch {
		case s.weather.Dying && nth > 1 && n%7 == 0:
			panic(http.ErrAbortHandler)
		case s.weather.Dying && n%5 == 0, s.weather.HTTP2 && n%100 == 0:
			w.Header().Set("Connection", "close")
		}
		_, _ = io.WriteString(w, "well")
		return
	case quiet:
		s.late.Add(1)
	case probing:
		s.probes.Add(1)
		time.Sleep(probe)
		s.phase.Store(int32(recovering))
		_, _ = io.WriteString(w, "well again")
		return
	case throttling:
	}
	s.throttled.Add(1)
	w.Header().Set("Retry-After", "6")
	w.WriteHeader(http.StatusTooManyRequests)
}

// crowd runs the clients and moves the server through its phases.
func (s *server) crowd(t *testing.T, url string, get Get) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var known sync.Once // the first client has heard of the cooldown
	cooling := make(chan time.Time)
	clients := s.weather.clients()
	for i := range clients {
		all.Go(func() {
			for wait := rest * time.Duration(i) / time.Duration(clients); sleep(ctx, wait); wait = rest {
				before := phase(s.phase.Load())
				status, err := get(context.WithoutCancel(ctx), url)
				if _, refused := cooldown.AsRefusal(err); refused || status == http.StatusTooManyRequests {
					known.Do(func() { cooling <- time.Now() })
					if before == serving && phase(s.phase.Load()) == serving {
						t.Errorf("refused although the server is well: %d %v", status, err)
					}
				} else if err != nil || status != http.StatusOK {
					t.Errorf("a client heard %d %v", status, err)
				}
			}
		})
	}
	sleep(ctx, healthy)
	s.phase.Store(int32(throttling))
	began := <-cooling
	for n := int64(-1); n != s.throttled.Load() && time.Since(began) < pause/2; sleep(ctx, settled) {
		n = s.throttled.Load()
	}
	s.phase.Store(int32(quiet))
	sleep(ctx, time.Until(began.Add(pause-early)))
	s.phase.Store(int32(probing))
	sleep(ctx, early+probe+rest+settled)
	s.phase.CompareAndSwap(int32(recovering), int32(serving))
	sleep(ctx, healthy)
	stop()
	all.Wait()
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// slowListener delays the first read of every connection.
type slowListener struct {
	net.Listener
	delay time.Duration
}

func (l *slowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &slowConn{Conn: c, delay: l.delay}, nil
}

type slowConn struct {
	net.Conn
	delay time.Duration
	once  sync.Once
}

func (c *slowConn) Read(p []byte) (int, error) {
	c.once.Do(func() { time.Sleep(c.delay) })
	return c.Conn.Read(p)
}
