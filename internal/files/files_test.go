package files

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// place is where the public registry has a file, with the digest of that or of another one.
func place(t *testing.T, w *toy.World, right bool) Place {
	t.Helper()
	body := fakenpm.File("a", "1")
	if !right {
		body = []byte("another one")
	}
	h := integrity.NewHash("sha512")
	h.Write(body)
	return Place{
		Upstream: w.PublicUpstream(toy.PublicHost), Side: refusal.Side{Authority: "registry.test:80", Part: "files"},
		URL: &url.URL{Scheme: "http", Host: toy.PublicHost, Path: "/a/-/a-1.tgz"}, Digests: []registry.Digest{{Algorithm: "sha512", Sum: h.Sum(nil)}},
	}
}

func get(t *testing.T, f *Files, method string, p Place) (*Artifact, string, error) {
	t.Helper()
	a, err := f.Get(t.Context(), Request{Method: method, Kind: upstream.Artifact, What: "a-1.tgz"}, p)
	if err != nil {
		return nil, "", err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	return a, string(body), err
}

// A file comes whole and right or not at all, through a store or past it (C51, R88), and each
// refusal of the upstream is what R3, R45, R50 and R92 say.
func TestGet(t *testing.T) {
	for _, stored := range []bool{false, true} {
		toy.Inside(t, func(t *testing.T, w *toy.World) {
			f := &Files{Ecosystem: toy.Name, Metrics: w.Metrics}
			if stored {
				store := cache.OpenFiles(cache.FilesOptions{Path: t.TempDir(), MaxBytes: 64 << 20, Proof: integrity.OfFileName})
				defer store.Close()
				f.Store = store
			}
			w.Public.Publish("a", "1", toy.LongAgo, nil)
			p := place(t, w, true)
			if _, body, err := get(t, f, http.MethodGet, place(t, w, false)); err == nil {
				t.Errorf("%d bytes of a wrong file", len(body))
			}
			w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
				_, _ = rw.Write(fakenpm.File("a", "1")[:100])
				panic(http.ErrAbortHandler)
			})
			if _, body, err := get(t, f, http.MethodGet, p); err == nil {
				t.Errorf("%d bytes of a cut file", len(body))
			}
			for code, want := range map[int]string{404: "a-1.tgz is not in the registry", 403: "the public registry answered a file request with status 403"} {
				w.Public.Always(code)
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					if _, _, err := get(t, f, method, p); fmt.Sprint(err) != want {
						t.Error(err)
					}
				}
			}
			w.Public.Always(503, "X-Cause", "maintenance")
			for range 2 {
				_, _, err := get(t, f, http.MethodGet, p)
				if e, ok := errors.AsType[*Relayed](err); !ok || e.Artifact().Status != 503 || e.Artifact().Header.Get("X-Cause") == "" || e.Error() != "the public registry answered with status 503" {
					t.Error(err)
				}
			}
			w.Public.Answer(nil)
			before := w.Public.Count()
			for range 2 {
				if _, body, err := get(t, f, http.MethodGet, p); err != nil || body != string(fakenpm.File("a", "1")) {
					t.Error(len(body), err)
				}
				synctest.Wait() // readers have a file before the disk does
				if a, _, err := get(t, f, http.MethodHead, p); err != nil || a.Header.Get("Content-Length") == "" {
					t.Error(a, err)
				}
			}
			if n := w.Public.Count() - before; stored && n != 1 || !stored && n != 4 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// R51: of all who wait for one transfer, one gets the throttled answer; the others, and the mirror
// at any time, hear of the cooldown (R58).
func TestThrottled(t *testing.T) {
	toy.Inside(t, func(t *testing.T, w *toy.World) {
		store := cache.OpenFiles(cache.FilesOptions{Path: t.TempDir(), MaxBytes: 64 << 20, Proof: integrity.OfFileName})
		defer store.Close()
		f, p := &Files{Ecosystem: toy.Name, Metrics: w.Metrics, Store: store}, place(t, w, true)
		w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			time.Sleep(time.Second)
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		var mu sync.Mutex
		relayed, collapsed := 0, 0
		var wg sync.WaitGroup
		for i := range 9 {
			wg.Go(func() {
				_, err := f.Get(t.Context(), Request{Method: http.MethodGet, Kind: upstream.Artifact, Worker: i%3 == 0}, p)
				mu.Lock()
				defer mu.Unlock()
				if e, ok := errors.AsType[*Relayed](err); ok && i%3 != 0 && e.Artifact().Throttled {
					relayed++
				}
				if e, ok := errors.AsType[*refusal.Unavailable](err); ok && e.Collapsed && e.Part == "files" && e.RetryAfter() == 60 {
					collapsed++
				}
			})
		}
		wg.Wait()
		if w.Sent(1); relayed != 1 || collapsed != 8 {
			t.Errorf("%d relayed, %d collapsed", relayed, collapsed)
		}
	})
}

// C17: a companion that the upstream packed unasked is unpacked and verified, and its length is
// that of what is sent.
func TestPackedCompanion(t *testing.T) {
	toy.Inside(t, func(t *testing.T, w *toy.World) {
		f, p := &Files{Ecosystem: toy.Name, Metrics: w.Metrics}, place(t, w, true)
		text := fakenpm.File("a", "1")
		var packed bytes.Buffer
		zw := gzip.NewWriter(&packed)
		_, _ = zw.Write(text)
		_ = zw.Close()
		w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Content-Encoding", "gzip")
			rw.Header().Set("Content-Length", strconv.Itoa(packed.Len()))
			_, _ = rw.Write(packed.Bytes())
			return true
		})
		a, err := f.Get(t.Context(), Request{Method: http.MethodGet, Kind: upstream.Companion, What: "a-1.tgz.metadata"}, p)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil || !bytes.Equal(body, text) || a.Header.Get("Content-Length") != strconv.Itoa(len(text)) || a.Header.Get("Content-Encoding") != "" {
			t.Errorf("%v: %d bytes, %v", a.Header, len(body), err)
		}
	})
}

// A relayed header has no field that concerns one connection only (R50).
func TestRelayHeader(t *testing.T) {
	h := relayHeader(http.Header{"Connection": {"x-hop, close"}, "X-Hop": {"1"}, "Te": {"trailers"}, "Retry-After": {"3"}})
	if len(h) != 1 || h.Get("Retry-After") != "3" {
		t.Error(h)
	}
}
