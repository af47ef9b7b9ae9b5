package app

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// R87 R92: what is retained stands in while the authority cools, and for no other trouble: an
// upstream that merely fails is told as such.
func TestRetainedOnlyWhileCooling(t *testing.T) {
	trouble := map[string]func(http.ResponseWriter, *http.Request) bool{
		"500": func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true },
		"503": func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(503); return true },
		"cut": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
		"silent": func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		},
	}
	cooling := func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	for name, fail := range trouble {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "cache: {ttl: 60s, maxStale: 1h}", func(w *world) {
				w.withFacts()
				w.publishA()
				paths := []string{"/npm/a", "/npm/a/1.0.0", "/pypi/simple/a/", "/pypi/simple/"}
				for _, path := range paths {
					w.want(w.get(path), 200, -1)
				}
				time.Sleep(61 * time.Second)
				w.public.Answer(fail)
				w.pypi.Index.Answer(fail)
				for _, path := range paths {
					w.want(w.get(path), 503, 1)
				}
				w.public.Answer(cooling)
				w.pypi.Index.Answer(cooling)
				for _, path := range paths { // the first of each host meets the answer itself
					w.want(w.get(path), 200, -1)
				}
			})
		})
	}
}

// R87: the list of all projects is retained as long as a listing, and no longer.
func TestRetainedIndexAges(t *testing.T) {
	inWorld(t, "cache: {ttl: 60s, maxStale: 5m}", func(w *world) {
		w.publishA()
		w.want(w.get("/pypi/simple/"), 200, -1)
		time.Sleep(4 * time.Minute)
		w.pypi.Index.Always(http.StatusTooManyRequests, "Retry-After", "600")
		w.want(w.get("/pypi/simple/"), 200, -1)
		time.Sleep(time.Minute)
		w.want(w.get("/pypi/simple/"), 503, 540)
		w.pypiSent(2, 0)
	})
}

// weak are the fields of a version whose integrity is below every floor that counts.
func weak(name, version string) map[string]any {
	return map[string]any{"dist": map[string]any{
		"tarball": "http://" + privateHost + "/" + name + "/-/" + name + "-" + version + ".tgz", "shasum": strings.Repeat("ab", 20),
	}}
}

// R44: a private document whose versions are all below the floor has nothing to serve: while the
// authority cools that is 503 with the remaining time, since nobody knows what the public registry
// has; and versions below the floor are left out of what is served.
func TestPrivateVersionsBelowTheFloor(t *testing.T) {
	for _, private := range []string{withPrivate + "\n", withPrivate + ", privateFailure: degrade\n"} {
		inWorld(t, private, func(w *world) {
			w.private.Publish("a", "1.0.0", time.Time{}, weak("a", "1.0.0"))
			w.private.Publish("b", "1.0.0", time.Time{}, weak("b", "1.0.0"))
			w.private.Publish("b", "2.0.0", time.Time{}, nil)
			w.throttled("Retry-After", "600")
			w.want(w.get("/npm/a"), 503, 600)
			w.want(w.get("/npm/a/1.0.0"), 503, 600)
			b := w.get("/npm/b")
			w.want(b, 200, -1)
			if vs := w.versions(b); len(vs) != 1 || vs["2.0.0"] == nil {
				t.Errorf("served %s", b.body)
			}
			w.sent(1)
		})
	}
}

// R92 C61: a 304 to a question without a validator confirms nothing: not a document that was never
// there, and not one that is too old to be confirmed.
func TestNotModifiedWithoutAValidator(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Always(http.StatusNotModified)
		w.want(w.get("/npm/a"), 502, -1)
		w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 502, -1)
		w.public.Answer(nil)
		w.withFacts()
		time.Sleep(25 * time.Hour)
		w.public.Always(http.StatusNotModified)
		w.want(w.get("/npm/a"), 502, -1)
		for _, s := range w.public.Seen() {
			if s.Header.Get("If-None-Match") != "" {
				t.Errorf("a validator was sent: %v", s)
			}
		}
	})
}

// R44 R93: of two waits the longer one is told, whichever it is, for a listing, one version and a
// file, on a mount that refuses when its private upstream fails and on one that goes on without.
func TestLongerOfTwoWaits(t *testing.T) {
	for _, private := range []string{withPrivate + "\n", withPrivate + ", privateFailure: degrade\n"} {
		for hint, want := range map[string]int{"300": 300, "5": 60} {
			for _, path := range []string{"/npm/a", "/npm/a/1.0.0", fileA} {
				inWorld(t, private, func(w *world) {
					w.throttled("Retry-After", "60")
					w.private.Always(http.StatusServiceUnavailable, "Retry-After", hint)
					if a := w.get(path); a.status != 503 || a.header.Get("Retry-After") != fmt.Sprint(want) {
						t.Errorf("%q: %s with a private hint of %s: %d, %v", private, path, hint, a.status, a.header)
					}
					w.sent(1)
				})
			}
		}
	}
}

// R3 R50: a 503 without a usable hint is everybody's: all who wait for one transfer get it as it
// came, and no cooldown begins.
func TestPlain503ForAllWaiters(t *testing.T) {
	for _, hint := range []string{"", "0", "soon"} {
		inWorld(t, withStore, func(w *world) {
			w.withFacts()
			w.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
				time.Sleep(time.Second)
				rw.Header().Set("X-Note", "busy")
				if hint != "" {
					rw.Header().Set("Retry-After", hint)
				}
				rw.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(rw, "upstream says busy")
				return true
			})
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					a := w.get(fileA)
					if a.status != 503 || a.header.Get("X-Note") != "busy" || a.header.Get("Retry-After") != hint || a.body != "upstream says busy" {
						t.Errorf("%q: %d %v %q", hint, a.status, a.header, a.body)
					}
				})
			}
			all.Wait()
			w.sent(2)
			if w.state() != "open" {
				t.Errorf("%q: a cooldown began", hint)
			}
		})
	}
}

// R50 C51: a refusal whose body breaks off at the upstream is never handed on as a whole one.
func TestCutRefusalBody(t *testing.T) {
	const part = "upstream says that"
	for _, length := range []string{"", "1000"} {
		for _, status := range []int{429, 503} {
			inWorld(t, "", func(w *world) {
				w.withFacts()
				w.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
					if length != "" {
						rw.Header().Set("Content-Length", length)
					}
					rw.WriteHeader(status)
					_, _ = io.WriteString(rw, part)
					_ = http.NewResponseController(rw).Flush()
					panic(http.ErrAbortHandler)
				})
				if a := w.get(fileA); a.err == nil && a.body == part {
					t.Errorf("%d, length %q: the client took a part of the body for all of it", status, length)
				}
				if cooling := w.state() == "cooling"; cooling != (status == 429) {
					t.Errorf("%d: state %s", status, w.state())
				}
			})
		}
	}
}

// A refusal's body is read to a bound: an upstream cannot make the gate hold more.
func TestEndlessRefusalBody(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.withFacts()
		const chunk, most = 64 << 10, 8 << 20
		written := 0
		w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			rw.WriteHeader(http.StatusTooManyRequests)
			for written < most && r.Context().Err() == nil {
				n, err := io.WriteString(rw, strings.Repeat("x", chunk))
				if written += n; err != nil {
					break
				}
			}
			return true
		})
		w.get(fileA)
		synctest.Wait()
		if written >= most {
			t.Errorf("%d bytes of a refusal were read", written)
		}
	})
}

// A companion is read to a bound.
func TestEndlessCompanion(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.publishA()
		w.want(w.get("/pypi/simple/a/"), 200, -1)
		const most = 64 << 20
		written := 0
		w.pypi.Files.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			for written < most && r.Context().Err() == nil {
				n, err := io.WriteString(rw, strings.Repeat("x", 1<<20))
				if written += n; err != nil {
					break
				}
			}
			return true
		})
		w.want(w.get(wheelA+".metadata"), 502, -1)
		synctest.Wait()
		if written >= most {
			t.Errorf("%d bytes of a companion were read", written)
		}
	})
}

// R45 R65 R87, RFC 9211: Cache-Status tells the request that was forwarded and met the throttled
// answer from those that were not sent, and a retained copy from both; a refusal during a probe
// says so in other words than one during the pause.
func TestCacheStatusTellsWhatHappened(t *testing.T) {
	status := func(a answer) string {
		s := a.header.Get("Cache-Status")
		hit := strings.Contains(s, "hit") && !strings.Contains(s, "hit=?0")
		return fmt.Sprintf("cooldown=%t fwd=%t hit=%t", strings.Contains(s, "cooldown"), strings.Contains(s, "fwd="), hit)
	}
	want := func(t *testing.T, what string, a answer, code int, forwarded, hit bool) {
		t.Helper()
		if got := status(a); a.status != code || got != fmt.Sprintf("cooldown=true fwd=%t hit=%t", forwarded, hit) {
			t.Errorf("%s: %d, %q: %s", what, a.status, a.header.Get("Cache-Status"), got)
		}
	}
	inWorld(t, withPrivate+"\n", func(w *world) {
		w.private.Publish("mine", "1.0.0", time.Time{}, nil)
		w.withFacts()
		time.Sleep(61 * time.Second)
		w.public.Always(http.StatusTooManyRequests, "Retry-After", "60")
		want(t, "degraded, forwarded", w.get("/npm/mine"), 200, true, false)
		want(t, "degraded, not sent", w.get("/npm/mine"), 200, false, false)
		want(t, "refused, not sent", w.get("/npm/b"), 503, false, false)
		want(t, "retained", w.get("/npm/a"), 200, false, true)
		time.Sleep(60 * time.Second)
		want(t, "refused, forwarded", w.get("/npm/b"), 503, true, false)
		w.private.Always(http.StatusInternalServerError)
		if got := w.get("/npm/mine").header.Get("Cache-Status"); strings.Contains(got, "hit;") {
			t.Errorf("both failed: %q", got)
		}
	})
	inWorld(t, "", func(w *world) {
		w.throttled("Retry-After", "60")
		pause := w.get("/npm/b")
		time.Sleep(60 * time.Second)
		w.public.Answer(func(http.ResponseWriter, *http.Request) bool { time.Sleep(10 * time.Second); return false })
		go w.get("/npm/p")
		synctest.Wait()
		probe := w.get("/npm/b")
		want(t, "during a probe", probe, 503, false, false)
		if !strings.Contains(probe.body, "recovery probe") || strings.Contains(pause.body, "recovery probe") {
			t.Errorf("during the probe: %s, before it: %s", probe.body, pause.body)
		}
		time.Sleep(20 * time.Second)
	})
}

// R93, RFC 9211: a listing that is degraded because an upstream failed, without a cooldown, says so
// and is not stored.
func TestCacheStatusOfADegradedListing(t *testing.T) {
	inWorld(t, withPrivate+"\n", func(w *world) {
		w.private.Publish("mine", "1.0.0", time.Time{}, nil)
		w.public.Always(http.StatusInternalServerError)
		a := w.get("/npm/mine")
		w.want(a, 200, -1)
		got := a.header.Get("Cache-Status")
		if !strings.Contains(got, "fwd=") || !strings.Contains(got, "degraded") || strings.Contains(got, "cooldown") {
			t.Errorf("Cache-Status = %q", got)
		}
		if a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("Cache-Control = %q", a.header.Get("Cache-Control"))
		}
	})
}

// C81: the gate names itself and its version to every upstream, whatever the client calls itself.
func TestUserAgent(t *testing.T) {
	inWorld(t, withPrivate+"\n", func(w *world) {
		w.withFacts()
		w.private.Publish("mine", "1.0.0", time.Time{}, nil)
		f := w.publishA()
		w.get(fileA, "User-Agent", "npm/11")
		w.get("/npm/mine/-/mine-1.0.0.tgz", "User-Agent", "npm/11")
		w.get("/pypi/simple/a/", "User-Agent", "pip/26")
		w.get("/pypi/files/a/"+f.Name, "User-Agent", "pip/26")
		var agents []string
		for _, seen := range [][]fakenpm.Seen{w.public.Seen(), w.private.Seen()} {
			for _, s := range seen {
				agents = append(agents, s.Header.Get("User-Agent"))
			}
		}
		for _, seen := range [][]fakepypi.Seen{w.pypi.Index.Seen(), w.pypi.Files.Seen()} {
			for _, s := range seen {
				agents = append(agents, s.Header.Get("User-Agent"))
			}
		}
		for _, agent := range agents {
			if agent != "ecluse/test" {
				t.Errorf("an upstream was asked by %q", agent)
			}
		}
		if len(agents) < 7 {
			t.Errorf("%d requests: %v", len(agents), agents)
		}
	})
}
