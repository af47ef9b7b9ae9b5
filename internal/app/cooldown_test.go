package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const day = 24 * time.Hour

// throttled starts a cooldown by one listing read that the upstream answers with 429.
func (w *world) throttled(header ...string) {
	w.t.Helper()
	w.public.Always(http.StatusTooManyRequests, header...)
	w.get("/npm/trigger")
	w.public.Answer(nil)
}

func (w *world) state() string {
	w.t.Helper()
	for _, a := range w.authorities() {
		if a.Host == publicHost {
			return a.State
		}
	}
	return "unknown"
}

// R1, R2, R3, R4, R10-R14, R16: which metadata answers start a cooldown, and for how long.
func TestWhatStartsACooldown(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		header []string
		wait   int // of the next request; 0 means that no cooldown began
	}{
		{"429 bare", 429, nil, 60},
		{"429 with seconds, used as given", 429, []string{"Retry-After", "5"}, 5},  // R16
		{"429 over the maximum", 429, []string{"Retry-After", "3600"}, 600},        // R12
		{"429 absurd", 429, []string{"Retry-After", strings.Repeat("9", 40)}, 600}, // R12, C69
		// R13, tc-057
		{"429 zero", 429, []string{"Retry-After", "0"}, 60},
		{"429 negative", 429, []string{"Retry-After", "-5"}, 60},                        // R14, C72
		{"429 malformed", 429, []string{"Retry-After", "1.5"}, 60},                      // R14
		{"429 twice", 429, []string{"Retry-After", "5", "Retry-After", "5"}, 60},        // R14
		{"429 with white space", 429, []string{"Retry-After", " 7\t"}, 7},               // R14
		{"429 date", 429, []string{"Retry-After", "Sat, 01 Jan 2000 00:01:30 GMT"}, 90}, // R11, C73
		{"429 asctime", 429, []string{"Retry-After", "Sat Jan  1 00:01:30 2000"}, 90},   // R11
		{"429 rfc850", 429, []string{"Retry-After", "Saturday, 01-Jan-00 00:01:30 GMT"}, 90},
		// R13, C71
		{"429 past date", 429, []string{"Retry-After", "Wed, 21 Oct 1998 07:28:00 GMT"}, 60},
		{"503 with seconds", 503, []string{"Retry-After", "9"}, 9},
		{"503 bare", 503, nil, 0},
		{"503 zero", 503, []string{"Retry-After", "0"}, 0},
		{"503 malformed", 503, []string{"Retry-After", "soon"}, 0},
		{"503 past date", 503, []string{"Retry-After", "Wed, 21 Oct 1998 07:28:00 GMT"}, 0},
		{"302", 302, []string{"Retry-After", "9"}, 0},
		{"401", 401, []string{"Retry-After", "9"}, 0},
		{"403", 403, []string{"Retry-After", "9"}, 0},
		{"404", 404, []string{"Retry-After", "9"}, 0},
		{"408", 408, []string{"Retry-After", "9"}, 0},
		{"500", 500, []string{"Retry-After", "9"}, 0},
		{"502", 502, []string{"Retry-After", "9"}, 0},
		{"504", 504, []string{"Retry-After", "9"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, "", func(w *world) {
				w.public.Publish("a", "1.0.0", longAgo, nil)
				w.public.Always(c.status, c.header...)
				w.get("/npm/trigger")
				w.public.Answer(nil)
				next := w.get("/npm/a")
				if c.wait > 0 {
					w.want(next, 503, c.wait)
					w.sent(1) // R34
					return
				}
				w.want(next, 200, -1)
				w.sent(2)
			})
		})
	}
}

// R34, R35, R36: while cooling nothing is sent, whoever asks; the wait shrinks and is the same for
// all at one instant.
func TestNothingIsSentWhileCooling(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.throttled("Retry-After", "60")
		time.Sleep(10 * time.Second)
		var wg sync.WaitGroup
		for range 100 {
			for _, path := range []string{"/npm/a", "/npm/@scope%2fb", "/npm/a/-/a-1.0.0.tgz", "/npm/a/1.0.0"} {
				wg.Go(func() { w.want(w.get(path), 503, 50) })
			}
		}
		wg.Wait()
		time.Sleep(49*time.Second + 999*time.Millisecond)
		w.want(w.get("/npm/a"), 503, 1) // never 0
		w.sent(1)
		if got := w.metric(`ecluse_public_requests_total{host="registry.test:80",kind="metadata",outcome="throttled"}`); got != 1 {
			t.Errorf("attempts = %v", got)
		}
	})
}

// R37: what a refused client sees, in npm's words.
func TestRefusalBody(t *testing.T) {
	inWorld(t, "serve: {helpMessage: 'Ask #platform'}", func(w *world) {
		w.throttled("Retry-After", "60")
		a := w.get("/npm/a")
		var body struct{ Error string }
		if err := json.Unmarshal([]byte(a.body), &body); err != nil {
			t.Fatalf("%v: %s", err, a.body)
		}
		if !strings.Contains(body.Error, "rate-limiting us; nothing is sent to registry.test:80 (registry)") || !strings.Contains(body.Error, "Ask #platform") ||
			!strings.Contains(body.Error, "try again in 60 seconds") {
			t.Errorf("error = %q", body.Error)
		}
		if got := a.header.Get("Cache-Status"); !strings.HasPrefix(got, "ecluse; ") || !strings.Contains(got, "detail=cooldown") {
			t.Errorf("Cache-Status = %q", got)
		}
		h := w.do(http.MethodHead, "/npm/a")
		w.want(h, 503, 60)
		if h.body != "" {
			t.Errorf("HEAD has a body: %q", h.body)
		}
	})
}

// R38: a refusal holds no place afterwards.
func TestRefusalHoldsNoPlace(t *testing.T) {
	inWorld(t, "serve: {maxInFlight: 1}", func(w *world) {
		w.throttled("Retry-After", "60")
		for range 50 {
			w.want(w.get("/npm/a"), 503, 60)
		}
		if n := w.network.Dials(publicHost + ":80"); n != 1 {
			t.Errorf("%d dials", n)
		}
	})
}

// C43: more requests than places wait briefly and are then refused for a second.
func TestAdmissionIsBounded(t *testing.T) {
	inWorld(t, "serve: {maxInFlight: 1, wait: 2s}", func(w *world) {
		w.public.Publish("slow", "1.0.0", longAgo, nil)
		w.public.Answer(func(http.ResponseWriter, *http.Request) bool { time.Sleep(10 * time.Second); return false })
		go w.get("/npm/slow")
		synctest.Wait()
		start := time.Now()
		w.want(w.get("/npm/other"), 503, 1)
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("waited %v", d)
		}
		w.want(w.get("/npm/-/ping"), 200, -1)
		time.Sleep(10 * time.Second)
	})
}

// R39, R42: what needs no public read goes on.
func TestCooldownLeavesTheRestAlone(t *testing.T) {
	inWorld(t, withPrivate+", firstParty: ['@acme/*']\n", func(w *world) {
		w.private.Publish("@acme/x", "1.0.0", time.Time{}, nil)
		w.private.Publish("tool", "1.0.0", time.Time{}, nil)
		w.throttled("Retry-After", "600")
		for path, status := range map[string]int{
			"/npm/-/ping": 200, "/livez": 200, "/readyz": 200, "/npm/-/npm/v1/tokens": 405, "/nothing": 404,
			"/npm/@acme/x": 200, "/npm/@acme/x/-/x-1.0.0.tgz": 200, "/npm/tool/-/tool-1.0.0.tgz": 200,
		} {
			w.want(w.get(path), status, -1)
		}
		w.want(w.do(http.MethodPut, "/npm/tool"), 405, -1)
		w.sent(1)
		if got := w.state(); got != "cooling" {
			t.Errorf("state = %s", got)
		}
	})
}

// R40: a denial that can be decided without the cooling authority stays a denial.
func TestDenialOutlivesTheCooldown(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Publish("a", "2.0.0", time.Now().Add(-time.Hour), nil)
		w.want(w.get("/npm/a"), 200, -1)
		w.throttled("Retry-After", "600")
		w.want(w.get("/npm/a/-/a-2.0.0.tgz"), 403, -1)
		w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 503, 600) // R48
		w.sent(2)
	})
}

// R41: a private 401 or 403 comes before any cooldown answer.
func TestPrivateRefusalComesFirst(t *testing.T) {
	for _, status := range []int{401, 403} {
		inWorld(t, withPrivate+"\n", func(w *world) {
			w.throttled("Retry-After", "600")
			w.private.Always(status)
			w.want(w.get("/npm/a"), 403, -1)
			w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 403, -1)
			w.sent(1)
		})
	}
}

// R8: private answers neither start nor consult a cooldown, even on a shared host.
func TestPrivateReadsAreNoConcernOfTheCooldown(t *testing.T) {
	inWorld(t, withPrivate+"\n", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.private.Always(http.StatusTooManyRequests, "Retry-After", "30")
		w.want(w.get("/npm/a"), 503, 30) // R93: with its own Retry-After
		w.sent(0)
		w.private.Always(http.StatusNotFound)
		w.want(w.get("/npm/a"), 200, -1)
		if len(w.authorities()) != 1 {
			t.Errorf("authorities = %v", w.authorities())
		}
	})
}

// R5, R6, R70: no connection and broken bodies start nothing; R92: the client hears 503 with one
// second, never 404 (C01).
func TestConnectionTroubleStartsNothing(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Answer(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		w.want(w.get("/npm/a"), 503, 1)
		w.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool { // cut in the middle
			rw.Header().Set("Content-Length", "1000")
			_, _ = rw.Write([]byte(`{"name":"a","versions":{`))
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		})
		w.want(w.get("/npm/a"), 503, 1)
		w.public.Answer(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
		start := time.Now()
		w.want(w.get("/npm/a"), 503, 1)
		if d := time.Since(start); d < 20*time.Second || d > 2*time.Minute {
			t.Errorf("gave up after %v", d)
		}
		w.public.Answer(nil)
		w.upstream.Close()
		w.want(w.get("/npm/a"), 503, 1)
		if got := w.state(); got != "open" {
			t.Errorf("state = %s", got)
		}
		w.serve(publicHost+":80", w.public)
		w.want(w.get("/npm/a"), 200, -1)
		for outcome, n := range map[string]float64{"connection": 2, "timeout": 1, "success": 2} {
			if got := w.metric(`ecluse_public_requests_total{host="registry.test:80",kind="metadata",outcome="` + outcome + `"}`); got != n {
				t.Errorf("%s = %v, want %v", outcome, got, n)
			}
		}
	})
}

// R17-R20, R22, R79: each failed probe doubles the ceiling up to 600 s; recovery resets it; every
// failed probe is a new entry.
func TestFallbackGrowsWithFailedProbes(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Always(http.StatusTooManyRequests)
		for i, ceiling := range []float64{60, 120, 240, 480, 600, 600} {
			w.get("/npm/a")
			a := w.authorities()[0]
			if a.Ceiling != ceiling || a.Remaining < 60 || a.Remaining > ceiling || a.State != "cooling" {
				t.Errorf("probe %d: %+v, want ceiling %v", i, a, ceiling)
			}
			w.sent(i + 1)
			time.Sleep(time.Duration(a.Remaining*float64(time.Second)) + time.Millisecond)
		}
		if n := len(w.lines("cooldown entered")); n != 6 {
			t.Errorf("%d entry lines", n)
		}
		w.public.Answer(nil)
		w.want(w.get("/npm/a"), 200, -1)
		w.throttled() // another package: the listing of a is kept
		if a := w.authorities()[0]; a.Ceiling != 60 {
			t.Errorf("after recovery: %+v", a)
		}
	})
}

// R21: a failed probe with a usable hint waits as told, and the ceiling doubles all the same.
func TestFailedProbeWithAHint(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.throttled()
		time.Sleep(61 * time.Second)
		w.throttled("Retry-After", "5")
		if a := w.authorities()[0]; a.Ceiling != 120 || a.Remaining != 5 {
			t.Errorf("%+v", a)
		}
	})
}
