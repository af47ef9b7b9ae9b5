package gate

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

func withStore(w *toy.World, o *Options) {
	store := cache.OpenFiles(cache.FilesOptions{Path: w.T.TempDir(), MaxBytes: 64 << 20, Proof: integrity.OfFileName})
	w.T.Cleanup(func() { store.Close() })
	o.Store = store
}

func otherHost(w *toy.World, o *Options) {
	o.Files = []*upstream.Public{o.Public, w.PublicUpstream(toy.FilesHost)}
}

// want checks that a file is the one that was published.
func (w *world) wantFile(name, version string) *Artifact {
	w.t.Helper()
	a, body, err := w.file(name, version)
	if err != nil || body != string(fakenpm.File(name, version)) || a.Status != http.StatusOK {
		w.t.Fatalf("%d bytes, %v", len(body), err)
	}
	return a
}

// C12, C44, R47: the facts of a version spare the listing read for a while, whatever happens to the
// listing, and a file is asked for each time where nothing is stored.
func TestFile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		a := w.wantFile("a", "1.0.0")
		if a.Header.Get("Cache-Control") != "private, no-transform" || a.Header.Get("Content-Length") == "" {
			t.Error(a.Header)
		}
		w.Sent(2)
		time.Sleep(versionTTL - 1)
		w.wantFile("a", "1.0.0")
		w.Sent(3)
		time.Sleep(time.Nanosecond)
		w.wantFile("a", "1.0.0")
		w.Sent(5)
		head, body, err := w.artifact(ArtifactRequest{Method: http.MethodHead, Name: "a", File: toy.File("a", "1.0.0")})
		if err != nil || body != "" || head.Header.Get("Content-Length") != strconv.Itoa(len(fakenpm.File("a", "1.0.0"))) {
			t.Error(head, err)
		}
		_, _, err = w.artifact(ArtifactRequest{Method: http.MethodGet, Name: "a", File: "b-1.0.0.tgz"})
		failed[*NotFound](t, err)
	})
}

// Where only links count, a file at a host that is not configured is not there; one at a host of
// files is, and its refusals name that host.
func TestLinkedFile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Public.URL = "http://files.test"
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		w.wantFile("a", "1.0.0")
		w.Public.Publish("a", "2.0.0", toy.LongAgo, map[string]any{"dist": map[string]any{"tarball": "http://other.test/a-2.0.0.tgz"}})
		time.Sleep(time.Minute)
		_, _, err := w.file("a", "2.0.0")
		failed[*NotFound](t, err)
		w.want("a", Complete, "1.0.0")
		rows, err := w.gate.Explain(t.Context(), "a", "", "")
		if err != nil || len(rows) != 2 || rows[1].Rule != "unreachable" || rows[0].File == "" {
			t.Error(rows, err)
		}
		w.Throttle(60)
		if a, _, err := w.file("a", "1.0.0"); err != nil || !a.Throttled {
			t.Fatal(a, err)
		}
		_, _, err = w.file("a", "1.0.0")
		if e := failed[*Unavailable](t, err); e.Authority != "files.test:80" || e.Part != "files" {
			t.Errorf("%+v", e)
		}
	}, linksOnly, otherHost)
	inWorld(t, func(t *testing.T, w *world) { // mirrors list the addresses of other hosts
		w.Public.URL = "http://other.test"
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		w.wantFile("a", "1.0.0")
	})
}

// R3, R50, R51: a throttled answer is handed to one caller as it came, and the others hear of the
// cooldown; a refusal without a cooldown is for everybody. R53: each is counted.
func TestRelayedRefusal(t *testing.T) {
	for _, stored := range []option{func(*toy.World, *Options) {}, withStore} {
		inWorld(t, func(t *testing.T, w *world) {
			w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
			w.want("a", Complete, "1.0.0")
			w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
				time.Sleep(time.Second)
				rw.Header().Set("Retry-After", "60")
				rw.Header().Set("Connection", "X-Hop")
				rw.Header().Set("X-Hop", "1")
				rw.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(rw, "slow down")
				return true
			})
			var wg sync.WaitGroup
			var mu sync.Mutex
			relayed, waiting := 0, 0
			for range 10 {
				wg.Go(func() {
					a, body, err := w.file("a", "1.0.0")
					mu.Lock()
					defer mu.Unlock()
					if err == nil && a.Status == 429 && a.Relayed && body == "slow down" && a.Header.Get("X-Hop") == "" && a.Header.Get("Retry-After") == "60" {
						relayed++
					} else if e := failed[*Unavailable](t, err); e.Cooldown && e.RetryAfter() == 60 {
						waiting++
					}
				})
			}
			wg.Wait()
			if relayed+waiting != 10 || relayed == 0 {
				t.Errorf("%d relayed, %d wait", relayed, waiting)
			}
			if w.gate.opts.Store != nil && relayed != 1 {
				t.Errorf("%d relayed one answer", relayed)
			}
			time.Sleep(time.Hour)
			w.Public.Answer(nil)
			w.want("a", Complete, "1.0.0")
			w.Public.Always(http.StatusServiceUnavailable)
			for range 2 {
				if a, body, err := w.file("a", "1.0.0"); err != nil || a.Status != 503 || a.Throttled || body != "upstream says 503" {
					t.Error(a, body, err)
				}
			}
			for code, check := range map[int]func(error){
				404: func(err error) { failed[*NotFound](t, err) },
				403: func(err error) { failed[*BadUpstream](t, err) },
			} {
				w.Public.Always(code)
				_, _, err := w.file("a", "1.0.0")
				check(err)
			}
			if got := w.Metric(`ecluse_relay_anomalies_total{ecosystem="toy",kind="artifact",reason="status"}`); got != "4" {
				t.Errorf("%s anomalies", got)
			}
		}, stored)
	}
}

// R50: a refusal whose body is too large or does not come is handed on without it, and without the
// fields that describe it.
func TestRelayedRefusalWithoutItsBody(t *testing.T) {
	for name, write := range map[string]func(io.Writer){
		"large": func(w io.Writer) { _, _ = w.Write(make([]byte, 1<<20+1)) },
		"slow": func(w io.Writer) {
			_, _ = io.WriteString(w, "x")
			if f, ok := w.(http.Flusher); ok {
				f.Flush()
			}
			time.Sleep(time.Minute)
		},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
			w.want("a", Complete, "1.0.0")
			w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
				rw.Header().Set("Digest", "x")
				rw.WriteHeader(http.StatusServiceUnavailable)
				write(rw)
				return true
			})
			a, body, err := w.file("a", "1.0.0")
			if err != nil || a.Status != 503 || body != "" || a.Header.Get("Digest") != "" || a.Header.Get("Content-Length") != "0" {
				t.Error(name, a, len(body), err)
			}
			if a, _, err := w.artifact(ArtifactRequest{Method: http.MethodHead, Name: "a", File: toy.File("a", "1.0.0")}); err != nil || a.Status != 503 {
				t.Error(name, a, err)
			}
			time.Sleep(time.Minute)
		})
	}
}

// R88: a public file is fetched once for everybody, verified before it is kept, and then served
// from the store, cooldown or not. A file that is not the listed one is nobody's (C51).
func TestStoredFile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		head := func() (*Artifact, error) {
			a, _, err := w.artifact(ArtifactRequest{Method: http.MethodHead, Name: "a", File: toy.File("a", "1.0.0")})
			return a, err
		}
		if a, err := head(); err != nil || a.Status != 200 {
			t.Error(a, err)
		}
		w.Sent(2)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { w.wantFile("a", "1.0.0") })
		}
		wg.Wait()
		synctest.Wait() // readers have a file before the disk does
		w.Sent(3)
		w.Throttle(600)
		_, _, err := w.listing("b")
		paused(t, err, 600)
		a := w.wantFile("a", "1.0.0")
		if h, err := head(); err != nil || h.Header.Get("Etag") != a.Header.Get("Etag") || a.Header.Get("Etag") == "" {
			t.Error(a.Header, err)
		}
		w.Sent(4)
		time.Sleep(time.Hour)
		w.Public.Answer(nil)
		w.Public.Publish("a", "2.0.0", toy.LongAgo, nil)
		w.want("a", Complete, "1.0.0", "2.0.0")
		w.Public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			_, _ = rw.Write(fakenpm.File("a", "3.0.0"))
			return true
		})
		for range 2 {
			if _, _, err := w.file("a", "2.0.0"); err == nil {
				t.Error("a wrong file was served")
			}
		}
		synctest.Wait()
	}, withStore)
}

// A file that ends early or is another one never looks whole (C51); neither does one without a
// byte.
func TestBrokenFile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		w.want("a", Complete, "1.0.0")
		for name, write := range map[string]func(http.ResponseWriter){
			"wrong": func(rw http.ResponseWriter) { _, _ = rw.Write(fakenpm.File("a", "2.0.0")) },
			"cut": func(rw http.ResponseWriter) {
				_, _ = rw.Write(fakenpm.File("a", "1.0.0")[:100])
				panic(http.ErrAbortHandler)
			},
			"none": func(rw http.ResponseWriter) {
				rw.Header().Set("Content-Length", "100")
				rw.WriteHeader(200)
				panic(http.ErrAbortHandler)
			},
		} {
			w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool { write(rw); return true })
			if _, body, err := w.file("a", "1.0.0"); err == nil {
				t.Errorf("%s: %d bytes are the file", name, len(body))
			}
		}
	})
}

// PEP 658: a companion has the verdict of its file, is unpacked and checked before it is sent, and
// is absent where the listing advertises none.
func TestCompanion(t *testing.T) {
	for _, private := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			side := w.Public
			if private {
				side = w.Private
			}
			side.Publish("a", "1.0.0", toy.LongAgo, map[string]any{"companion": true})
			side.Publish("a", "2.0.0", toy.LongAgo, nil)
			var packed bytes.Buffer
			zip := gzip.NewWriter(&packed)
			_, _ = io.WriteString(zip, "Name: a")
			_ = zip.Close()
			side.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/a-1.0.0.tgz.metadata") {
					return false
				}
				if private {
					_, _ = io.WriteString(rw, "Name: a")
				} else {
					rw.Header().Set("Content-Encoding", "gzip")
					_, _ = rw.Write(packed.Bytes())
				}
				return true
			})
			ask := func(version string) (*Artifact, string, error) {
				return w.artifact(ArtifactRequest{Method: http.MethodGet, Name: "a", File: toy.File("a", version), Companion: true})
			}
			if a, body, err := ask("1.0.0"); err != nil || body != "Name: a" || a.Header.Get("Content-Encoding") != "" {
				t.Error(a, body, err)
			}
			_, _, err := ask("2.0.0")
			if e := failed[*NotFound](t, err); e.What != "a-2.0.0.tgz.metadata" {
				t.Error(e)
			}
			if !private {
				side.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
					rw.Header().Set("Content-Encoding", "gzip")
					_, _ = io.WriteString(rw, "no gzip")
					return true
				})
				_, _, err = ask("1.0.0")
				failed[*BadUpstream](t, err)
			}
		}, withPrivate)
	}
}

// A private file wins over a public one of the same name, is checked against its own listing, and
// goes with the caller's credential; one at another host is asked for at the conventional place
// alone.
func TestPrivateFile(t *testing.T) {
	for _, where := range []option{func(*toy.World, *Options) {}, linksOnly} {
		inWorld(t, func(t *testing.T, w *world) {
			w.Private.Publish("a", "1.0.0", time.Time{}, nil)
			w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
			w.Public.Publish("a", "2.0.0", toy.LongAgo, nil)
			r := ArtifactRequest{Method: http.MethodGet, Name: "a", File: toy.File("a", "1.0.0"), Authorization: "Bearer x"}
			if _, body, err := w.artifact(r); err != nil || body != string(fakenpm.File("a", "1.0.0")) {
				t.Error(err)
			}
			w.Sent(0)
			if seen := w.Private.Seen(); len(seen) != 2 || seen[1].Header.Get("Authorization") != "Bearer x" {
				t.Errorf("%+v", seen)
			}
			w.wantFile("a", "2.0.0")
			w.Private.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, ".tgz") {
					return false
				}
				rw.WriteHeader(http.StatusNotFound)
				return true
			})
			_, _, err := w.artifact(r)
			failed[*NotFound](t, err) // and never the public one
			w.Private.Answer(nil)
			w.Private.URL = "http://elsewhere.test"
			_, _, err = w.artifact(r)
			if w.gate.opts.Ecosystem.ArtifactPath == nil {
				failed[*BadUpstream](t, err)
			} else if err != nil {
				t.Error(err)
			}
			w.Private.SetDocument("a", []byte(`{"versions": {"1.0.0": {"dist": {"tarball": "http://private.test/x",
				"integrity": "`+fakenpm.Integrity([]byte("the right one"))+`"}}}}`))
			w.Private.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/a" {
					return false
				}
				_, _ = io.WriteString(rw, "another one")
				return true
			})
			if _, _, err = w.artifact(r); err == nil {
				t.Error("a wrong file was served")
			}
		}, withPrivate, where)
	}
}

// R45, R92: an upstream that does not answer is no absence, and no cooldown either.
func TestNoAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Public.Answer(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
		_, _, err := w.file("a", "1.0.0")
		if e := failed[*Unavailable](t, err); e.Cooldown || !strings.Contains(e.Reason, "did not answer (timeout)") {
			t.Errorf("%+v", e)
		}
	})
}
