package upstream_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

const (
	headerLimit   = 30 * time.Second
	metadataLimit = 90 * time.Second
	stallLimit    = 30 * time.Second
)

// R72 R92: an upstream that sends no header is given up after half a minute, whatever was asked and
// of whom.
func TestHeaderTimeout(t *testing.T) {
	onBench(t, upstream.Options{}, silent, func(b *bench) {
		for _, kind := range []upstream.Kind{upstream.Metadata, upstream.Artifact, upstream.Companion} {
			start := time.Now()
			_, err := b.body(b.t.Context(), kind, 0)
			b.wantFailure(string(kind), err, "timeout", time.Since(start), headerLimit)
			start = time.Now()
			_, err = b.private.Do(b.t.Context(), b.request(kind), "")
			b.wantFailure("private "+string(kind), err, "timeout", time.Since(start), headerLimit)
		}
		if got := b.outcomes(); got["timeout"] != 3 || len(got) != 1 {
			t.Errorf("attempts: %v", got)
		}
	})
}

// A target has two minutes to think about a write that it has whole, and no more.
func TestTargetThinksTooLong(t *testing.T) {
	onBench(t, upstream.Options{}, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, func(b *bench) {
		start := time.Now()
		_, err := b.target.Write(b.t.Context(), upstream.Write{
			Method: http.MethodPut, URL: b.target.URL(), Body: strings.NewReader("x"), Length: 1,
		})
		b.wantFailure("write", err, "timeout", time.Since(start), 2*time.Minute)
	})
}

// R6 C51: a file may take as long as it wants while bytes arrive, and ends half a minute after the
// last; metadata has one limit for all of it, however the bytes arrive.
func TestBodyLimits(t *testing.T) {
	onBench(t, upstream.Options{}, trickle(30, 20*time.Second), func(b *bench) {
		for _, kind := range []upstream.Kind{upstream.Artifact, upstream.Companion} {
			if got, err := b.body(b.t.Context(), kind, 0); err != nil || len(got) != 30 {
				t.Errorf("a slow %s: %d bytes, %v", kind, len(got), err)
			}
		}
		start := time.Now()
		_, err := b.body(b.t.Context(), upstream.Metadata, 0)
		b.wantFailure("slow metadata", err, "timeout", time.Since(start), metadataLimit)

		b.answer(func(w http.ResponseWriter, r *http.Request) { trickle(1, time.Second)(w, r); silent(w, r) })
		start = time.Now()
		got, err := b.body(b.t.Context(), upstream.Artifact, 0)
		b.wantFailure("a stalled file", err, "timeout", time.Since(start), time.Second+stallLimit)
		if got != "x" {
			t.Errorf("a stalled file brought %q", got)
		}
	})
}

// A client that takes its time over a file, before the first byte or later, does not count as an
// upstream that stalls. The file is larger than what is read ahead.
func TestSlowClientIsNoStall(t *testing.T) {
	const size = 64 << 10
	onBench(t, upstream.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", size))
	}, func(b *bench) {
		if got, err := b.body(b.t.Context(), upstream.Artifact, 10*stallLimit); err != nil || len(got) != size {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		resp, err := b.public.Do(b.t.Context(), b.request(upstream.Artifact))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		time.Sleep(10 * metadataLimit)
		if got, err := io.ReadAll(resp.Body); err != nil || len(got) != size {
			t.Errorf("begun late: %d bytes, %v", len(got), err)
		}
	})
}

// R81: who gave up is told apart, in the metric and to whoever asked: the clock (ours or the
// caller's), the caller, or the connection.
func TestFailureOutcomes(t *testing.T) {
	deadline := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	leaves := func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		return ctx
	}
	stays := func(t *testing.T) context.Context { return t.Context() }
	for _, c := range []struct {
		name    string
		ctx     func(*testing.T) context.Context
		handler http.HandlerFunc
		hang    bool
		outcome string
		counted string // as the attempt counts, whose body comes later
		after   time.Duration
	}{
		{"no connection in our time", stays, silent, true, "timeout", "timeout", metadataLimit},
		{"no connection in the caller's time", deadline, silent, true, "timeout", "timeout", 5 * time.Second},
		{"no header in the caller's time", deadline, silent, false, "timeout", "timeout", 5 * time.Second},
		{"the caller leaves while we dial", leaves, silent, true, "cancelled", "cancelled", 5 * time.Second},
		{"the caller leaves", leaves, silent, false, "cancelled", "cancelled", 5 * time.Second},
		{"the connection breaks", stays, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, "connection", "connection", 0},
		{"the body stalls", stays, trickle(1, time.Hour), false, "timeout", "success", stallLimit},
		{"the body outlasts the caller's time", deadline, trickle(1, time.Hour), false, "timeout", "success", 5 * time.Second},
		{"the caller leaves the body", leaves, trickle(1, time.Hour), false, "cancelled", "success", 5 * time.Second},
		{"the body is cut", stays, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, false, "connection", "success", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBench(t, upstream.Options{}, c.handler, func(b *bench) {
				if c.hang {
					b.hang()
				}
				start := time.Now()
				_, err := b.body(c.ctx(b.t), upstream.Artifact, 0)
				b.wantFailure("it", err, c.outcome, time.Since(start), c.after)
				if got := b.outcomes(); got[c.counted] != 1 || len(got) != 1 {
					t.Errorf("attempts: %v, want one %s", got, c.counted)
				}
			})
		})
	}
}

// R89: the requests that may wait for a recovery are bounded; one more is refused at once. Places
// are given back.
func TestHoldersAreBounded(t *testing.T) {
	const most, more = 4096, 200
	onBench(t, upstream.Options{Hold: time.Minute}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "300")
		w.WriteHeader(http.StatusTooManyRequests)
	}, func(b *bench) {
		if _, err := b.body(b.t.Context(), upstream.Metadata, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(250 * time.Second)
		for wave := range 2 {
			ctx, leave := context.WithCancel(b.t.Context())
			var mu sync.Mutex
			refused := 0
			var all sync.WaitGroup
			for range most + more {
				all.Go(func() {
					_, err := b.body(ctx, upstream.Metadata, 0)
					if _, ok := cooldown.AsRefusal(err); !ok {
						t.Errorf("ended with %v", err)
					}
					mu.Lock()
					defer mu.Unlock()
					refused++
				})
			}
			synctest.Wait()
			mu.Lock()
			if refused != more {
				t.Errorf("wave %d: %d of %d were refused at once, want %d", wave, refused, most+more, more)
			}
			mu.Unlock()
			leave()
			all.Wait()
		}
	})
}
