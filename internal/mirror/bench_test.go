package mirror

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/obs"
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
