package cooldownhttp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// R96: only a connection that had died before the request is a reason to repeat it: not an upstream
// that takes too long, not a caller who has gone, and not an answer that breaks off.
func TestWhatIsNotRepeated(t *testing.T) {
	for name, test := range map[string]struct {
		act     func(net.Conn)
		gone    bool
		outcome string
	}{
		"too slow":        {func(net.Conn) {}, false, "timeout"},
		"the caller goes": {func(net.Conn) {}, true, "cancelled"},
		"half an answer": {func(c net.Conn) {
			write(c, "HTTP/1.1 200 OK\r\nContent-Le")
			c.Close()
		}, false, "connection"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var arrived atomic.Int64
				network := &pipes{serve: func(_ int, c net.Conn) {
					for r := bufio.NewReader(c); ; {
						if _, err := http.ReadRequest(r); err != nil {
							return
						}
						if arrived.Add(1) == 1 {
							write(c, wire200)
						} else {
							test.act(c)
						}
					}
				}}
				base := &http.Transport{DialContext: network.DialContext, ResponseHeaderTimeout: 3 * time.Second}
				defer base.CloseIdleConnections()
				g := newRig(t, cooldown.Options{}, nil)
				g.transport.Base = base
				fetch(t, g.client, "http://registry.example")
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if test.gone {
					time.AfterFunc(time.Second, leave)
				}
				if response, err := g.client.Do(request(t, ctx, http.MethodGet, "http://registry.example", nil)); err == nil {
					response.Body.Close()
					t.Error("answered")
				}
				if arrived.Load() != 2 || g.outcomes() != "success "+test.outcome {
					t.Errorf("%d requests arrived, attempts %s", arrived.Load(), g.outcomes())
				}
			})
		})
	}
}

// refusedLate sends a request through a base which has a connection for it only when its authority
// has begun to cool, so that it is refused at the last moment, and which ends it in its own way.
func refusedLate(t *testing.T, ctx context.Context, end func(*http.Request) (*http.Response, error)) (*rig, *http.Response, error) {
	t.Helper()
	g := newRig(t, cooldown.Options{}, script("429:60"))
	throttled := g.transport.Base
	g.transport.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPut {
			return throttled.RoundTrip(r)
		}
		g.get(registry, 429)
		ours, theirs := net.Pipe()
		defer theirs.Close()
		trace := httptrace.ContextClientTrace(r.Context())
		trace.GetConn("registry.example:443")
		trace.GotConn(httptrace.GotConnInfo{Conn: ours})
		if _, err := ours.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the connection could still be written to: %v", err)
		}
		return end(r)
	})
	response, err := g.transport.RoundTrip(request(t, ctx, http.MethodPut, registry, nil))
	return g, response, err
}

// R95: a caller who has gone hears that, although his request was refused at the last moment as
// well.
func TestGoneAndRefused(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	g, _, err := refusedLate(t, ctx, func(*http.Request) (*http.Response, error) {
		leave()
		return nil, ctx.Err()
	})
	if _, refused := cooldown.AsRefusal(err); refused || !errors.Is(err, context.Canceled) || g.outcomes() != "throttled" {
		t.Errorf("%v, attempts %s", err, g.outcomes())
	}
}

// R63: an answer that a base brings in spite of a refusal changes nothing, since its permit was
// given back with the refusal.
func TestAnsweredAndRefused(t *testing.T) {
	g, response, err := refusedLate(t, t.Context(), func(r *http.Request) (*http.Response, error) { return reply(r, 429, "300"), nil })
	if err != nil || response.StatusCode != 429 {
		t.Fatal(err)
	}
	response.Body.Close()
	if g.heard() != "entered" || g.phase() != cooldown.PhaseCooling {
		t.Errorf("%s", g.heard())
	}
}

// R1 R15 R74: what an attempt says of the pause is what the table makes of it, as of the answer's
// receipt: that of an answer which changes nothing is the pause that there is; a success has none,
// even during one; and the field is read for those statuses only that may throttle.
func TestAttemptTellsThePause(t *testing.T) {
	answers := map[string]chan *http.Response{"/long": make(chan *http.Response), "/short": make(chan *http.Response), "/fine": make(chan *http.Response)}
	var g *rig
	began := make(chan struct{}, len(answers))
	g = newRig(t, cooldown.Options{}, func(r *http.Request) (*http.Response, error) {
		began <- struct{}{}
		return <-answers[r.URL.Path], nil
	})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	got := make(chan cooldownhttp.Attempt, 1)
	for path := range answers {
		r := request(t, t.Context(), http.MethodGet, "https://registry.example"+path, nil)
		permit, refusal := g.table.Ask(t.Context(), now, authority(t))
		if refusal != nil {
			t.Fatal(refusal)
		}
		go func() {
			_, attempt, _ := g.transport.Send(r, permit)
			got <- attempt
		}()
	}
	for range answers {
		<-began
	}
	var late atomic.Int64
	// each look takes a second
	g.transport.Now = func() time.Time { return now.Add(time.Duration(late.Add(1)-1) * time.Second) }
	for _, test := range []struct {
		path   string
		status int
		hint   string
		wait   time.Duration
		kind   retryafter.Kind
	}{
		{"/long", 429, "60", 60 * time.Second, retryafter.KindSeconds},
		{"/short", 429, "5", 59 * time.Second, retryafter.KindSeconds},
		{"/fine", 500, "5", 0, retryafter.KindMissing},
	} {
		answers[test.path] <- reply(nil, test.status, test.hint)
		if a := <-got; a.Wait != test.wait || a.RetryAfter.Kind != test.kind || a.Status != test.status {
			t.Errorf("%s: %+v", test.path, a)
		}
	}
}

// The verdict is there before the hooks are called: they may send requests on the connection that
// brought the answer.
func TestHooksMaySend(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	_, g, _ := clocked(t)
	g.transport.Base.(*http.Transport).MaxConnsPerHost = 1
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	told := 0
	g.transport.OnAttempt = func(context.Context, cooldownhttp.Attempt) {
		if told++; told > 1 {
			return
		}
		if response, err := g.client.Do(request(t, ctx, http.MethodGet, server.URL, nil)); err != nil {
			t.Errorf("sent by a hook: %v", err)
		} else {
			response.Body.Close()
		}
	}
	g.get(server.URL, 200)
	if told != 2 {
		t.Errorf("%d attempts", told)
	}
}

// R80: a probe without an answer is an attempt, and told as a probe's.
func TestFailedProbeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := cooled(t, cooldown.Options{}, script("connection reset"))
		probeOnce(t, g, t.Context())
		if len(g.attempts) != 2 || !g.attempts[1].Probe || g.attempts[1].Err == nil {
			t.Errorf("%+v", g.attempts)
		}
	})
}

// R80 R95: what is refused when it is to be repeated was sent once, which its caller hears of.
func TestRefusedRepetition(t *testing.T) {
	client, g, _ := clocked(t)
	s := newWireServer(t, fine)
	kept(t, s, client, 1)
	r := request(t, t.Context(), http.MethodGet, s.URL, nil)
	a, err := cooldown.AuthorityOf(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := g.table.Ask(t.Context(), time.Now(), a)
	before := s.script(func(_ int, c net.Conn) {
		other.Finish(time.Now(), http.StatusTooManyRequests, retryafter.Parse([]string{"60"}, time.Now()))
		c.Close()
	})
	permit, _ := g.table.Ask(t.Context(), time.Now(), a)
	_, attempt, err := g.transport.Send(r, permit)
	if _, refused := cooldown.AsRefusal(err); !refused || attempt.Outcome() != "connection" || attempt.Authority != a {
		t.Errorf("%v, %+v", err, attempt)
	}
	if n := s.count() - before; n != 1 || len(g.attempts) != 2 {
		t.Errorf("%d requests arrived, %d attempts", n, len(g.attempts))
	}
}

// R96: a read with a body is repeated with all of it, and not at all if it cannot be had again.
func TestRepeatedWithItsBody(t *testing.T) {
	for name, again := range map[string]bool{"can be had again": true, "cannot": false} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var bodies []string
			g, server, _ := realRig(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				if bodies = append(bodies, string(body)); len(bodies) == 2 {
					panic(http.ErrAbortHandler)
				}
			})
			g.get(server.URL, 200) // a connection to reuse
			var body io.Reader = strings.NewReader("query")
			if !again {
				body = io.NopCloser(body)
			}
			response, err := g.client.Do(request(t, t.Context(), http.MethodGet, server.URL, body))
			if (err == nil) != again {
				t.Errorf("%v", err)
			}
			want := ",query"
			if again {
				want += ",query"
			}
			if err == nil {
				response.Body.Close()
			}
			server.Close()
			if got := strings.Join(bodies, ","); got != want {
				t.Errorf("arrived: %q, want %q", got, want)
			}
		})
	}
}
