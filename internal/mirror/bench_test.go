package mirror

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// BenchmarkJobs is how many jobs a second the queue carries, insertion and acknowledgement
// included, when the jobs themselves cost nothing.
func BenchmarkJobs(b *testing.B) {
	for _, store := range []string{"sqlite", "postgresql"} {
		b.Run(store, func(b *testing.B) {
			var done atomic.Int64
			o := QueueOptions{
				Workers: 4, Logger: slog.New(slog.DiscardHandler),
				Do: func(context.Context, Job) Outcome { done.Add(1); return Outcome{Result: Present} },
			}
			if store == "sqlite" {
				o.Path, o.Alone = filepath.Join(b.TempDir(), "queue.db"), true
			} else {
				o.URL = postgres(b)
			}
			q, err := OpenQueue(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			defer q.Close()
			if err := q.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			defer q.Stop(context.WithoutCancel(b.Context()))
			b.ResetTimer()
			for from := 0; from < b.N; from += maxBatch {
				var batch []Job
				for i := from; i < min(from+maxBatch, b.N); i++ {
					batch = append(batch, jobN(i))
				}
				if _, err := q.Insert(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			for done.Load() < int64(b.N) {
				time.Sleep(time.Millisecond)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// offerTimes measures n offers, as clients make them, while the queue saves them.
func offerTimes(t testing.TB, n int) []time.Duration {
	q, err := OpenQueue(t.Context(), QueueOptions{Path: filepath.Join(t.TempDir(), "queue.db"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	o := NewOffers(q, obs.NewMetrics(), slog.New(slog.DiscardHandler))
	go o.Run(t.Context())
	times := make([]time.Duration, n)
	for i := range times {
		j := jobN(i)
		begin := time.Now()
		o.Offer(j)
		times[i] = time.Since(begin)
		if i%100 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	o.Close(t.Context())
	if st, err := q.Status(t.Context()); err != nil || st.Ready != n {
		t.Errorf("%d of %d offers were saved: %v", st.Ready, n, err)
	}
	slices.Sort(times)
	return times
}

// BenchmarkOffer is what an offer costs a client.
func BenchmarkOffer(b *testing.B) {
	times := offerTimes(b, max(b.N, 100))
	b.ReportMetric(0, "ns/op") // the time of the pauses says nothing
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds()), "p99-ns")
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "p50-ns")
}

// All offers are saved, and one does not cost its client what saving costs: the median of many,
// since single ones wait for whatever else the machine does. The benchmark above measures the
// others.
func TestOfferIsCheap(t *testing.T) {
	times := offerTimes(t, 4000)
	if median := times[len(times)/2]; median > time.Millisecond {
		t.Errorf("the median offer takes %v", median)
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
	w := NewWorker(WorkerOptions{
		Lanes: map[string]Lane{"npm": {Source: source, Target: &NPMTarget{Target: target}}}, SpoolDir: t.TempDir(), MaxBytes: 1 << 30,
		Metrics: obs.NewMetrics(), Logger: slog.New(slog.DiscardHandler), At: func(string) { sample(&peak) },
	})
	if o := w.Do(t.Context(), jobN(1)); o.Result != Published {
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
