package cooldownhttp_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ecluse-gate/ecluse/cooldown"
)

// framed is an HTTP/2 server of bare frames. act answers the nth request that has arrived.
func framed(t *testing.T, act func(n int64, f *http2.Framer, stream uint32)) (url string, base *http.Transport, seen *atomic.Int64) {
	t.Helper()
	certificates := httptest.NewUnstartedServer(nil)
	certificates.EnableHTTP2 = true
	certificates.StartTLS()
	base = certificates.Client().Transport.(*http.Transport).Clone()
	config := certificates.TLS.Clone()
	certificates.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	seen = new(atomic.Int64)
	serve := func(c net.Conn) {
		defer c.Close()
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(c, c)
		_ = f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = f.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				act(seen.Add(1), f, frame.StreamID)
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	t.Cleanup(func() {
		base.CloseIdleConnections()
		l.Close()
	})
	return "https://" + l.Addr().String(), base, seen
}

// status ends a stream with header fields alone.
func status(f *http2.Framer, stream uint32, fields ...string) {
	var block writer
	e := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true, EndStream: true})
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

func refuseStream(f *http2.Framer, stream uint32) {
	_ = f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
}

func goAway(f *http2.Framer, stream uint32) { _ = f.WriteGoAway(stream-1, http2.ErrCodeNo, nil) }

// R95 R96: what an HTTP/2 server gives back unread, by REFUSED_STREAM or GOAWAY, the transport
// would send again up to six times. It is sent up to four times more while the authority is open,
// each write told as an attempt, and a probe is never sent again.
func TestHTTP2IsNotRetriedUnasked(t *testing.T) {
	for name, giveBack := range map[string]func(*http2.Framer, uint32){"REFUSED_STREAM": refuseStream, "GOAWAY": goAway} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var always atomic.Bool
			url, base, seen := framed(t, func(n int64, f *http2.Framer, stream uint32) {
				switch {
				case n == 1 || always.Load():
					giveBack(f, stream)
				case n == 3:
					status(f, stream, ":status", "429", "retry-after", "60")
				default:
					status(f, stream, ":status", "200")
				}
			})
			client, g, ahead := clocked(t)
			g.transport.Base = base
			g.get(url, 200)
			if seen.Load() != 2 || g.outcomes() != "connection success" {
				t.Fatalf("%d requests arrived, attempts %s", seen.Load(), g.outcomes())
			}
			g.get(url, 429)
			ahead.Add(int64(time.Minute + time.Second))
			always.Store(true)
			if response, err := client.Get(url); err == nil {
				response.Body.Close()
				t.Fatal("answered")
			} else if _, refused := cooldown.AsRefusal(err); refused {
				t.Fatal(err)
			}
			if seen.Load() != 4 {
				t.Errorf("the probe arrived as %d requests", seen.Load()-3)
			}
			always.Store(false)
			g.get(url, 200)
			if got := g.heard(); got != "entered recovered" {
				t.Errorf("%s", got)
			}
			before := seen.Load()
			always.Store(true)
			if response, err := client.Get(url); err == nil {
				response.Body.Close()
				t.Fatal("answered")
			}
			if n := seen.Load() - before; n != 5 || len(g.attempts) != int(seen.Load()) {
				t.Errorf("%d requests arrived while it is open, want 5; %d attempts of %d", n, len(g.attempts), seen.Load())
			}
		})
	}
}

// R96: an HTTP/2 connection that died while idle, without a word: the request is repeated on a
// fresh one.
func TestHTTP2DeadIdleConnection(t *testing.T) {
	url, base, seen := framed(t, func(_ int64, f *http2.Framer, stream uint32) { status(f, stream, ":status", "200") })
	var dead atomic.Bool
	dials := new(atomic.Int64)
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil && dials.Add(1) == 1 {
			return &dyingConn{c, &dead}, nil
		}
		return c, err
	}
	_, g, _ := clocked(t)
	g.transport.Base = base
	g.get(url, 200)
	dead.Store(true)
	g.get(url, 200)
	if seen.Load() != 2 || dials.Load() != 2 {
		t.Errorf("%d requests arrived over %d connections", seen.Load(), dials.Load())
	}
}

// dyingConn takes no more bytes once it is dead.
type dyingConn struct {
	net.Conn
	dead *atomic.Bool
}

func (c *dyingConn) Write(p []byte) (int, error) {
	if c.dead.Load() {
		c.Close()
		return 0, syscall.ECONNRESET
	}
	return c.Conn.Write(p)
}

// R95 R54: streams that run when their authority begins to cool go on to their end on the shared
// connection, and a refused request costs none of them anything.
func TestHTTP2StreamsGoOn(t *testing.T) {
	began, cooling := make(chan struct{}), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/429" {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = io.WriteString(w, "first ")
		w.(http.Flusher).Flush()
		began <- struct{}{}
		<-cooling
		_, _ = io.WriteString(w, "last")
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client, g, _ := clocked(t)
	g.transport.Base = server.Client().Transport
	var done sync.WaitGroup
	for range 5 {
		done.Go(func() {
			response, err := client.Get(server.URL + "/slow")
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if body, err := io.ReadAll(response.Body); err != nil || string(body) != "first last" || response.ProtoMajor != 2 {
				t.Errorf("%q %v over %s", body, err, response.Proto)
			}
		})
	}
	for range 5 {
		<-began
	}
	g.get(server.URL+"/429", 429)
	g.refusedSome(server.URL)
	close(cooling)
	done.Wait()
}

func (g *rig) refusedSome(url string) {
	g.t.Helper()
	for range 10 {
		response, err := g.client.Get(url)
		if err == nil {
			response.Body.Close()
			g.t.Fatalf("%d, want a refusal", response.StatusCode)
		}
		if _, ok := cooldown.AsRefusal(err); !ok {
			g.t.Fatal(err)
		}
	}
}
