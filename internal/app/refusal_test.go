package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// counted checks that /metrics, the API and the status page agree on how many client requests a
// cooldown concerned (R101).
func (w *world) counted(authority string, want map[string]int) {
	w.t.Helper()
	sum := 0
	for kind, n := range want {
		sum += n
		if got := w.metric(`ecluse_cooldown_refusals_total{host="` + authority + `",kind="` + kind + `"}`); got != float64(n) {
			w.t.Errorf("metric of %s = %v, want %d", kind, got, n)
		}
	}
	for _, a := range w.authorities() {
		if fmt.Sprintf("%s:%d", a.Host, a.Port) == authority && a.Refused != uint64(sum) {
			w.t.Errorf("the API says %d, want %d", a.Refused, sum)
		}
	}
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://127.0.0.1:4874/", nil))
	row := regexp.MustCompile(`<td>` + regexp.QuoteMeta(authority) + `</td>.*<td class="n">(\d+)</td></tr>`).FindStringSubmatch(rec.Body.String())
	if row == nil || row[1] != strconv.Itoa(sum) {
		w.t.Errorf("the page says %v, want %d", row, sum)
	}
}

const aboutRegistry = `; authority="registry.test:80"; part=registry; detail=cooldown`

// R101, R80, R46: of a crowd that shares a throttled read, one request met the answer and is an
// attempt; the others were refused because of it. Each is counted once, and says which it was.
func TestWaitersOfAThrottledRead(t *testing.T) {
	inWorld(t, "", func(w *world) {
		const crowd = 20
		w.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			time.Sleep(time.Second)
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		said := make(chan string, crowd)
		var wg sync.WaitGroup
		for range crowd {
			wg.Go(func() {
				a := w.get("/npm/a")
				w.want(a, 503, 60)
				said <- a.header.Get("Cache-Status")
			})
		}
		wg.Wait()
		close(said)
		times := map[string]int{}
		for s := range said {
			times[s]++
		}
		if times["ecluse; fwd=miss"+aboutRegistry] != 1 || times["ecluse; fwd=miss; collapsed"+aboutRegistry] != crowd-1 {
			t.Errorf("Cache-Status: %v", times)
		}
		w.counted("registry.test:80", map[string]int{"metadata": crowd - 1})
		a := w.get("/npm/a")
		if got := a.header.Get("Cache-Status"); got != "ecluse; hit=?0"+aboutRegistry {
			t.Errorf("Cache-Status = %s", got)
		}
		w.counted("registry.test:80", map[string]int{"metadata": crowd})
		if got := w.metric(`ecluse_public_requests_total{host="registry.test:80",kind="metadata",outcome="throttled"}`); got != 1 {
			t.Errorf("attempts = %v", got)
		}
	})
}

// R101, R50, R51: the same for a transfer that is shared: one gets the upstream's answer, the
// others hear of the cooldown.
func TestWaitersOfAThrottledTransfer(t *testing.T) {
	inWorld(t, withStore, func(w *world) {
		w.withFacts()
		w.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			time.Sleep(time.Second)
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		statuses := make(chan int, 10)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				a := w.get(fileA)
				if a.status == 503 && a.header.Get("Cache-Status") != "ecluse; fwd=miss; collapsed"+aboutRegistry {
					t.Errorf("Cache-Status = %s", a.header.Get("Cache-Status"))
				}
				statuses <- a.status
			})
		}
		wg.Wait()
		close(statuses)
		times := map[int]int{}
		for s := range statuses {
			times[s]++
		}
		if times[429] != 1 || times[503] != 9 {
			t.Errorf("statuses: %v", times)
		}
		w.counted("registry.test:80", map[string]int{"artifact": 9, "metadata": 0})
		w.sent(2)
	})
}

// R101, R43, R87: a request that is served degraded is counted once, with the refusals; the one
// whose read met the answer is an attempt.
func TestDegradedAnswersAreCounted(t *testing.T) {
	inWorld(t, "cache: {maxStale: 1h}", func(w *world) {
		w.withFacts()
		time.Sleep(2 * time.Minute)
		w.public.Always(http.StatusTooManyRequests, "Retry-After", "60")
		for i, path := range []string{"/npm/a", "/npm/a", "/npm/a/1.0.0", "/npm/a/latest"} {
			a := w.get(path)
			w.want(a, 200, -1)
			if got := a.header.Get("Cache-Status"); got != "ecluse; hit"+aboutRegistry {
				t.Errorf("%s: Cache-Status = %s", path, got)
			}
			w.counted("registry.test:80", map[string]int{"metadata": i})
		}
		w.get(fileA)
		w.counted("registry.test:80", map[string]int{"metadata": 3, "artifact": 1})
		if got := w.metric(`ecluse_degraded_listings_total{ecosystem="npm",reason="retained"}`); got != 4 {
			t.Errorf("retained = %v", got)
		}
	})
	inWorld(t, withPrivate+"\n", func(w *world) {
		w.private.Publish("a", "1.0.0", time.Time{}, nil)
		w.public.Always(http.StatusTooManyRequests, "Retry-After", "60")
		for i, how := range []string{"fwd=miss", "hit=?0", "hit=?0"} {
			a := w.get("/npm/a")
			w.want(a, 200, -1)
			if got := a.header.Get("Cache-Status"); got != "ecluse; "+how+aboutRegistry {
				t.Errorf("Cache-Status = %s", got)
			}
			w.counted("registry.test:80", map[string]int{"metadata": i})
		}
	})
	inWorld(t, "cache: {maxStale: 1h}", func(w *world) {
		w.publishA()
		w.get("/pypi/simple/")
		time.Sleep(2 * time.Minute)
		w.pypi.Index.Always(http.StatusTooManyRequests, "Retry-After", "60")
		for i := range 3 {
			w.want(w.get("/pypi/simple/"), 200, -1)
			w.counted("index.test:80", map[string]int{"metadata": i})
		}
	})
}

// R101: every refusal names what cools, in npm's words and in the Python index's.
func TestRefusalNamesWhatCools(t *testing.T) {
	inWorld(t, "cache: {ttl: 24h}", func(w *world) {
		w.publishA()
		w.withFacts()
		w.want(w.get("/pypi/simple/a/"), 200, -1)
		w.throttled("Retry-After", "60")
		w.pypi.Index.Always(http.StatusTooManyRequests, "Retry-After", "60")
		w.get("/pypi/simple/b/")
		w.pypi.Files.Always(http.StatusTooManyRequests, "Retry-After", "60")
		w.get(wheelA)
		for path, what := range map[string][2]string{
			"/npm/b": {"registry.test:80", "registry"}, fileA: {"registry.test:80", "registry"},
			"/pypi/simple/b/": {"index.test:80", "index"}, "/pypi/simple/": {"index.test:80", "index"},
			wheelA: {"files.test:80", "files"}, wheelA + ".metadata": {"files.test:80", "files"},
		} {
			a := w.get(path)
			w.want(a, 503, 60)
			w.names(a, what[0], what[1])
			head := w.do(http.MethodHead, path)
			w.want(head, 503, 60)
			if head.header.Get("Cache-Status") != a.header.Get("Cache-Status") {
				t.Errorf("HEAD %s: %s", path, head.header.Get("Cache-Status"))
			}
		}
	})
}

// R44, R101: with a private failure the longer of the two waits is heard, and what cools is named
// when that is it.
func TestCoolingIsNamedBesideAPrivateFailure(t *testing.T) {
	inWorld(t, "pypi, private: 'http://"+ownHost+"/simple/'\n", func(w *world) {
		w.pypi.Index.Always(http.StatusTooManyRequests, "Retry-After", "60")
		w.get("/pypi/simple/a/")
		w.pypiOwn.Publish("a", fakepypi.Wheel("a", "1.0"))
		w.pypiOwn.Index.Always(http.StatusInternalServerError)
		for _, path := range []string{"/pypi/simple/a/", "/pypi/simple/"} {
			a := w.get(path)
			w.want(a, 503, 60)
			w.names(a, "index.test:80", "index")
			if !strings.Contains(a.body, "the private one fails") {
				t.Errorf("%s: %s", path, a.body)
			}
		}
		w.pypiOwn.Index.Always(http.StatusServiceUnavailable, "Retry-After", "90")
		for _, path := range []string{"/pypi/simple/a/", "/pypi/simple/"} {
			a := w.get(path)
			w.want(a, 503, 90)
			if a.header.Get("Cache-Status") != "" {
				t.Errorf("%s: %v", path, a.header)
			}
		}
	})
}

// R50: a throttled answer to a file keeps its status and its fields, also when its body is too
// long, is cut, or does not come to its end.
func TestBrokenRefusalBodies(t *testing.T) {
	for name, send := range map[string]func(http.ResponseWriter, *http.Request){
		"too long": func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, 1<<20+1)) },
		"cut": func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = rw.Write([]byte("half"))
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		},
		"without end": func(rw http.ResponseWriter, r *http.Request) {
			_, _ = rw.Write([]byte("half"))
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "", func(w *world) {
				w.withFacts()
				w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
					rw.Header().Set("Retry-After", "0030")
					rw.Header().Set("X-Limit", "7")
					rw.Header().Set("Digest", "of the whole")
					rw.WriteHeader(http.StatusTooManyRequests)
					send(rw, r)
					return true
				})
				start := time.Now()
				a := w.get(fileA)
				if a.status != 429 || a.header.Get("Retry-After") != "0030" || a.header.Get("X-Limit") != "7" || a.err != nil {
					t.Errorf("%d %v, %v", a.status, a.header, a.err)
				}
				if a.body != "" || a.header.Get("Content-Length") != "0" || a.header.Get("Digest") != "" {
					t.Errorf("%d bytes of body, %v", len(a.body), a.header)
				}
				if d := time.Since(start); d > 10*time.Second {
					t.Errorf("answered after %v", d)
				}
				w.want(w.get("/npm/b"), 503, 30-int(time.Since(start).Seconds()))
				w.public.Answer(nil)
				synctest.Wait()
			})
		})
	}
}
