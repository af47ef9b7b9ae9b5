package cooldownhttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
)

// R34 R35 R36 R63 R65 R66 tc-042 tc-053 C03: one throttled answer, a hundred clients: nothing is
// sent before the deadline, one probe after it, and then everything again.
func TestCooldownEndToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, cooldown.Options{}, func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("probe") != "" {
				time.Sleep(3 * time.Second) // a slow one
			}
			return reply(r, 200), nil
		})
		first := g.transport.Base
		g.transport.Base = roundTripper(func(r *http.Request) (*http.Response, error) { return reply(r, 429, "7"), nil })
		g.get(registry, 429)
		g.transport.Base = first

		var refused, early atomic.Int64
		var clients sync.WaitGroup
		for i := range 100 {
			clients.Go(func() {
				time.Sleep(time.Duration(i) * 69 * time.Millisecond) // all within 7 s
				if _, err := g.client.Get(registry); cooldown.IsProbeWait(err) || err == nil {
					early.Add(1)
				} else if r, ok := cooldown.AsRefusal(err); ok && r.RetryAfterSeconds() >= 1 && r.RetryAfterSeconds() <= 7 {
					refused.Add(1)
				}
			})
		}
		clients.Wait()
		if refused.Load() != 100 || early.Load() != 0 || g.count() != 0 {
			t.Fatalf("%d refused, %d early, %d sent; want 100, 0, 0", refused.Load(), early.Load(), g.count())
		}
		time.Sleep(7*time.Second - 99*69*time.Millisecond)

		probe := make(chan error, 1)
		go func() {
			response, err := g.client.Get(registry + "?probe=1")
			if err == nil {
				response.Body.Close()
			}
			probe <- err
		}()
		synctest.Wait()
		for range 100 {
			g.refused(registry, time.Second, true)
		}
		if g.count() != 1 {
			t.Fatalf("%d sent while the probe runs, want 1", g.count())
		}
		if err := <-probe; err != nil {
			t.Fatal(err)
		}
		for range 10 {
			g.get(registry, 200)
		}
		if got := g.heard(); got != "entered recovered" {
			t.Errorf("%s", got)
		}
	})
}

// C54 R50 R51: the throttled answer itself reaches its caller as it came; later callers get our
// refusal, which is no HTTP answer at all.
func TestResponseIsUntouched(t *testing.T) {
	for _, status := range []int{200, 204, 302, 304, 404, 429, 503} {
		var original *http.Response
		var copied http.Response
		g := newRig(t, cooldown.Options{}, func(r *http.Request) (*http.Response, error) {
			original = reply(r, status, "7")
			original.Header["retry-after-not-canonical"] = []string{"kept"}
			copied = *original
			copied.Header = original.Header.Clone()
			return original, nil
		})
		r := request(t, context.Background(), http.MethodGet, registry, nil)
		response, err := g.transport.RoundTrip(r)
		if err != nil || response != original || response.Request != r {
			t.Fatalf("%d: not the response that came: %v", status, err)
		}
		seen := *response
		seen.Body, seen.Request, copied.Body, copied.Request = nil, nil, nil, nil
		if !reflect.DeepEqual(seen, copied) {
			t.Fatalf("%d: not the response that came: %v", status, err)
		}
		if body, err := io.ReadAll(response.Body); err != nil || string(body) != "upstream body" {
			t.Errorf("%d: body %q %v", status, body, err)
		}
		if g.sent[0].URL != r.URL || len(r.Header) != 0 {
			t.Errorf("%d: the request was changed", status)
		}
	}
}

// R1 R2 R3 R4 R14 R16 C36 C69 C71 C72 C73 C81 tc-008 tc-052 tc-057 tc-059 tc-062: the status and
// the field of the response decide, in whatever case the field's name comes.
func TestWhatStartsACooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration, layout string) string { return time.Now().UTC().Add(d).Format(layout) }
		for _, test := range []struct {
			status int
			header http.Header
			wait   time.Duration
		}{
			{429, nil, time.Minute},
			{429, http.Header{"Retry-After": nil}, time.Minute},
			{429, http.Header{"Retry-After": {"0"}}, time.Minute},
			{429, http.Header{"Retry-After": {"-5"}}, time.Minute},
			{429, http.Header{"Retry-After": {"5", "5"}}, time.Minute},
			{429, http.Header{"Retry-After": {"5"}, "retry-after": {"5"}}, time.Minute},
			{429, http.Header{"Retry-After": {"5"}}, 5 * time.Second},
			{429, http.Header{"retry-after": {"5"}}, 5 * time.Second},
			{429, http.Header{"RETRY-AFTER": {"5"}}, 5 * time.Second},
			{429, http.Header{"Retry-After": {"9223372037"}}, 10 * time.Minute},
			{429, http.Header{"Retry-After": {"Sun, 06 Nov 1994 08:49:37 GMT"}}, time.Minute},
			{429, http.Header{"Retry-After": {in(time.Hour, "Mon, 02 Jan 2006 15:04:05 GMT")}}, 10 * time.Minute},
			{429, http.Header{"Retry-After": {in(30*time.Second, "Monday, 02-Jan-06 15:04:05 GMT")}}, 30 * time.Second},
			{429, http.Header{"Retry-After": {in(30*time.Second, "Mon Jan _2 15:04:05 2006")}}, 30 * time.Second},
			{503, http.Header{"Retry-After": {"5"}}, 5 * time.Second},
			{503, nil, 0},
			{503, http.Header{"Retry-After": {"0"}}, 0},
			{503, http.Header{"Retry-After": {"soon"}}, 0},
			{500, http.Header{"Retry-After": {"5"}}, 0},
			{502, http.Header{"Retry-After": {"5"}}, 0},
			{403, http.Header{"Retry-After": {"5"}}, 0},
			{408, nil, 0},
		} {
			g := newRig(t, cooldown.Options{}, func(r *http.Request) (*http.Response, error) {
				response := reply(r, test.status)
				response.Header = test.header
				return response, nil
			})
			g.get(registry, test.status)
			if test.wait == 0 {
				for range 8 { // C36: one bad object is no reason to leave the authority alone
					g.get(registry, test.status)
				}
				continue
			}
			g.refused(registry, test.wait, false)
			if g.count() != 1 {
				t.Errorf("%d %v: %d sent", test.status, test.header, g.count())
			}
		}
	})
}

// closeCounter is a body that counts.
type closeCounter struct {
	io.Reader
	closed, read atomic.Int64
}

func (c *closeCounter) Read(p []byte) (int, error) { c.read.Add(1); return c.Reader.Read(p) }
func (c *closeCounter) Close() error               { c.closed.Add(1); return nil }

// R38: a refusal comes before any connection, closes the request's body unread, survives the
// client, and is no attempt.
func TestRefusalThroughClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, cooldown.Options{}, script("429:60"))
		g.get(registry, 429)
		body := &closeCounter{Reader: strings.NewReader("x")}
		_, err := g.client.Post(registry, "text/plain", body)
		var inURLError *url.Error
		var refusal *cooldown.Refusal
		if !errors.As(err, &inURLError) || !errors.As(err, &refusal) || refusal.Wait != time.Minute || refusal.Authority.String() != "registry.example:443" {
			t.Fatalf("%v", err)
		}
		if body.closed.Load() != 1 || body.read.Load() != 0 {
			t.Errorf("body closed %d times and read %d times", body.closed.Load(), body.read.Load())
		}
		if g.count() != 1 || g.outcomes() != "throttled" {
			t.Errorf("%d sent, attempts %s", g.count(), g.outcomes())
		}
		if states := g.table.Snapshot(time.Now()); states[0].Refused != 1 {
			t.Errorf("%+v", states)
		}
	})
}

// tc-045 tc-047 tc-048 tc-050 tc-055 R56: no answer and no failure makes the transport send a
// second time, whatever the method; each request goes through the gate, and a throttling answer is
// an answer, not a failure.
func TestNeverRetries(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"} {
		for _, answer := range []string{"429:1", "429", "503:1", "503", "500", "502", "408", "connection reset"} {
			g := newRig(t, cooldown.Options{}, script(answer))
			// with GetBody: could be sent again
			r := request(t, context.Background(), method, registry, bytes.NewReader([]byte("body")))
			response, err := g.client.Do(r)
			if err == nil {
				response.Body.Close()
			}
			if (err != nil) != (answer == "connection reset") || g.count() != 1 || len(g.attempts) != 1 || g.attempts[0].Method != method {
				t.Errorf("%s answered by %s: %v, %d sent, %d attempts", method, answer, err, g.count(), len(g.attempts))
			}
			if throttled := strings.HasPrefix(answer, "429") || answer == "503:1"; throttled {
				if _, err := g.client.Do(r); err == nil || g.count() != 1 {
					t.Errorf("%s answered by %s: sent again", method, answer)
				}
			}
		}
	}
}

// R24 R25 R27: the key is where the request goes, not what its Host field, its path or its scheme
// says.
func TestKeyedByURL(t *testing.T) {
	g := newRig(t, cooldown.Options{}, script("429:60", "200"))
	r := request(t, context.Background(), http.MethodGet, registry, nil)
	r.Host = "virtual.example"
	response, err := g.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	for _, same := range []string{"https://registry.example/other", "https://REGISTRY.example:443/x?y", "https://registry.example./", "https://user:pw@registry.example/", "http://registry.example:443/"} {
		if _, err := g.client.Get(same); err == nil {
			t.Errorf("%s was sent", same)
		}
	}
	for _, other := range []string{"https://virtual.example/", "https://registry.example:8443/", "http://registry.example/", "https://files.registry.example/"} {
		g.get(other, 200) // tc-049: the second host is tried at once
	}
}

// R28: a redirect is an answer like any other: it is handed on, it ends a probe well, and where it
// points to is nobody's business here.
func TestRedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redirect := func(r *http.Request) (*http.Response, error) {
			response := reply(r, 302)
			response.Header.Set("Location", "https://elsewhere.example/x")
			return response, nil
		}
		g := newRig(t, cooldown.Options{}, redirect)
		g.transport.Base = roundTripper(script("429:5"))
		g.get(registry, 429)
		g.transport.Base = roundTripper(redirect)
		time.Sleep(5 * time.Second)
		g.get(registry, 302)
		if states := g.table.Snapshot(time.Now()); len(states) != 1 || states[0].Phase != cooldown.PhaseOpen {
			t.Fatalf("%+v", states)
		}
		// A client that does follow asks again for the place it goes to.
		g.transport.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "elsewhere.example" {
				return reply(r, 429, "9"), nil
			}
			return redirect(r)
		})
		g.client.CheckRedirect = nil
		g.get(registry, 429)
		g.refused("https://elsewhere.example/y", 9*time.Second, false)
		g.refused(registry, 9*time.Second, false) // the hop is refused, and nothing was sent to it
		g.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		g.get(registry, 302)
	})
}

// Requests that cannot be judged are not sent.
func TestUnusableRequests(t *testing.T) {
	g := newRig(t, cooldown.Options{}, script("200"))
	for _, raw := range []string{"ftp://registry.example/", "https://127.1/", "https://registry.example:0443/", "https://m\u00fcnchen.example/"} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		body := &closeCounter{Reader: strings.NewReader("")}
		if _, err := g.transport.RoundTrip((&http.Request{Method: http.MethodPost, URL: u, Body: body}).WithContext(context.Background())); err == nil || body.closed.Load() != 1 {
			t.Errorf("%s: %v, closed %d times", raw, err, body.closed.Load())
		}
	}
	if _, err := g.transport.RoundTrip(&http.Request{}); err == nil {
		t.Error("a request without a URL")
	}
	g.transport.Table = nil
	if _, err := g.transport.RoundTrip(request(t, context.Background(), http.MethodGet, registry, nil)); !errors.Is(err, cooldownhttp.ErrNoTable) {
		t.Errorf("%v", err)
	}
	if g.count() != 0 {
		t.Errorf("%d sent", g.count())
	}
}

// R54: a body that is streaming when its authority starts to cool goes on to its end.
func TestStreamGoesOn(t *testing.T) {
	reader, writer := io.Pipe()
	g := newRig(t, cooldown.Options{}, func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "stream") {
			response := reply(r, 200)
			response.Body = reader
			return response, nil
		}
		return reply(r, 429, "60"), nil
	})
	response, err := g.client.Get("https://registry.example/stream")
	if err != nil {
		t.Fatal(err)
	}
	g.get(registry, 429)
	go func() {
		_, _ = writer.Write([]byte("still here"))
		writer.Close()
	}()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "still here" {
		t.Errorf("%q %v", body, err)
	}
}

type closer struct {
	http.RoundTripper
	closed int
}

func (c *closer) CloseIdleConnections() { c.closed++ }

func TestCloseIdleConnections(t *testing.T) {
	base := &closer{}
	client := &http.Client{Transport: &cooldownhttp.Transport{Base: base}}
	client.CloseIdleConnections()
	(&cooldownhttp.Transport{Base: roundTripper(nil)}).CloseIdleConnections()
	if base.closed != 1 {
		t.Errorf("closed %d times", base.closed)
	}
}

// tc-045 tc-047 tc-048 tc-055 C80: clients that come back at once, on whatever path and with
// whatever method, all meet the same gate: the upstream hears of none of it.
func TestEagerClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, cooldown.Options{}, script("429:10"))
		g.get(registry, 429)
		// another mount, the same table (R29)
		other := &http.Client{Transport: &cooldownhttp.Transport{Base: g.transport.Base, Table: g.table}}
		var clients sync.WaitGroup
		for i := range 50 {
			client := []*http.Client{g.client, other}[i%2]
			clients.Go(func() {
				for n := range 20 {
					r := request(t, context.Background(), []string{"GET", "PUT", "HEAD", "POST"}[n%4], registry+strings.Repeat("/x", n), strings.NewReader("body"))
					if _, err := client.Do(r); err == nil {
						t.Error("sent")
					}
				}
			})
		}
		clients.Wait()
		if g.count() != 1 {
			t.Errorf("%d sent, want 1", g.count())
		}
		if refused := g.table.Snapshot(time.Now())[0].Refused; refused != 1000 {
			t.Errorf("%d refusals counted, want 1000", refused)
		}
	})
}
