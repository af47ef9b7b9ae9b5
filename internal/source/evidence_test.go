package source_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/source"
)

// sameSource is the source of a test's plan as a service shows it, under another ETag.
const sameSource = `{"status":200,"body":{"name":"manuals","kind":"file","fileParameters":{"ingestionParameters":{"contentExtractionMode":"minimal"}},"@odata.etag":"\"other\""}}`

// quota is a 429 that says that a limit is used up, which no wait cures.
const quota = `{"status":429,"headers":{"x-ms-error-code":"QuotaExceeded","Retry-After":"1"}}`

func warnings(out *source.Outcome) (codes []string) {
	for _, w := range out.Warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

func warned(out *source.Outcome, code, text string) bool {
	return slices.ContainsFunc(out.Warnings, func(w source.Warning) bool {
		return w.Code == code && strings.Contains(w.Message, text)
	})
}

// S78: a 429 of a limit that is used up is final on every route: of a write nothing is waited for,
// and of a read nothing is asked again.
func TestPermanent429(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script [][3]string
		sent   []string
		status string
	}{
		{"PUT", [][3]string{{"PUT source", "1", quota}}, []string{"GET source 404", "PUT source 429"}, source.StatusPartial},
		{"readback", [][3]string{{"GET source", "2", quota}}, []string{"GET source 404", "PUT source 201", "GET source 429"}, source.StatusPartial},
		{"list", [][3]string{{"GET files", "1", quota}}, []string{"GET source 404", "PUT source 201", "GET source 200", "GET files 429"}, source.StatusPartial},
		{"upload", [][3]string{{"POST files", "1", quota}}, after("POST files 429"), source.StatusPartial},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, three, func(t *testing.T, w *world) {
				start := time.Now()
				out := w.created(rules(tt.script...))
				is(t, out, tt.status, "quota-exhausted")
				w.saw(tt.sent...)
				if waited := time.Since(start); waited > time.Second/2 {
					t.Errorf("waited %v", waited)
				}
				// no second failure beside it: nothing was tried that could fail
				for _, code := range warnings(out) {
					if code != "write-acknowledged" {
						t.Errorf("warnings %+v", out.Warnings)
					}
				}
			})
		})
	}
}

// S81, S55, S119: another ETag is drift although the definition is the same, before the repetition
// of an upload, right after the creation, and before a continuation.
func TestETagDrift(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		out := w.created(rules([3]string{"POST files", "1", throttle2}, [3]string{"GET source", "3", sameSource}))
		is(t, out, source.StatusPartial, "file-upload-source-drift")
		w.saw(after("POST files 429", "GET source 200")...)
	})
	inWorld(t, three, func(t *testing.T, w *world) {
		out := w.created(rules([3]string{"GET source", "2", sameSource}))
		is(t, out, source.StatusPartial, "readback-mismatch")
		w.saw("GET source 404", "PUT source 201", "GET source 200")
	})
	inWorld(t, three, func(t *testing.T, w *world) {
		w.created(rules([3]string{"POST files", "1", `{"status":400}`}))
		w.requests()
		w.script(rules([3]string{"GET source", "1", sameSource}))
		_, out := w.resume()
		is(t, out, source.StatusBlocked, "file-upload-source-drift")
		w.saw("GET source 200")
	})
}

// S81, S70: a file that has other bytes, of the same number and with the same time, is noticed
// before the repetition is announced: nothing of it is sent, and no attempt is spent.
func TestLocalRecheck(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		file := w.path("docs/a.txt")
		w.opts.Clock = w.clock(func(context.Context, time.Duration) {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			w.write("a.txt", strings.Repeat("x", int(info.Size())))
			if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		})
		w.connect()
		out := w.created(rules([3]string{"POST files", "1", throttle2}))
		is(t, out, source.StatusPartial, "inventory-drift")
		w.saw(after("POST files 429", "GET source 200", "GET files 200")...)
		filesAre(t, out, "rejected/failed", "not_attempted/", "not_attempted/")
		w.noRetry()
	})
}

// noRetry: no repetition was announced.
func (w *world) noRetry() {
	w.t.Helper()
	if found, _ := filepath.Glob(w.path("journal/retry-*")); len(found) > 0 {
		w.t.Errorf("announced: %v", found)
	}
}

// S81: whenever the 60 seconds of the route run out, no repetition is announced after that; also
// when they do so after the last answer, while the local file is read again.
func TestRemainingBudget(t *testing.T) {
	after60 := 0 // at how many places the time ran out after all reads
	for jump := 1; ; jump++ {
		announced := false
		inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
			calls, throttled := 0, false
			start, extra := time.Now(), time.Duration(0)
			c := w.clock(func(context.Context, time.Duration) { throttled = true })
			c.Elapsed = func() time.Duration {
				found, _ := filepath.Glob(w.path("journal/retry-*"))
				if announced = len(found) > 0; throttled && !announced {
					if calls++; calls == jump {
						extra = time.Hour
					}
				}
				return time.Since(start) + extra
			}
			w.opts.Clock = c
			w.connect()
			out := w.created(rules([3]string{"POST files", "1", throttle2}))
			seen := w.requests()
			if extra == 0 {
				is(t, out, source.StatusCompleted, "")
				announced = true
				return
			}
			announced = false
			w.noRetry()
			if slices.Equal(seen, after("POST files 429", "GET source 200", "GET files 200")) && out.Code == "read-recovery-budget-exhausted" {
				after60++
			}
		})
		if announced || t.Failed() {
			break
		}
	}
	if after60 != 1 {
		t.Errorf("the time ran out after all reads at %d places", after60)
	}
}

// S85: the wall clock is asked when the preflight begins, whatever it says a moment later; and
// again before the repetition is announced, so that a clock that was set back meanwhile costs no
// attempt.
func TestPreflightAsksTheWallClock(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		// The wall clock stands while the run waits, and is set right when the first read of the
		// preflight looks how much of the 60 seconds is left: too late.
		start, slept, looks := time.Now(), time.Time{}, 0
		c := w.clock(func(context.Context, time.Duration) { slept = time.Now() })
		c.Elapsed = func() time.Duration {
			if !slept.IsZero() {
				looks++
			}
			return time.Since(start)
		}
		c.Now = func() time.Time {
			if !slept.IsZero() && looks <= 2 { // the wait itself looks twice
				return slept
			}
			return time.Now()
		}
		w.opts.Clock = c
		w.connect()
		out := w.created(rules([3]string{"POST files", "1", throttle2}))
		is(t, out, source.StatusPartial, "file-upload-backoff-waiting")
		w.saw(after("POST files 429")...)
	})
	inWorld(t, three, func(t *testing.T, w *world) {
		back := time.Duration(0)
		c := w.clock(func(context.Context, time.Duration) {})
		c.Now = func() time.Time { return time.Now().Add(-back) }
		w.opts.Clock = c
		w.opts.Disk = func(step, name string, call func() error) error {
			// the list was the last request of the preflight; its marker is the fourth to go
			err := call()
			if step == string(durable.StepRemove) {
				if seen := w.emu.Requests(); len(seen) == 7+1 {
					back = time.Minute
				}
			}
			return err
		}
		w.connect()
		out := w.created(rules([3]string{"POST files", "1", throttle2}))
		is(t, out, source.StatusPartial, "file-upload-backoff-unresolved")
		w.saw(after("POST files 429", "GET source 200", "GET files 200")...)
		filesAre(t, out, "rejected/failed", "not_attempted/", "not_attempted/")
		w.noRetry()
	})
}

// S104, S55: a PUT in doubt whose end could not be recorded is not looked after: no read is tried,
// and the outcome names the PUT, and what failed on the disk.
func TestDoubtThatCannotBeRecorded(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.opts.Disk = func(step, name string, call func() error) error {
			if seen := w.emu.Requests(); step == string(durable.StepRemove) && seen[len(seen)-1].Method == "PUT" {
				return os.ErrPermission
			}
			return call()
		}
		out := w.created(rules([3]string{"PUT source", "1", `{"status":503}`}))
		is(t, out, source.StatusPartial, "azure-http-error")
		w.saw("GET source 404", "PUT source 503")
		if out.BlockedAt != "local-persistence" || !warned(out, "receipt-failed", "pending-request.json") || !warned(out, "receipt-failed", "permission denied") {
			t.Errorf("blocked at %q, warnings %+v", out.BlockedAt, out.Warnings)
		}
		if len(out.Warnings) != 1 {
			t.Errorf("a read was tried: %+v", out.Warnings)
		}
	})
}

// S104: what failed on the disk is named beside the answer that could not be recorded.
func TestDiskErrorIsNamed(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.opts.Disk = func(step, name string, call func() error) error {
			if name == "backoff-0000.json" && step == string(durable.StepSync) {
				return os.ErrPermission
			}
			return call()
		}
		out := w.created(rules([3]string{"POST files", "1", throttle2}))
		is(t, out, source.StatusPartial, "azure-http-error")
		if !warned(out, "receipt-failed", `fsync "backoff-0000.json"`) {
			t.Errorf("warnings %+v", out.Warnings)
		}
	})
}

// What was never sent is not called unknown, and is no write: the local file went between the
// announcement and the request.
func TestAnnouncedAndNotSent(t *testing.T) {
	for _, tt := range []struct {
		name, entry, file string
		script            string
		sent              []string
		files             []string
	}{
		{
			"the first time", "attempt-0001.json", "b.txt", `[]`,
			[]string{"POST files 201"},
			[]string{"accepted/confirmed", "unverified/", "not_attempted/"},
		},
		{
			"the repetition", "retry-attempt-0001.json", "b.txt", rules([3]string{"POST files", "2", throttle2}),
			[]string{"POST files 201", "POST files 429", "GET source 200", "GET files 200"},
			[]string{"accepted/confirmed", "unverified/", "not_attempted/"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, three, func(t *testing.T, w *world) {
				w.opts.Disk = func(step, name string, call func() error) error {
					if name == tt.entry && step == string(durable.StepReopen) {
						return errors.Join(call(), os.Remove(w.path("docs/"+tt.file)))
					}
					return call()
				}
				out := w.created(tt.script)
				is(t, out, source.StatusPartial, "inventory-unreadable")
				w.saw(after(tt.sent...)...)
				filesAre(t, out, tt.files...)
				if !warned(out, "upload-not-sent", "b.txt") {
					t.Errorf("warnings %+v", out.Warnings)
				}
				document, err := out.Document()
				if err != nil {
					t.Fatal(err)
				}
				for _, wrong := range []string{"unknown", "sent once more", "upload-unverified"} {
					if strings.Contains(string(document), wrong) {
						t.Errorf("the outcome says %q:\n%s", wrong, document)
					}
				}
			})
		})
	}
}

// S80: what was sent once more is said to be.
func TestSentOnceMore(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		out := w.created(rules([3]string{"POST files", "1", throttle2}))
		is(t, out, source.StatusCompleted, "")
		if !warned(out, "upload-throttled", "sent once more") {
			t.Errorf("warnings %+v", out.Warnings)
		}
	})
}

// A signal in the middle of anything: the outcome says that the run was interrupted, also when an
// answer of the service is what it has to report first.
func TestInterruptedSaysSo(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		after        time.Duration
		status, code string
	}{
		{"in the first read", `[{"match":{"method":"GET"},"act":{"delay_ms":10000}}]`, time.Second, source.StatusBlocked, "interrupted"},
		{"in the PUT", `[{"match":{"method":"PUT"},"act":{"delay_ms":10000}}]`, time.Second, source.StatusPartial, "interrupted"},
		{"in an upload", `[{"match":{"method":"POST"},"act":{"delay_ms":10000}}]`, 15 * time.Second, source.StatusPartial, "interrupted"},
		{"in the wait after a 429", rules([3]string{"POST files", "1", `{"status":429,"headers":{"Retry-After":"20"}}`}), 5 * time.Second, source.StatusPartial, "azure-http-error"},
		{"in the wait of a read", rules([3]string{"GET files", "1", `{"status":429,"headers":{"Retry-After":"20"}}`}), 5 * time.Second, source.StatusPartial, "interrupted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, three, func(t *testing.T, w *world) {
				envelope := w.planned()
				w.script(tt.script)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(tt.after, cancel)
				out := w.tool().Apply(ctx, envelope, source.Places{Journal: w.path("journal"), Receipts: w.path("receipts")})
				is(t, out, tt.status, tt.code)
				if !out.Interrupted {
					t.Errorf("it does not say so: %+v", out)
				}
				synctest.Wait()
				notTwice(t, w)
			})
		})
	}
	inWorld(t, three, func(t *testing.T, w *world) {
		if out := w.created(rules([3]string{"POST files", "1", `{"status":500}`})); out.Interrupted {
			t.Error("a run that failed by itself says that it was interrupted")
		}
	})
}

// S104: a throttled read whose restriction could not be recorded is not waited for: the run stops
// where the disk failed.
func TestThrottledReadThatCannotBeRecorded(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.opts.Disk = func(step, name string, call func() error) error {
			if name == "backoff-0000.json" && step == string(durable.StepSync) {
				return os.ErrPermission
			}
			return call()
		}
		start := time.Now()
		out := w.created(rules([3]string{"GET files", "1", throttle2}))
		w.saw("GET source 404", "PUT source 201", "GET source 200", "GET files 429")
		if out.Status != source.StatusPartial || out.BlockedAt != "local-persistence" {
			t.Errorf("%s %s, blocked at %q", out.Status, out.Code, out.BlockedAt)
		}
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}
