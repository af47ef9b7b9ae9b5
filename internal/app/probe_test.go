package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// R63, R64, R65, R66, R77: after the deadline exactly one read goes out, whatever kind it is; the
// others hear one second and send nothing; its answer restores ordinary traffic. No timer sends
// one.
func TestOneProbe(t *testing.T) {
	for _, probe := range []struct{ method, path string }{
		{"GET", "/npm/p"}, {"HEAD", "/npm/p"}, {"GET", "/npm/p/1.0.0"}, {"GET", "/npm/kept/-/kept-1.0.0.tgz"}, {"HEAD", "/npm/kept/-/kept-1.0.0.tgz"},
	} {
		t.Run(probe.method+" "+probe.path, func(t *testing.T) {
			inWorld(t, "cache: {ttl: 24h}", func(w *world) {
				w.public.Publish("kept", "1.0.0", longAgo, nil)
				w.public.Publish("p", "1.0.0", longAgo, nil)
				w.get("/npm/kept") // so that the file's facts are there
				w.throttled("Retry-After", "60")
				time.Sleep(time.Hour)
				w.sent(2) // nobody asked, so nothing was sent
				if a := w.authorities()[0]; a.State != "due" || a.Remaining != 0 {
					t.Errorf("nobody probes: %+v", a) // R94 R102
				}
				w.public.Answer(func(http.ResponseWriter, *http.Request) bool { time.Sleep(5 * time.Second); return false })
				var first answer
				var wg sync.WaitGroup
				wg.Go(func() { first = w.do(probe.method, probe.path) })
				synctest.Wait()
				if got := w.state(); got != "probing" {
					t.Errorf("state = %s", got)
				}
				for i := range 100 {
					wg.Go(func() { w.want(w.get(fmt.Sprintf("/npm/other%d", i)), 503, 1) })
				}
				synctest.Wait()
				w.sent(3)
				wg.Wait()
				w.want(first, 200, -1)
				w.public.Answer(nil)
				w.want(w.get("/npm/other"), 404, -1)
				if n := len(w.lines("cooldown recovered")); n != 1 {
					t.Errorf("%d recovery lines", n)
				}
			})
		})
	}
}

// R46: callers of the same document join the probe's flight.
func TestProbeIsShared(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("p", "1.0.0", longAgo, nil)
		w.throttled("Retry-After", "60")
		time.Sleep(time.Minute)
		w.public.Answer(func(http.ResponseWriter, *http.Request) bool { time.Sleep(time.Second); return false })
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { w.want(w.get("/npm/p"), 200, -1) })
		}
		wg.Wait()
		w.sent(2)
	})
}

// R66, C03, tc-066: every answer but a throttling one restores ordinary traffic.
func TestAnyOtherAnswerToTheProbeRecovers(t *testing.T) {
	for _, status := range []int{200, 301, 304, 401, 404, 500, 502, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			inWorld(t, "", func(w *world) {
				w.throttled("Retry-After", "60")
				time.Sleep(time.Minute)
				w.public.Always(status)
				w.get("/npm/p")
				if got := w.state(); got != "open" {
					t.Errorf("state = %s", got)
				}
			})
		})
	}
}

// R67: the verdict falls with the header, so a large body does not hold the others up. R54: what
// streams goes on.
func TestProbeIsDecidedAtItsHeader(t *testing.T) {
	inWorld(t, "cache: {ttl: 24h}", func(w *world) {
		w.public.Publish("big", "1.0.0", longAgo, nil)
		w.public.Publish("other", "1.0.0", longAgo, nil)
		w.get("/npm/big")
		w.throttled("Retry-After", "60")
		time.Sleep(time.Minute)
		release := make(chan struct{})
		w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/-/") {
				return false
			}
			rw.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(rw).Flush()
			<-release
			_, _ = io.WriteString(rw, "not the file")
			return true
		})
		var wg sync.WaitGroup
		var file answer
		wg.Go(func() { file = w.get("/npm/big/-/big-1.0.0.tgz") })
		synctest.Wait()
		if got := w.state(); got != "open" {
			t.Errorf("state = %s", got)
		}
		w.want(w.get("/npm/other"), 200, -1)
		close(release)
		wg.Wait()
		if file.err == nil && file.status == 200 {
			t.Error("a wrong file was delivered as whole")
		}
		if got := w.state(); got != "open" {
			t.Errorf("state after a bad body = %s", got)
		}
	})
}

// R69, tc-067: a probe whose client goes away frees the slot; the deadline stays; the next request
// probes.
func TestCancelledProbeReleases(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("p", "1.0.0", longAgo, nil)
		w.throttled("Retry-After", "60")
		time.Sleep(time.Minute)
		w.public.Answer(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
		ctx, cancel := context.WithCancel(w.t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+gateHost+"/npm/p", nil)
		done := make(chan struct{})
		go func() { defer close(done); w.client.Do(req) }()
		synctest.Wait()
		w.want(w.get("/npm/q"), 503, 1)
		cancel()
		<-done
		synctest.Wait()
		if got := w.state(); got != "due" {
			t.Errorf("state = %s", got)
		}
		w.public.Answer(nil)
		w.want(w.get("/npm/p"), 200, -1)
		w.sent(3)
		if got := w.metric(`ecluse_public_requests_total{host="registry.test:80",kind="metadata",outcome="cancelled"}`); got != 1 {
			t.Errorf("cancelled = %v", got)
		}
	})
}

// R70, R71: a probe without an answer frees the slot, opens nothing and doubles nothing (R20);
// others meanwhile hear R65.
func TestBrokenProbeReleases(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.throttled()
		time.Sleep(time.Minute)
		for range 3 {
			w.public.Answer(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
			w.want(w.get("/npm/p"), 503, 1)
			if a := w.authorities()[0]; a.State != "due" || a.Ceiling != 60 {
				t.Errorf("%+v", a)
			}
		}
		w.sent(4)
		w.public.Answer(nil)
		w.want(w.get("/npm/p"), 404, -1)
		if got := w.state(); got != "open" {
			t.Errorf("state = %s", got)
		}
	})
}

// R72, tc-064: a probe that hangs ends with the exchange's time limit, and another may probe.
func TestHangingProbeEnds(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.throttled("Retry-After", "60")
		time.Sleep(time.Minute)
		w.public.Answer(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
		start := time.Now()
		w.want(w.get("/npm/p"), 503, 1)
		if d := time.Since(start); d > 2*time.Minute {
			t.Errorf("the probe held the slot for %v", d)
		}
		w.public.Answer(nil)
		w.want(w.get("/npm/p"), 404, -1)
	})
}

// R68: a throttled probe starts the next cooldown; an artifact's answer is handed on, a listing's
// is not shown.
func TestThrottledProbe(t *testing.T) {
	inWorld(t, "cache: {ttl: 24h}", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.get("/npm/a")
		w.throttled("Retry-After", "60")
		time.Sleep(time.Minute)
		w.public.Always(http.StatusTooManyRequests, "Retry-After", "7")
		w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 429, 7)
		w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 503, 7)
		time.Sleep(7 * time.Second)
		w.want(w.get("/npm/b"), 503, 7) // R45: never the upstream's status
		w.sent(4)
	})
}

// R74: late answers of requests that were sent before. A later throttled one lengthens, never
// shortens and never doubles; a late success ends nothing. R52: requests in flight may each get
// their own 429. R75: one entry line.
func TestLateAnswers(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("ok", "1.0.0", longAgo, nil)
		w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			delay := map[string]time.Duration{"/first": 1, "/same": 1, "/longer": 2, "/shorter": 3, "/ok": 4}[r.URL.Path] * time.Second
			hint := map[string]string{"/first": "60", "/same": "60", "/longer": "90", "/shorter": "5"}[r.URL.Path]
			time.Sleep(delay)
			if hint == "" {
				return false
			}
			rw.Header().Set("Retry-After", hint)
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		var wg sync.WaitGroup
		for path, wait := range map[string]int{"first": 60, "same": 60, "longer": 90, "shorter": 89} {
			wg.Go(func() { w.want(w.get("/npm/"+path), 503, wait) })
		}
		wg.Go(func() { w.want(w.get("/npm/ok"), 200, -1) })
		wg.Wait()
		if a := w.authorities()[0]; a.State != "cooling" || a.Ceiling != 60 || a.Remaining != 88 {
			t.Errorf("%+v", a)
		}
		if n := len(w.lines("cooldown entered")); n != 1 {
			t.Errorf("%d entry lines", n)
		}
		if got := w.metric(`ecluse_public_requests_total{host="registry.test:80",kind="metadata",outcome="throttled"}`); got != 4 {
			t.Errorf("throttled = %v", got)
		}
	})
}

// The storm of the issue: 1,000 requests for 200 packages meet a 429 with Retry-After: 3. tc-042:
// one probe, the others wait.
func TestStorm(t *testing.T) {
	inWorld(t, "", func(w *world) {
		for i := range 200 {
			w.public.Publish(fmt.Sprintf("p%d", i), "1.0.0", longAgo, nil)
		}
		var throttledAt atomic.Int64
		until := time.Now().Add(3 * time.Second)
		w.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			time.Sleep(50 * time.Millisecond)
			if !time.Now().Before(until) {
				time.Sleep(time.Second) // a slow probe
				return false
			}
			throttledAt.CompareAndSwap(0, time.Now().UnixNano())
			rw.Header().Set("Retry-After", "3")
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		storm := func(status map[int]int) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range 1000 {
				wg.Go(func() {
					a := w.get(fmt.Sprintf("/npm/p%d", i%200))
					mu.Lock()
					defer mu.Unlock()
					status[a.status]++
					if a.status == 503 && a.header.Get("Retry-After") == "" {
						t.Error("a refusal without Retry-After")
					}
				})
			}
			wg.Wait()
		}
		first := map[int]int{}
		storm(first)
		if first[503] != 1000 {
			t.Errorf("first wave: %v", first)
		}
		inFlight := w.public.Count() // those that were sent before the first answer
		if inFlight > 200 {
			t.Errorf("%d requests for 200 packages", inFlight)
		}
		deadline := time.Unix(0, throttledAt.Load()).Add(3 * time.Second)
		for time.Now().Add(time.Second).Before(deadline) {
			storm(map[int]int{})
			time.Sleep(700 * time.Millisecond)
		}
		w.sent(inFlight)
		time.Sleep(time.Until(deadline))
		second := map[int]int{}
		storm(second)
		w.sent(inFlight + 1)
		if second[200] == 0 || second[200] > 5 || second[200]+second[503] != 1000 {
			t.Errorf("at the deadline: %v, want the callers of one document served and the others refused", second)
		}
		total := 0.0
		for _, o := range []string{"success", "throttled", "connection", "timeout", "cancelled"} {
			total += w.metric(`ecluse_public_requests_total{host="registry.test:80",kind="metadata",outcome="` + o + `"}`)
		}
		if int(total) != w.public.Count() {
			t.Errorf("the metric says %v, the upstream %d", total, w.public.Count())
		}
	})
}
