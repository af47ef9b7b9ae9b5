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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
)

// realRig is a rig over a real server, with real sockets.
func realRig(t *testing.T, handler http.HandlerFunc) (*rig, *httptest.Server, *atomic.Int64) {
	t.Helper()
	g := newRig(t, cooldown.Options{}, nil)
	server := httptest.NewUnstartedServer(handler)
	var connections atomic.Int64
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	base := &http.Transport{MaxConnsPerHost: 1}
	g.transport.Base = base
	t.Cleanup(func() {
		base.CloseIdleConnections()
		server.Close()
	})
	return g, server, &connections
}

// throttleFirst answers 429 with Retry-After: 1 to the first n requests, and 200 to all others.
func throttleFirst(n int64) http.HandlerFunc {
	var seen atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		if seen.Add(1) <= n {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, strings.Repeat("slow down ", 1000))
			return
		}
		_, _ = io.WriteString(w, "fine")
	}
}

// tc-058 tc-074 tc-076 tc-077: against a real server with one connection: the throttled body is the
// caller's to read and close, a refusal needs no connection even while that body is open, and when
// it is closed the probe goes through on the same connection.
func TestOneConnection(t *testing.T) {
	g, server, connections := realRig(t, throttleFirst(2))
	now := time.Now() // stands still, however long the machine takes, and jumps over the cooldowns
	g.transport.Now = func() time.Time { return now }
	for range 2 {
		response, err := g.client.Get(server.URL)
		if err != nil || response.StatusCode != 429 {
			t.Fatal(response, err)
		}
		for range 20 {
			if _, err := g.client.Get(server.URL); err == nil {
				t.Fatal("sent during the cooldown")
			} else if r, ok := cooldown.AsRefusal(err); !ok || r.RetryAfterSeconds() != 1 {
				t.Fatal(err)
			}
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || len(body) != 10000 {
			t.Errorf("the body of the 429 has %d bytes: %v", len(body), err)
		}
		response.Body.Close()
		now = now.Add(g.table.Snapshot(now)[0].Remaining)
	}
	response, err := g.client.Get(server.URL)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(err)
	}
	// the last response is open for its caller
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "fine" {
		t.Errorf("%q %v", body, err)
	}
	response.Body.Close()
	if connections.Load() != 1 {
		t.Errorf("%d connections, want 1", connections.Load())
	}
}

// R5 R80: a server that is not there, and one whose certificate nobody knows, are attempts without
// a response; they start nothing.
func TestNoConnection(t *testing.T) {
	// where nobody listens; a free port could be somebody's by the time that it is dialled
	const address = "127.0.0.1:1"
	tls := httptest.NewUnstartedServer(throttleFirst(0))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	g, _, _ := realRig(t, throttleFirst(0))
	for _, url := range []string{"http://" + address, tls.URL, "http://" + address, tls.URL} {
		if response, err := g.client.Get(url); err == nil {
			response.Body.Close()
			t.Errorf("%s: %d", url, response.StatusCode)
		} else if _, refused := cooldown.AsRefusal(err); refused {
			t.Errorf("%v", err)
		}
	}
	if got := g.outcomes(); got != "connection connection connection connection" {
		t.Errorf("%s", got)
	}
}

// R6: a body that is cut after status and header fields is no affair of the cooldown's.
func TestCutBody(t *testing.T) {
	g, server, _ := realRig(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	for range 3 {
		response, err := g.client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(response.Body); err == nil {
			t.Error("the body is whole")
		}
		response.Body.Close()
	}
	if g.phase() != cooldown.PhaseOpen || g.outcomes() != "success success success" {
		t.Errorf("%v, %s", g.phase(), g.outcomes())
	}
}

// pipes is an in-memory network: each dial is a net.Pipe to a server of its own, so that virtual
// time works.
type pipes struct {
	mu    sync.Mutex
	dials int
	serve func(dial int, c net.Conn)
}

func (p *pipes) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	p.dials++
	dial := p.dials
	p.mu.Unlock()
	if p.serve == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	client, server := net.Pipe()
	go p.serve(dial, server)
	return client, nil
}

// answerWith reads one request and writes the given bytes, and then waits for the end of the
// connection.
func answerWith(text string) func(int, net.Conn) {
	return func(_ int, c net.Conn) {
		defer c.Close()
		if r, err := http.ReadRequest(bufio.NewReader(c)); err != nil || r == nil {
			return
		}
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
	}
}

const (
	wire429 = "HTTP/1.1 429 Too Many Requests\r\nrEtRy-AfTeR: 600\r\nContent-Length: 0\r\n\r\n"
	wire200 = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
)

// R69 R71 R72: a probe that is killed at any stage of a real exchange (dialling, before the first
// byte of the status, within the header fields, by a reset) frees the slot for the next request;
// ten minutes of cooldown pass in virtual time.
func TestProbeKilledAtEachStage(t *testing.T) {
	for name, stage := range map[string]func(int, net.Conn){
		"dialling": nil,
		"silent":   answerWith(""),
		"headers":  answerWith("HTTP/1.1 200 OK\r\nContent-Le"),
		"reset":    func(_ int, c net.Conn) { c.Close() },
		"garbage":  answerWith("SSH-2.0-not-http\r\n\r\n"),
	} {
		for _, kill := range []string{"cancel", "client timeout", "header timeout"} {
			if kill == "header timeout" && name == "dialling" {
				continue // that limit begins after the request is written
			}
			t.Run(name+" "+kill, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { killProbe(t, stage, kill) })
			})
		}
	}
}

func killProbe(t *testing.T, stage func(int, net.Conn), kill string) {
	network := &pipes{serve: answerWith(wire429)}
	base := &http.Transport{DialContext: network.DialContext}
	if kill == "header timeout" {
		base.ResponseHeaderTimeout = 3 * time.Second
	}
	table := cooldown.New(cooldown.Options{ProbeLease: time.Hour, Strict: func(m cooldown.Misuse) { panic(m) }})
	client := &http.Client{Transport: &cooldownhttp.Transport{Base: base, Table: table}}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://registry.example")
	if err != nil || response.StatusCode != 429 {
		t.Fatal(err)
	}
	response.Body.Close()
	base.CloseIdleConnections()
	time.Sleep(10 * time.Minute)

	network.serve = stage
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch kill {
	case "cancel":
		time.AfterFunc(3*time.Second, cancel)
	case "client timeout":
		client.Timeout = 3 * time.Second
	}
	killed := make(chan error, 1)
	go func() {
		// a POST, which Base does not send again by itself
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://registry.example", nil)
		_, err := client.Do(r)
		killed <- err
	}()
	if err := <-killed; err == nil {
		t.Fatal("answered")
	} else if _, refused := cooldown.AsRefusal(err); refused {
		t.Fatal(err)
	}
	synctest.Wait()

	network.serve = answerWith(wire200)
	response, err = client.Get("http://registry.example")
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("the next request: %v", err)
	}
	response.Body.Close()
	if state := table.Snapshot(time.Now())[0]; state.Phase != cooldown.PhaseOpen || state.Refused != 0 || table.Unsettled() != 0 {
		t.Errorf("%+v, %d unsettled", state, table.Unsettled())
	}
}

// R67: over a real exchange too, the probe's verdict is there before its body.
func TestVerdictBeforeBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{serve: answerWith(wire429)}
		base := &http.Transport{DialContext: network.DialContext, DisableKeepAlives: true}
		table := cooldown.New(cooldown.Options{})
		client := &http.Client{Transport: &cooldownhttp.Transport{Base: base, Table: table}}
		response, err := client.Get("http://registry.example")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		time.Sleep(10 * time.Minute)
		network.serve = answerWith("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nfirst bytes")
		slow, err := client.Get("http://registry.example")
		if err != nil {
			t.Fatal(err)
		}
		network.serve = answerWith(wire200)
		response, err = client.Get("http://registry.example")
		if err != nil {
			t.Fatalf("blocked by a body: %v", err)
		}
		response.Body.Close()
		slow.Body.Close()
	})
}

// R28 tc-047: Go's own transport may send a request with a rewindable body again on a connection
// that died; that is one attempt here, and a request whose GetBody is nil is sent once.
func TestWriteIsSentOnce(t *testing.T) {
	var seen atomic.Int64
	g, server, _ := realRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			seen.Add(1)
			panic(http.ErrAbortHandler)
		}
	})
	g.get(server.URL, 200) // a connection to reuse
	r := request(t, context.Background(), http.MethodPut, server.URL, io.NopCloser(strings.NewReader("once")))
	if _, err := g.client.Do(r); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if seen.Load() != 1 || g.outcomes() != "success connection" {
		t.Errorf("sent %d times, attempts %s", seen.Load(), g.outcomes())
	}
}
