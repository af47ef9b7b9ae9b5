package source_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/internal/source/progress"
)

// S101, S103, S105: an acknowledgement is not lost when the marker cannot be removed. Everything
// stops there, and the next run sees a finished exchange.
func TestMarkerCannotBeRemoved(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after string // the entry after which no marker can be removed
		sent  []string
		files []string
		then  string
	}{
		{"after the PUT", "source-ack.json", []string{"GET source 404", "PUT source 201"}, []string{"not_attempted/", "not_attempted/"}, source.StatusPlanned},
		{"after a POST", "result-0000.json", after("POST files 201"), []string{"accepted/confirmed", "not_attempted/"}, source.StatusPlanned},
		{"after a 429", "backoff-0000.json", after("POST files 201", "POST files 429"), []string{"accepted/confirmed", "unverified/"}, source.StatusBlocked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, []string{"a.txt", "b.txt"}, func(t *testing.T, w *world) {
				broken := false
				w.opts.Disk = func(step, name string, call func() error) error {
					if name == tt.after {
						broken = true
					}
					if broken && step == string(durable.StepRemove) {
						return os.ErrPermission
					}
					return call()
				}
				out := w.created(rules([3]string{"POST files", "2", throttle2}))
				if out.Status != source.StatusPartial || out.BlockedAt != "local-persistence" {
					t.Errorf("%s %s, blocked at %q", out.Status, out.Code, out.BlockedAt)
				}
				filesAre(t, out, tt.files...)
				w.saw(tt.sent...)
				w.opts.Disk = nil
				time.Sleep(time.Minute)
				_, out = w.resume()
				// the result is completed from the restriction, and b.txt is not offered
				if tt.name == "after a 429" {
					is(t, out, tt.then, "file-upload-nothing-eligible")
					filesAre(t, out, "accepted/confirmed", "rejected/failed")
					return
				}
				is(t, out, tt.then, "")
			})
		})
	}
}

// S147: what a watcher of a throttled run is told, and that it never goes back.
func TestProgressOfARun(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		var events []progress.Event
		envelope := w.planned()
		w.report(&events)
		w.script(rules([3]string{"POST files", "2", `{"status":429,"headers":{"Retry-After":"7"},"delay_ms":12000}`}))
		is(t, w.apply(envelope), source.StatusCompleted, "")
		order := map[string]int{"files": 0, "source": 1, "inventory": 2, "upload": 3, "verify": 4, "done": 5}
		last, waits, beats, second := 0, 0, 0, 0
		for _, e := range events {
			if order[e.Activity] < last {
				t.Errorf("went back to %s", e.Activity)
			}
			last = order[e.Activity]
			if e.Wait != nil {
				waits++
				if e.Wait.Reason != "http-429" || e.Wait.Seconds != 7 || e.State != progress.Waiting {
					t.Errorf("wait %+v", e)
				}
			}
			if f := e.ProcessingFile; f != nil {
				if f.Ordinal == 2 && f.Elapsed >= 5 {
					beats++
				}
				if f.Attempt == 2 {
					second++
				}
			}
		}
		if waits == 0 || beats != 2 || second == 0 || events[len(events)-1].State != progress.Completed {
			t.Errorf("waits %d, heartbeats %d, second attempts %d, last %+v", waits, beats, second, events[len(events)-1])
		}
	})
}

// S148
func TestBrokenProgress(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		envelope := w.planned()
		w.opts.Report = func(workflow string) *progress.Reporter {
			return progress.New(workflow, time.Now, func(progress.Event) error { return errors.New("broken pipe") })
		}
		out := w.apply(envelope)
		is(t, out, source.StatusCompleted, "")
		if len(out.Warnings) != 1 || out.Warnings[0].Code != "progress-output-failed" {
			t.Errorf("warnings %+v", out.Warnings)
		}
	})
}

// A signal in the middle of an upload: the file is unverified, the rest is not attempted, and the
// journal stays usable.
func TestInterrupted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration
		files []string
	}{
		{"during an upload", 5 * time.Second, []string{"unverified/", "not_attempted/", "not_attempted/"}},
		{"during the second", 15 * time.Second, []string{"accepted/confirmed", "unverified/", "not_attempted/"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, three, func(t *testing.T, w *world) {
				envelope := w.planned()
				w.script(`[{"match":{"method":"POST"},"act":{"delay_ms":10000}}]`)
				ctx, cancel := context.WithTimeout(t.Context(), tt.after)
				defer cancel()
				out := w.tool().Apply(ctx, envelope, source.Places{Journal: w.path("journal"), Receipts: w.path("receipts")})
				if out.Status != source.StatusPartial {
					t.Errorf("%s %s", out.Status, out.Code)
				}
				filesAre(t, out, tt.files...)
				synctest.Wait()
				w.script(`[]`)
				continued, out := w.resume()
				is(t, out, source.StatusPlanned, "")
				out = w.continued(w.approved(continued))
				if out.FileBatch.Counts.NotAttempted != 0 {
					t.Errorf("%+v", out.FileBatch.Counts)
				}
				notTwice(t, w)
			})
		})
	}
}

// The largest batch that there is, run by the engine.
func TestTwoHundredFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a thousand files")
	}
	var paths []string
	for i := range 200 {
		paths = append(paths, fmt.Sprintf("folder/file-%03d.txt", i))
	}
	inWorld(t, paths, func(t *testing.T, w *world) {
		w.emu.Reset()
		out := w.created(rules([3]string{"POST files", "100", throttle60}))
		is(t, out, source.StatusPartial, "azure-http-error")
		if n := out.FileBatch.Counts; n.Confirmed != 99 || n.Rejected != 1 || n.NotAttempted != 100 {
			t.Errorf("%+v", n)
		}
		time.Sleep(2 * time.Minute)
		envelope, _ := w.resume()
		out = w.continued(w.approved(envelope))
		if n := out.FileBatch.Counts; n.Confirmed != 199 || n.Rejected != 1 {
			t.Errorf("%+v", n)
		}
		notTwice(t, w)
	})
}

// S76: an attempt that cannot be announced is not made, and nothing is sent after it.
func TestAttemptCannotBeAnnounced(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.opts.Disk = func(step, name string, call func() error) error {
			if name == "attempt-0001.json" && step == string(durable.StepLink) {
				return os.ErrPermission
			}
			return call()
		}
		out := w.created(`[]`)
		is(t, out, source.StatusPartial, "receipt-failed")
		w.saw(after("POST files 201")...)
		// the record may have landed
		filesAre(t, out, "accepted/confirmed", "unverified/", "not_attempted/")
		w.opts.Disk = nil
		_, out = w.resume()
		is(t, out, source.StatusPlanned, "")
		filesAre(t, out, "accepted/confirmed", "not_attempted/", "not_attempted/") // it did not
	})
}

// S90-S92: the first failure is the one that is reported, later ones are warnings; what is
// unverified stands under writes and under what remains, with the warning that it is never sent
// again; only what is proved counts as ingested. S83: that the list does not show the file is no
// authority to send it.
func TestFirstFailureWins(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		out := w.created(rules([3]string{"POST files", "2", `{"status":500}`}, [3]string{"GET files", "2", `{"status":503}`}))
		is(t, out, source.StatusPartial, "azure-http-error")
		w.saw(after("POST files 201", "POST files 500", "GET files 503")...)
		if !strings.Contains(out.Message, "500") {
			t.Errorf("the first failure is not the one: %s", out.Message)
		}
		codes := map[string]string{}
		for _, x := range out.Warnings {
			codes[x.Code] = x.Message
		}
		if !strings.Contains(codes["azure-http-error"], "503") || codes["file-upload-retry-safety-unproven"] == "" {
			t.Errorf("warnings %+v", out.Warnings)
		}
		want := source.Write{Action: "upload-unverified", Name: "b.txt"}
		if !slices.Contains(out.WritesPerformed, want) || !slices.Contains(out.ResourcesRemaining.Unverified, want) {
			t.Errorf("writes %+v, remaining %+v", out.WritesPerformed, out.ResourcesRemaining)
		}
		if n := out.FileBatch.Counts; n.Ingested != 1 || n.Accepted != 1 || n.Confirmed != 1 || n.Unverified != 1 || n.NotAttempted != 1 {
			t.Errorf("counts %+v", n)
		}
		w.script(`[]`)
		_, out = w.resume()
		w.saw("GET source 200", "GET files 200")
		filesAre(t, out, "accepted/confirmed", "unverified/", "not_attempted/")
	})
}
