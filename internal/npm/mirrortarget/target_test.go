package mirrortarget_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/npm/mirrortarget"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

func jobN(n int) mirror.Job {
	v := fmt.Sprintf("1.0.%d", n)
	return mirror.Job{Ecosystem: "npm", Package: "left-pad", Version: v, File: "left-pad-" + v + ".tgz"}
}

// spooled is a file as the worker hands it over.
func spooled(t *testing.T, text string) *mirror.Spooled {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &mirror.Spooled{File: f, Size: int64(len(text))}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// What a target says of a write: done, there already (checked by looking), wait, never, or perhaps
// later.
func TestTargetAnswers(t *testing.T) {
	for _, c := range []struct {
		status int
		header string
		held   bool
		want   func(error) bool
	}{
		{201, "", false, func(err error) bool { return err == nil }},
		{409, "", true, func(err error) bool { return errors.Is(err, mirror.ErrPresent) }},
		{403, "", true, func(err error) bool { return errors.Is(err, mirror.ErrPresent) }},
		{400, "", true, func(err error) bool { return errors.Is(err, mirror.ErrPresent) }},
		// another writer was faster with another version
		{409, "", false, func(err error) bool { return err != nil && !is[*mirror.Rejected](err) }},
		{400, "", false, is[*mirror.Rejected]},
		{404, "", false, is[*mirror.Rejected]},
		{413, "", false, is[*mirror.Rejected]},
		{302, "", false, is[*mirror.Rejected]},
		{403, "", false, func(err error) bool {
			return err != nil && !is[*mirror.Rejected](err) && strings.Contains(err.Error(), "credential")
		}},
		{429, "30", false, is[*mirror.Postponed]},
		{503, "30", false, is[*mirror.Postponed]},
		{503, "", false, func(err error) bool { return err != nil && !is[*mirror.Postponed](err) && !is[*mirror.Rejected](err) }},
		{500, "30", false, func(err error) bool { return err != nil && !is[*mirror.Postponed](err) && !is[*mirror.Rejected](err) }},
	} {
		puts := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Method == http.MethodGet {
				if !c.held || puts == 0 {
					w.WriteHeader(404)
					return
				}
				fmt.Fprintf(w, `{"name":"left-pad","versions":{"1.0.1":{"name":"left-pad","version":"1.0.1","dist":{"tarball":"http://x/left-pad/-/left-pad-1.0.1.tgz","shasum":"%040d"}}}}`, 1)
				return
			}
			puts++
			if c.header != "" {
				w.Header().Set("Retry-After", c.header)
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, `{"error":"because"}`)
		}))
		base, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		up, err := testClient(t).Target(base, upstream.Encoded)
		if err != nil {
			t.Fatal(err)
		}
		target := &mirrortarget.Target{Target: up, Authorization: func() string { return "Bearer t" }}
		f := spooled(t, "what is in the file")
		if held, err := target.Holds(t.Context(), jobN(1)); held || err != nil {
			t.Errorf("%d: held %v %v", c.status, held, err)
		}
		if err := target.Put(t.Context(), jobN(1), &gate.Copy{Manifest: []byte(`{}`)}, f); !c.want(err) || puts != 1 {
			t.Errorf("%d (held %v): %v, %d writes", c.status, c.held, err, puts)
		}
		server.Close()
	}
}

// zeros is a file of n zero bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// largeSource gives one large file.
type largeSource struct {
	size int64
	sum  [sha256.Size]byte
}

func (s *largeSource) Fetch(context.Context, string, string, string) (*gate.Copy, error) {
	return &gate.Copy{
		Version:  registry.Version{Artifacts: []registry.Artifact{{Digests: []registry.Digest{{Algorithm: "sha256", Sum: s.sum[:]}}}}},
		Manifest: []byte(`{}`), Size: s.size, Body: io.NopCloser(zeros(s.size)),
	}, nil
}

// testClient is a way out into the network of the test.
func testClient(t testing.TB) *upstream.Client {
	c := upstream.New(upstream.Options{
		Table: cooldown.New(cooldown.Options{}), Metrics: obs.NewMetrics(), Logger: slog.New(slog.DiscardHandler), Tracer: noop.NewTracerProvider().Tracer(""),
	})
	t.Cleanup(c.Close)
	return c
}

// The worker's memory does not grow with the file: half a gigabyte passes through a few megabytes.
func TestLargeFileStaysOffTheHeap(t *testing.T) {
	size := int64(500 << 20)
	if slowed || testing.Short() {
		size = 64 << 20
	}
	h := sha256.New()
	if _, err := io.Copy(h, zeros(size)); err != nil {
		t.Fatal(err)
	}
	source := &largeSource{size: size}
	h.Sum(source.sum[:0])
	var received, peak atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(404)
			return
		}
		buf := make([]byte, 64<<10)
		for i := 0; ; i++ {
			n, err := r.Body.Read(buf)
			received.Add(int64(n))
			if i%500 == 0 {
				sample(&peak)
			}
			if err != nil {
				break
			}
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	target, err := testClient(t).Target(base, upstream.Encoded)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	w := mirror.NewWorker(mirror.WorkerOptions{
		Lanes: map[string]mirror.Lane{"npm": {Source: source, Target: &mirrortarget.Target{Target: target, Authorization: func() string { return "" }}}}, SpoolDir: t.TempDir(), MaxBytes: 1 << 30,
		Metrics: obs.NewMetrics(), Logger: slog.New(slog.DiscardHandler), At: func(string) { sample(&peak) },
	})
	if o := w.Do(t.Context(), jobN(1)); o.Result != mirror.Published {
		t.Fatalf("%+v", o)
	}
	if grown := peak.Load() - int64(before.HeapAlloc); grown > 24<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if received.Load() < size/3*4 {
		t.Errorf("the target received %d bytes", received.Load())
	}
	t.Logf("heap grew by %d KiB for %d MiB", (peak.Load()-int64(before.HeapAlloc))>>10, size>>20)
}

func sample(peak *atomic.Int64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for old := peak.Load(); int64(m.HeapAlloc) > old && !peak.CompareAndSwap(old, int64(m.HeapAlloc)); old = peak.Load() {
	}
}
