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
)

const fileA = "/npm/a/-/a-1.0.0.tgz"

// withFacts publishes a@1.0.0 and lets the gate learn of it.
func (w *world) withFacts() {
	w.t.Helper()
	w.public.Publish("a", "1.0.0", longAgo, nil)
	w.want(w.get("/npm/a"), 200, -1)
}

// R7, R50, R51, R53, C05, C54: the first throttled file answer is handed on as it came; later
// requests hear ours.
func TestThrottledFileIsHandedOn(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead} { // R56
		for _, status := range []int{429, 503} {
			inWorld(t, "", func(w *world) {
				w.withFacts()
				w.public.Always(status, "Retry-After", "0030", "X-Limit", "7", "Connection", "X-Hop", "X-Hop", "1", "Keep-Alive", "timeout=5")
				a := w.do(method, fileA)
				if a.status != status || a.header.Get("Retry-After") != "0030" || a.header.Get("X-Limit") != "7" {
					t.Errorf("%s: %d %v", method, a.status, a.header)
				}
				if a.header.Get("X-Hop") != "" || a.header.Get("Keep-Alive") != "" {
					t.Errorf("hop-by-hop fields were handed on: %v", a.header)
				}
				if want := fmt.Sprintf("upstream says %d", status); method == http.MethodGet && a.body != want {
					t.Errorf("body = %q", a.body)
				}
				w.want(w.do(method, fileA), 503, 30)
				w.want(w.get("/npm/b"), 503, 30) // R31: one authority for both
				w.sent(2)
				if got := w.metric(`ecluse_relay_anomalies_total{ecosystem="npm",kind="artifact",reason="throttled"}`); got != 1 {
					t.Errorf("anomalies = %v", got)
				}
				if got := w.metric(`ecluse_decisions_total{decision="unavailable",ecosystem="npm",kind="artifact"}`); got != 2 {
					t.Errorf("unavailable = %v", got)
				}
				if got := w.metric(`ecluse_public_requests_total{host="registry.test:80",kind="artifact",outcome="throttled"}`); got != 1 {
					t.Errorf("throttled = %v", got)
				}
			})
		}
	}
}

// R3: a 503 without a usable hint is handed on and starts nothing.
func TestPlain503OfAFileIsHandedOn(t *testing.T) {
	for _, hint := range []string{"", "0", "soon"} {
		inWorld(t, "", func(w *world) {
			w.withFacts()
			header := []string{"X-Note", "busy"}
			if hint != "" {
				header = append(header, "Retry-After", hint)
			}
			w.public.Always(503, header...)
			a := w.get(fileA)
			if a.status != 503 || a.header.Get("Retry-After") != hint || a.header.Get("X-Note") != "busy" {
				t.Errorf("%q: %d %v", hint, a.status, a.header)
			}
			if w.state() != "open" {
				t.Error("a cooldown began")
			}
		})
	}
}

// R92: other answers to a file, each with its one honest status.
func TestFileStatuses(t *testing.T) {
	for upstream, status := range map[int]int{
		404: 404, 410: 502, 400: 502, 401: 502, 403: 502, 301: 502, 302: 502, 304: 502, 500: 502, 502: 502, 504: 502, 206: 502, 204: 502,
	} {
		inWorld(t, "", func(w *world) {
			w.withFacts()
			w.public.Always(upstream, "Location", "http://elsewhere.test/")
			a := w.get(fileA)
			w.want(a, status, -1)
			if a.header.Get("Location") != "" || w.network.Dials("elsewhere.test:80") != 0 {
				t.Errorf("%d: a redirect was handed on or followed", upstream)
			}
		})
	}
	inWorld(t, "", func(w *world) {
		w.withFacts()
		w.upstream.Close()
		w.want(w.get(fileA), 503, 1)
	})
}

// R52: two files in flight when the first 429 lands each get their own; nothing new is sent.
func TestFilesInFlightGetTheirOwnAnswer(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.withFacts()
		w.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			time.Sleep(time.Second)
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(429)
			return true
		})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { w.want(w.get(fileA), 429, 60) })
		}
		wg.Wait()
		w.want(w.get(fileA), 503, 60)
		w.sent(3)
	})
}

// R54: a body that streams when its authority begins to cool goes on to its end.
func TestStreamOutlivesACooldown(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.withFacts()
		file := fakenpm.File("a", "1.0.0")
		release := make(chan struct{})
		w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/-/") {
				return false
			}
			_, _ = rw.Write(file[:len(file)/2])
			_ = http.NewResponseController(rw).Flush()
			<-release
			_, _ = rw.Write(file[len(file)/2:])
			return true
		})
		var wg sync.WaitGroup
		var a answer
		wg.Go(func() { a = w.get(fileA) })
		synctest.Wait()
		w.throttled("Retry-After", "60")
		close(release)
		wg.Wait()
		w.want(a, 200, -1)
		if a.body != string(file) {
			t.Error("the body is not whole")
		}
		if w.state() != "cooling" {
			t.Error("the stream changed the state")
		}
	})
}

// C25, C29, C51, R6: a file that is cut, stalls or is not what the listing names never reaches a
// client as a whole one, and starts no cooldown; before the first byte the client still gets an
// honest status.
func TestBadFiles(t *testing.T) {
	file := fakenpm.File("a", "1.0.0")
	wrong := append(append([]byte{}, file[:len(file)-1]...), 'X')
	for name, c := range map[string]struct {
		write  func(rw http.ResponseWriter, r *http.Request)
		status int // 0: the transfer breaks off
	}{
		"cut": {func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = rw.Write(file[:len(file)/2])
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		}, 0},
		"last byte differs": {func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(wrong) }, 0},
		"longer":            {func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(append(file, 'x')) }, 0},
		"shorter": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", fmt.Sprint(len(file)-1))
			_, _ = rw.Write(file[:len(file)-1])
		}, 0},
		"small and wrong": {func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "<html>") }, 502},
		"no byte": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "100")
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		}, 503},
		"stalled": {func(rw http.ResponseWriter, r *http.Request) {
			_, _ = rw.Write(file[:len(file)/2])
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "", func(w *world) {
				w.withFacts()
				w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool { c.write(rw, r); return true })
				a := w.get(fileA)
				if c.status != 0 {
					w.want(a, c.status, map[int]int{502: -1, 503: 1}[c.status])
				} else if a.err == nil {
					t.Errorf("the client took %d bytes of status %d for whole", len(a.body), a.status)
				}
				if w.state() != "open" {
					t.Errorf("state = %s", w.state())
				}
				w.public.Answer(nil)
				w.want(w.get(fileA), 200, -1)
			})
		})
	}
}

// R47, R48: the selected-version cache answers for the listing, never for the file; the rules run
// on it afresh.
func TestSelectedVersionCache(t *testing.T) {
	inWorld(t, "cache: {ttl: 30s, maxStale: 0s}", func(w *world) {
		w.withFacts()
		w.want(w.get(fileA), 200, -1) // selects the version
		time.Sleep(5 * time.Minute)
		w.want(w.get(fileA), 200, -1)
		w.sent(3) // a listing and two files: no second listing
		w.throttled("Retry-After", "600")
		w.want(w.get(fileA), 503, 600)
		time.Sleep(600 * time.Second)
		w.want(w.get(fileA), 200, -1) // expired: a listing as the probe, then the file
		w.sent(6)
	})
}

// A version that was published after the listing was read is found, not called absent.
func TestNewVersionIsNotCalledAbsent(t *testing.T) {
	inWorld(t, "rules: {min-age: {age: 0s}}", func(w *world) {
		w.withFacts()
		time.Sleep(10 * time.Second)
		w.public.Publish("a", "1.0.1", time.Now(), nil)
		w.want(w.get("/npm/a/-/a-1.0.1.tgz"), 200, -1)
		w.want(w.get("/npm/a/-/a-1.0.2.tgz"), 404, -1)
		w.want(w.get("/npm/a/-/a-1.0.2.tgz"), 404, -1)
		w.sent(3) // one listing more, and its absences are believed for a while
	})
}

// R55, R91: a private file hit asks nobody else; a listed place other than the conventional one is
// found; a private redirect is followed over the same origin, and never with the credential to
// another authority.
func TestPrivateFiles(t *testing.T) {
	inWorld(t, withPrivate+"\n", func(w *world) {
		w.private.Publish("a", "1.0.0", time.Time{}, nil)
		w.throttled("Retry-After", "600")
		w.want(w.get(fileA), 200, -1)
		w.private.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			switch r.URL.Path {
			case "/a/-/a-1.0.0.tgz":
				http.Redirect(rw, r, "/download/1", http.StatusFound)
			case "/download/1":
				if r.Header.Get("Authorization") == "Bearer t" {
					_, _ = rw.Write(fakenpm.File("a", "1.0.0"))
				}
			case "/b":
				fmt.Fprintf(rw, `{"name":"b","versions":{"2.0.0":{"name":"b","version":"2.0.0","dist":{"tarball":"http://%s/odd/place","integrity":%q}}}}`, privateHost, fakenpm.Integrity([]byte("odd")))
			case "/odd/place":
				fmt.Fprint(rw, "odd")
			case "/c":
				fmt.Fprintf(rw, `{"name":"c","versions":{"1.0.0":{"name":"c","version":"1.0.0","dist":{"tarball":"http://%s/c/-/c-1.0.0.tgz","integrity":%q}}}}`, privateHost, fakenpm.Integrity(nil))
			case "/c/-/c-1.0.0.tgz":
				http.Redirect(rw, r, "http://elsewhere.test/c.tgz", http.StatusFound)
			default:
				return false
			}
			return true
		})
		if a := w.get(fileA, "Authorization", "Bearer t"); a.status != 200 || a.body != string(fakenpm.File("a", "1.0.0")) {
			t.Errorf("redirect: %d %q", a.status, a.body)
		}
		if a := w.get("/npm/b/-/b-2.0.0.tgz"); a.status != 200 || a.body != "odd" {
			t.Errorf("listed place: %d %q", a.status, a.body)
		}
		w.want(w.get("/npm/c/-/c-1.0.0.tgz"), 502, -1)
		if n := w.network.Dials("elsewhere.test:80"); n != 0 {
			t.Error("an insecure redirect to another authority was followed")
		}
		w.sent(1)
	})
}

// A file that the private upstream lists and lacks is not replaced by the public one of the same
// name.
func TestPublicFileDoesNotStandInForAPrivateOne(t *testing.T) {
	inWorld(t, withPrivate+"\n", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.private.Publish("a", "1.0.0", time.Time{}, nil)
		w.private.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/-/") {
				http.NotFound(rw, r)
				return true
			}
			return false
		})
		w.want(w.get(fileA), 404, -1)
		w.sent(0)
	})
}
