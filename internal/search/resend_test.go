package search_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/search"
)

// dropping is a server that answers the first request on each connection and drops every later one
// after reading it, as a server does that gave up a kept connection.
type dropping struct {
	requests    atomic.Int64
	connections atomic.Int64
	answered    atomic.Bool
}

func (d *dropping) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.requests.Add(1)
	if !d.answered.Swap(true) {
		_, _ = w.Write([]byte("{}"))
		return
	}
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

func (d *dropping) start(t *testing.T) string {
	server := httptest.NewUnstartedServer(d)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			d.connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// The trap itself: net/http sends a read a second time on its own when a kept connection breaks.
// This test fails if that ever changes, and shows that the tests below can fail.
func TestNetHTTPResendsByItself(t *testing.T) {
	d := &dropping{}
	url := d.start(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	for range 2 {
		request, _ := http.NewRequest(http.MethodGet, url, nil)
		if response, err := transport.RoundTrip(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body) // else the connection is not kept
			_ = response.Body.Close()
		}
	}
	if n := d.requests.Load(); n != 3 {
		t.Errorf("the server saw %d requests, expected the resent one as a third", n)
	}
}

// S35, tc-047, tc-079, tc-080, tc-081: one method call is one request, also when a reused
// connection is reset, for reads and writes alike; the ambiguous outcome of a write is reported.
func TestNothingIsSentTwice(t *testing.T) {
	for name, send := range map[string]func(*search.Client) error{
		"GET": func(c *search.Client) error { return getManuals(t.Context(), c, search.Bounds{}) },
		"PUT": func(c *search.Client) error { _, err := putManuals(t.Context(), c, search.Bounds{}); return err },
		"POST": func(c *search.Client) error {
			_, err := c.UploadFile(t.Context(), "manuals", uploadOf("hello"), search.Bounds{})
			return err
		},
		"DELETE": func(c *search.Client) error {
			_, err := c.Delete(t.Context(), search.KnowledgeSources, "manuals", search.Condition{}, search.Bounds{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &dropping{}
			// A transport that keeps connections, unlike our own, which would have none to reuse.
			keeping := &http.Transport{}
			t.Cleanup(keeping.CloseIdleConnections)
			client := newClient(t, d.start(t), func(o *search.Options) { o.Transport = keeping })
			if err := getManuals(t.Context(), client, search.Bounds{}); err != nil {
				t.Fatal(err)
			}
			failed := wantCode(t, send(client), search.CodeAmbiguous)
			if failed.Ambiguous != (name != "GET") {
				t.Errorf("ambiguous is %v", failed.Ambiguous)
			}
			if n, c := d.requests.Load(), d.connections.Load(); n != 2 || c != 1 {
				t.Errorf("the server saw %d requests on %d connections, want 2 on one", n, c)
			}
		})
	}
}

// S35: a mutation has no way back to its body, and no idempotency key that would make the transport
// think otherwise.
func TestNoWayBack(t *testing.T) {
	client := over(t, transportFunc(func(r *http.Request) (*http.Response, error) {
		if r.GetBody != nil || r.Body == nil || r.Body == http.NoBody {
			t.Errorf("%s could be sent again", r.Method)
		}
		if _, given := r.Header["Idempotency-Key"]; given {
			t.Error("an idempotency key invites a resend")
		}
		return canned(503, text(""))(r)
	}))
	_ = getManuals(t.Context(), client, search.Bounds{})
	_, _ = putManuals(t.Context(), client, search.Bounds{})
	_, _ = client.UploadFile(t.Context(), "manuals", uploadOf("x"), search.Bounds{})
	_, _ = client.Delete(t.Context(), search.KnowledgeSources, "manuals", search.Condition{}, search.Bounds{})
}

// Our own transport keeps no connection, so that no write meets one that the server has given up.
func TestFreshConnections(t *testing.T) {
	d := &dropping{}
	client := newClient(t, d.start(t))
	_ = getManuals(t.Context(), client, search.Bounds{})
	_ = getManuals(t.Context(), client, search.Bounds{})
	if n := d.connections.Load(); n != 2 {
		t.Errorf("%d connections for 2 requests", n)
	}
}

// tc-048: a throttled write is answered to the caller with its deadline; the emulator sees it once.
func TestThrottledWriteIsNotReplayed(t *testing.T) {
	b := newBed(t)
	b.script(`[{"match":{"method":"PUT"},"act":{"status":429,"headers":{"Retry-After":"20"}}}]`)
	_, err := putManuals(t.Context(), b.client, search.Bounds{})
	failed := wantCode(t, err, search.CodeHTTP)
	if delay, ok := failed.RetryAfter.DelaySeconds(); !ok || delay != 20 || !failed.Ambiguous {
		t.Errorf("the deadline is lost: %+v", failed)
	}
	if n := b.sent(http.MethodPut); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// tc-081, tc-080: the write is carried out, the answer is lost; the client reports an ambiguous
// outcome and sends nothing more.
func TestAcceptedThenDropped(t *testing.T) {
	for _, act := range []string{`{"store":true,"reset":"before-headers"}`, `{"store":true,"status":502}`, `{"store":true,"reset":"after-headers"}`} {
		b := newBed(t)
		b.create()
		b.script(`[{"match":{"method":"POST"},"act":` + act + `}]`)
		ack, err := b.client.UploadFile(t.Context(), "manuals", uploadOf("hello"), search.Bounds{})
		if failed := failure(t, err); !failed.Ambiguous {
			t.Errorf("%s: not ambiguous: %v", act, failed)
		}
		if n := b.sent(http.MethodPost); n != 1 {
			t.Errorf("%s: %d uploads", act, n)
		}
		if files := b.emulator.State().Sources[0].Files; len(files) != 1 {
			t.Errorf("%s: %d files stored", act, len(files))
		}
		if wantAck := act == `{"store":true,"reset":"after-headers"}`; (ack != nil) != wantAck || (wantAck && (ack.Status != 201 || !ack.BodyUnreadable)) {
			t.Errorf("%s: ack is %+v", act, ack)
		}
	}
}
