package cooldownhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
)

// cooled is a rig whose authority has just finished a cooldown of 5 s, so that the next request is
// the probe. Must run in a bubble.
func cooled(t *testing.T, o cooldown.Options, upstream func(*http.Request) (*http.Response, error)) *rig {
	t.Helper()
	answer := script("429:5")
	g := newRig(t, o, func(r *http.Request) (*http.Response, error) { return answer(r) })
	g.get(registry, 429)
	time.Sleep(5 * time.Second)
	answer = upstream
	return g
}

// R66 C03 tc-066: whatever does not throttle opens the authority; the probe's caller gets it as it
// is.
func TestProbeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, status := range []string{"200", "304", "404", "401", "403", "302", "500", "502", "503"} {
			g := cooled(t, cooldown.Options{}, script(status, "200"))
			response, err := g.client.Get(registry)
			if err != nil || response.Status == "" {
				t.Fatal(err)
			}
			response.Body.Close()
			g.get(registry, 200)
			if g.heard() != "entered recovered" {
				t.Errorf("%s: %s", status, g.heard())
			}
		}
	})
}

// R68 R19 R21 R79: a throttling answer to the probe is the next cooldown, and it reaches the
// probe's caller as it came.
func TestProbeThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := cooled(t, cooldown.Options{Rand: func(n int64) int64 { return n - 1 }}, script("429", "503:7", "200"))
		g.get(registry, 429)
		g.refused(registry, 2*time.Minute, false)
		time.Sleep(2 * time.Minute)
		g.get(registry, 503)
		g.refused(registry, 7*time.Second, false)
		time.Sleep(7 * time.Second)
		g.get(registry, 200)
		if got := g.heard(); got != "entered entered entered recovered" {
			t.Errorf("%s", got)
		}
		if tr := g.transitions[2]; !tr.Probe || tr.Ceiling != 4*time.Minute || tr.Hint != cooldown.HintSeconds || tr.Status != 503 {
			t.Errorf("%+v", tr)
		}
	})
}

// R67: the decision falls when status and header fields are there; a body that takes for ever keeps
// nobody waiting.
func TestDecidesAtHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		g := cooled(t, cooldown.Options{}, func(r *http.Request) (*http.Response, error) {
			response := reply(r, 200)
			if r.URL.Path == "/huge" {
				response.Body = reader
			}
			return response, nil
		})
		response, err := g.client.Get("https://registry.example/huge")
		if err != nil {
			t.Fatal(err)
		}
		g.get(registry, 200) // the probe's body has not brought a byte yet
		// R6 R54: and when it is cut, that changes nothing.
		writer.CloseWithError(io.ErrUnexpectedEOF)
		if _, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v", err)
		}
		response.Body.Close()
		g.get(registry, 200)
	})
}

// hang waits for the end of the request's context, as a dial or a wait for header fields does.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

// R69 R70 R71 R72 tc-065 tc-067: however a probe ends without an answer, the next request is the
// probe, the deadline is not moved, the ceiling not doubled, and nobody is told that the authority
// is open.
func TestProbeEndsWithoutAnswer(t *testing.T) {
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		upstream func(*http.Request) (*http.Response, error)
		ctx      func(context.Context) (context.Context, context.CancelFunc)
		outcome  string
	}{
		"refused": {upstream: func(*http.Request) (*http.Response, error) { return nil, boom }, outcome: "connection"},
		"cancelled": {upstream: hang, outcome: "cancelled", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}},
		"cancelled with a cause": {upstream: hang, outcome: "cancelled", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(boom) })
			return ctx, func() { cancel(nil) }
		}},
		"timeout": {upstream: hang, outcome: "timeout", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}},
		"panic":   {upstream: func(*http.Request) (*http.Response, error) { panic(boom) }, outcome: "connection"},
		"goexit":  {upstream: func(*http.Request) (*http.Response, error) { runtime.Goexit(); return nil, nil }, outcome: "connection"},
		"nothing": {upstream: func(*http.Request) (*http.Response, error) { return nil, nil }, outcome: "connection"},
		"both":    {upstream: func(r *http.Request) (*http.Response, error) { return reply(r, 200), boom }, outcome: "connection"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := test.upstream
				g := cooled(t, cooldown.Options{}, func(r *http.Request) (*http.Response, error) { return answer(r) })
				for range 3 {
					ctx, cancel := context.Background(), context.CancelFunc(func() {})
					if test.ctx != nil {
						ctx, cancel = test.ctx(ctx)
					}
					probeOnce(t, g, ctx)
					cancel()
					if state := g.table.Snapshot(time.Now())[0]; state.Phase != cooldown.PhaseDue || state.Remaining != 0 || state.Ceiling != cooldown.Fallback {
						t.Fatalf("%+v", state)
					}
				}
				if got, want := g.outcomes(), "throttled"+strings.Repeat(" "+test.outcome, 3); got != want {
					t.Errorf("%s, want %s", got, want)
				}
				answer = script("200")
				g.get(registry, 200)
				if g.heard() != "entered recovered" || !g.attempts[4].Probe || g.attempts[0].Probe {
					t.Errorf("%s %+v", g.heard(), g.attempts)
				}
			})
		})
	}
}

// probeOnce sends one request that must become the probe and must not be answered.
func probeOnce(t *testing.T, g *rig, ctx context.Context) {
	t.Helper()
	before := g.count()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		if response, err := g.transport.RoundTrip(request(t, ctx, http.MethodGet, registry, nil)); err == nil {
			t.Errorf("answered with %d", response.StatusCode)
		}
	}()
	<-done
	if g.count() != before+1 {
		t.Fatalf("%d sent, want 1", g.count()-before)
	}
}

// A panic of Base goes on as it is.
func TestPanicGoesOn(t *testing.T) {
	g := newRig(t, cooldown.Options{}, func(*http.Request) (*http.Response, error) { panic("as it is") })
	defer func() {
		if got := recover(); got != "as it is" {
			t.Errorf("%v", got)
		}
	}()
	_, _ = g.transport.RoundTrip(request(t, context.Background(), http.MethodGet, registry, nil))
	t.Error("no panic")
}

// R69: a caller that is gone before it has begun is not sent, does not become the probe, and is no
// attempt.
func TestGoneBeforeItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := cooled(t, cooldown.Options{}, script("200"))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := g.transport.RoundTrip(request(t, ctx, http.MethodGet, registry, nil)); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v", err)
		}
		if g.count() != 1 || g.outcomes() != "throttled" || g.phase() != cooldown.PhaseDue {
			t.Errorf("%d sent, attempts %s", g.count(), g.outcomes())
		}
		g.get(registry, 200)
	})
}

// R72 R73 tc-064 tc-068 tc-069: a probe that hangs gives up its place with its lease; when it comes
// back it neither opens the authority nor frees the place of the one that came after it.
func TestHangingProbe(t *testing.T) {
	for name, late := range map[string]func(r *http.Request) (*http.Response, error){
		"answered": script("200"), "throttled": script("429"), "failed": script("connection reset"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := cooled(t, cooldown.Options{ProbeLease: 30 * time.Second}, func(r *http.Request) (*http.Response, error) {
					if r.URL.Path == "/hangs" {
						time.Sleep(40 * time.Second)
						return late(r)
					}
					time.Sleep(20 * time.Second)
					return reply(r, 200), nil
				})
				go func() {
					if response, err := g.client.Get("https://registry.example/hangs"); err == nil {
						response.Body.Close()
					}
				}()
				synctest.Wait()
				g.refused(registry, time.Second, true)
				time.Sleep(30 * time.Second)
				second := make(chan struct{})
				go func() {
					defer close(second)
					if response, err := g.client.Get(registry); err != nil || response.StatusCode != 200 {
						t.Errorf("%v, want a 200", err)
					}
				}()
				synctest.Wait()
				g.refused(registry, time.Second, true)
				time.Sleep(15 * time.Second) // the first has come back meanwhile
				g.refused(registry, time.Second, true)
				if g.count() != 3 {
					t.Errorf("%d sent, want 3", g.count())
				}
				<-second
				g.get(registry, 200)
			})
		})
	}
}

// R74: a success that was under way when the cooldown began does not end it.
func TestLateSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, cooldown.Options{}, func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" {
				time.Sleep(10 * time.Second)
				return reply(r, 200), nil
			}
			return reply(r, 429, "60"), nil
		})
		slow := make(chan struct{})
		go func() {
			defer close(slow)
			if response, err := g.client.Get("https://registry.example/slow"); err != nil || response.StatusCode != 200 {
				t.Errorf("%v, want a 200", err)
			}
		}()
		synctest.Wait()
		g.get(registry, 429)
		<-slow
		g.refused(registry, 50*time.Second, false)
	})
}

// R52 R75: several requests under way when the first throttled answer lands may each get their own;
// they make one entry.
func TestSeveralThrottledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, cooldown.Options{}, func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return reply(r, 429, "60"), nil
		})
		for range 20 {
			go func() {
				if response, err := g.client.Get(registry); err != nil || response.StatusCode != 429 {
					t.Errorf("%v, want a 429", err)
				}
			}()
		}
		time.Sleep(2 * time.Second)
		g.refused(registry, 59*time.Second, false)
		if g.heard() != "entered" || g.count() != 20 {
			t.Errorf("%s after %d", g.heard(), g.count())
		}
	})
}

// tc-043: a timer that fires early gets a refusal, not a request.
func TestEarlyTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, cooldown.Options{}, script("429:5", "200"))
		g.get(registry, 429)
		time.Sleep(5*time.Second - 11*time.Millisecond)
		g.refused(registry, 11*time.Millisecond, false)
		if g.count() != 1 {
			t.Errorf("%d sent", g.count())
		}
		time.Sleep(11 * time.Millisecond)
		g.get(registry, 200)
	})
}
