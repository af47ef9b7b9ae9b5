package source_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/recovery"
)

const throttle2 = `{"status":429,"headers":{"Retry-After":"2"}}`

// rules makes a script of pairs: which request, and what happens to it.
func rules(pairs ...[3]string) string {
	var all []string
	for _, p := range pairs {
		method, rest, _ := strings.Cut(p[0], " ")
		path := map[string]string{"files": filesPath, "source": sourcePath}[rest]
		all = append(all, `{"match":{"method":"`+method+`","path":"`+path+`","nth":`+p[1]+`},"act":`+p[2]+`}`)
	}
	return "[" + strings.Join(all, ",") + "]"
}

// S80, S81: the first 429 on an upload is waited for in full, the source and the files are looked
// at, and the same bytes go once more.
func TestQueueRetry(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		start := time.Now()
		out := w.created(rules([3]string{"POST files", "2", throttle2}))
		is(t, out, source.StatusCompleted, "")
		w.saw(after("POST files 201", "POST files 429", "GET source 200", "GET files 200", "POST files 201", "POST files 201", "GET files 200")...)
		filesAre(t, out, "accepted/confirmed", "accepted/confirmed", "accepted/confirmed")
		if out.FileBatch.Files[1].Attempts != 2 {
			t.Errorf("attempts %+v", out.FileBatch.Files[1])
		}
		backoffIs(t, out, journal.Elapsed)
		if waited := time.Since(start); waited < 2*time.Second || waited > 4*time.Second {
			t.Errorf("waited %v", waited)
		}
		seen := w.emu.Requests()
		first, second := seen[6], seen[9] // S74: identical bytes, the plan's boundary
		if first.BodySHA256 != second.BodySHA256 || first.Headers.Get("Content-Type") != second.Headers.Get("Content-Type") {
			t.Error("the repetition is not the same request")
		}
		digits := strings.TrimPrefix(out.Fingerprint, "sha256:")[:24]
		if !strings.Contains(first.Headers.Get("Content-Type"), digits) {
			t.Errorf("boundary %q lacks %s", first.Headers.Get("Content-Type"), digits)
		}
		if gap := second.Time.Sub(first.Time); gap < 2*time.Second {
			t.Errorf("repeated after %v", gap)
		}
	})
}

// The rows of the queue route, each with exactly what is sent after the first 429.
func TestQueueRoute(t *testing.T) {
	for _, tt := range []struct {
		name         string
		script       [][3]string
		status, code string
		first        string
		sent         []string
		rest         string
	}{
		{
			"S82 present and proved",
			[][3]string{{"POST files", "1", `{"status":429,"headers":{"Retry-After":"2"},"store":true}`}},
			"completed", "", "rejected/confirmed",
			[]string{"GET source 200", "GET files 200", "POST files 201", "POST files 201", "GET files 200"},
			"accepted/confirmed",
		},
		{
			"S82 present and unproved",
			[][3]string{{"POST files", "1", throttle2}, {"GET files", "2", `{"status":200,"body":{"value":[` +
				`{"fileId":"x","fileName":"a.txt","fileSizeBytes":1,"errorMessage":null,"metadata":{}}]}}`}},
			"partial", "file-upload-retry-conflict", "rejected/failed",
			[]string{"GET source 200", "GET files 200"},
			"not_attempted/",
		},
		{
			"S84 429 on the source",
			[][3]string{{"POST files", "1", throttle2}, {"GET source", "3", `{"status":429,"headers":{"Retry-After":"1"}}`}},
			"partial", "azure-http-error", "rejected/failed",
			[]string{"GET source 429"},
			"not_attempted/",
		},
		{
			"S84 429 on the files",
			[][3]string{{"POST files", "1", throttle2}, {"GET files", "2", `{"status":429,"headers":{"Retry-After":"1"}}`}},
			"partial", "azure-http-error", "rejected/failed",
			[]string{"GET source 200", "GET files 429"},
			"not_attempted/",
		},
		{
			"S81 source drift",
			[][3]string{{"POST files", "1", throttle2}, {"GET source", "3", `{"status":200,"body":{"name":"manuals","kind":"file","@odata.etag":"\"other\""},"headers":{"ETag":"\"other\""}}`}},
			"partial", "file-upload-source-drift", "rejected/failed",
			[]string{"GET source 200"},
			"not_attempted/",
		},
		{
			"S81 source gone",
			[][3]string{{"POST files", "1", throttle2}, {"GET source", "3", `{"status":404}`}},
			"partial", "file-upload-source-drift", "rejected/failed",
			[]string{"GET source 404"},
			"not_attempted/",
		},
		{
			"S86 429 again",
			[][3]string{{"POST files", "1", throttle2}, {"POST files", "2", throttle2}},
			"partial", "azure-http-error", "rejected/failed",
			[]string{"GET source 200", "GET files 200", "POST files 429"},
			"not_attempted/",
		},
		{
			"429 later",
			[][3]string{{"POST files", "1", throttle2}, {"POST files", "3", throttle2}},
			"partial", "azure-http-error", "accepted/confirmed",
			[]string{"GET source 200", "GET files 200", "POST files 201", "POST files 429"},
			"*",
		},
		{
			"retry 503",
			[][3]string{{"POST files", "1", throttle2}, {"POST files", "2", `{"status":503}`}},
			"partial", "azure-http-error", "unverified/",
			[]string{"GET source 200", "GET files 200", "POST files 503", "GET files 200"},
			"not_attempted/",
		},
		{
			"retry 415",
			[][3]string{{"POST files", "1", throttle2}, {"POST files", "2", `{"status":415}`}},
			"partial", "azure-http-error", "rejected/failed",
			[]string{"GET source 200", "GET files 200", "POST files 415", "POST files 201", "POST files 201", "GET files 200"},
			"accepted/confirmed",
		},
		{
			"S87 31 seconds",
			[][3]string{{"POST files", "1", `{"status":429,"headers":{"Retry-After":"31"}}`}},
			"partial", "azure-http-error", "rejected/failed", nil, "not_attempted/",
		}, // tc-029, tc-030, tc-034, tc-035: stop, never a shorter wait
		{
			"S25 30 seconds",
			[][3]string{{"POST files", "1", `{"status":429,"headers":{"Retry-After":"30"}}`}},
			"completed", "", "accepted/confirmed",
			[]string{"GET source 200", "GET files 200", "POST files 201", "POST files 201", "POST files 201", "GET files 200"},
			"accepted/confirmed",
		},
		{
			"tc-001 beyond a Duration",
			[][3]string{{"POST files", "1", `{"status":429,"headers":{"Retry-After":"9223372037"}}`}},
			"partial", "azure-http-error", "rejected/failed", nil, "not_attempted/",
		},
		{
			"unrepresentable",
			[][3]string{{"POST files", "1", `{"status":429,"headers":{"Retry-After":"99999999999999999999"}}`}},
			"partial", "azure-http-error", "rejected/failed", nil, "not_attempted/",
		},
		{
			"S16 no Retry-After",
			[][3]string{{"POST files", "1", `{"status":429}`}},
			"completed", "", "accepted/confirmed",
			[]string{"GET source 200", "GET files 200", "POST files 201", "POST files 201", "POST files 201", "GET files 200"},
			"accepted/confirmed",
		},
		{
			"tc-017 duplicate Retry-After",
			[][3]string{{"POST files", "1", `{"status":429,"headers":{"Retry-After":["2","9"]}}`}},
			"completed", "", "accepted/confirmed",
			[]string{"GET source 200", "GET files 200", "POST files 201", "POST files 201", "POST files 201", "GET files 200"},
			"accepted/confirmed",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, three, func(t *testing.T, w *world) {
				out := w.created(rules(tt.script...))
				is(t, out, tt.status, tt.code)
				first := "POST files 429"
				w.saw(after(append([]string{first}, tt.sent...)...)...)
				want := []string{tt.first, tt.rest, tt.rest}
				if tt.rest == "*" {
					want = []string{"accepted/confirmed", "rejected/failed", "not_attempted/"}
					if tt.name != "429 later" {
						want = nil
					}
				}
				filesAre(t, out, want...)
				notTwice(t, w)
			})
		})
	}
}

// S80: a stricter caller can forbid the repetition.
func TestQueueRetryForbidden(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.opts.NoQueueRetry = true
		out := w.created(rules([3]string{"POST files", "1", throttle2}))
		is(t, out, source.StatusPartial, "azure-http-error")
		w.saw(after("POST files 429")...)
	})
}

// S81, S70: the local file is looked at again before the repetition.
func TestQueueLocalDrift(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.opts.Clock = w.clock(func(context.Context, time.Duration) { w.write("a.txt", "something else") })
		w.connect()
		out := w.created(rules([3]string{"POST files", "1", throttle2}))
		is(t, out, source.StatusPartial, "inventory-drift")
		w.saw(after("POST files 429", "GET source 200", "GET files 200")...)
	})
}

// clock is the bubble's clock with something happening during each sleep.
func (w *world) clock(during func(context.Context, time.Duration)) recovery.Clock {
	start := time.Now()
	return recovery.Clock{
		Now:     time.Now,
		Elapsed: func() time.Duration { return time.Since(start) },
		Sleep: func(ctx context.Context, d time.Duration) error {
			during(ctx, d)
			time.Sleep(d)
			return nil
		},
	}
}

// S85: a wall clock that lags behind the monotonic one stops the repetition.
func TestQueueLaggingWallClock(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		frozen := time.Time{}
		c := w.clock(func(context.Context, time.Duration) { frozen = time.Now() })
		c.Now = func() time.Time {
			if !frozen.IsZero() {
				return frozen
			}
			return time.Now()
		}
		w.opts.Clock = c
		w.connect()
		out := w.created(rules([3]string{"POST files", "1", throttle2}))
		is(t, out, source.StatusPartial, "file-upload-backoff-waiting")
		w.saw(after("POST files 429")...)
		backoffIs(t, out, journal.Waiting)
	})
}

// S81: the queue route has 60 seconds in all.
func TestQueueBudget(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		out := w.created(rules([3]string{"POST files", "1", `{"status":429,"headers":{"Retry-After":"30"}}`},
			[3]string{"GET source", "3", `{"delay_ms":20000}`}, [3]string{"GET files", "2", `{"delay_ms":20000}`}))
		is(t, out, source.StatusPartial, "file-list-timeout")
		w.saw(after("POST files 429", "GET source 200", "GET files 0")...)
		filesAre(t, out, "rejected/failed", "not_attempted/", "not_attempted/")
	})
}

// S105, S104: when the restriction of a 429 cannot be written, the 429 is what is reported,
// everything stops, and the marker stays.
func TestThrottleCannotBeRecorded(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.opts.Disk = func(_, name string, call func() error) error {
			if strings.HasPrefix(name, "backoff-") {
				return os.ErrPermission
			}
			return call()
		}
		out := w.created(rules([3]string{"POST files", "1", throttle2}))
		is(t, out, source.StatusPartial, "azure-http-error")
		if out.BlockedAt != "local-persistence" {
			t.Errorf("blocked_at %q", out.BlockedAt)
		}
		w.saw(after("POST files 429")...)
		backoffIs(t, out, journal.Unresolved)
		if _, err := os.Stat(w.path("journal/pending-request.json")); err != nil {
			t.Errorf("the marker is gone: %v", err)
		}
		w.opts.Disk = nil
		_, out = w.resume()
		is(t, out, source.StatusBlocked, "file-upload-backoff-unresolved")
		w.saw()
	})
}
