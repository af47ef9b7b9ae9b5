package source_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/internal/source/sourcetest"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

var errDisk = errors.New("the disk failed")

// diskStep is one step that a good run takes.
type diskStep struct {
	step string
	name string
}

// diskRun is a creation of two files whose first upload meets a 429 that is waited for, with the
// nth step of the disk failing: before it happened, or although it happened. It gives the number of
// steps and whether the failure came.
func diskRun(w *world, fail int, landed bool) (out *source.Outcome, steps []diskStep) {
	w.opts.Disk = func(step, name string, call func() error) error {
		if steps = append(steps, diskStep{step, filepath.Base(name)}); len(steps) != fail {
			return call()
		}
		w.t.Logf("step %d: %s of %s fails, landed %v", fail, step, name, landed)
		if landed {
			_ = call()
		}
		return errDisk
	}
	out = w.created(rules([3]string{"POST files", "1", throttle2}))
	w.opts.Disk = nil
	return out, steps
}

// S94, S98, S101-S105 and the crash table: every step of every write to the disk fails, once before
// it happens and once although it happened. Afterwards the journal is read back from the disk: the
// next run says what the crash table says, sends nothing while anything is open, and no file was
// ever posted twice but after a received 429.
func TestEveryDiskStepFails(t *testing.T) {
	var steps []diskStep
	inWorld(t, []string{"a.txt", "b.txt"}, func(t *testing.T, w *world) {
		var out *source.Outcome
		out, steps = diskRun(w, 0, false)
		is(t, out, source.StatusCompleted, "")
	})
	for _, landed := range []bool{false, true} {
		t.Run(fmt.Sprintf("landed=%v", landed), func(t *testing.T) {
			t.Parallel()
			for i, n := range sites(steps) {
				if testing.Short() && i%5 != 0 {
					continue
				}
				dir := journaltest.Dir(t)
				synctest.Test(t, func(t *testing.T) { oneDiskFailure(t, newWorld(t, dir, []string{"a.txt", "b.txt"}), n, landed) })
			}
		})
	}
}

// sites picks the numbers of the steps to fail: every step of every file once, and of the markers,
// which are all written alike, the steps that change the folder for each request.
// ECLUSE_TEST_FULL=1 takes every step there is.
func sites(steps []diskStep) []int {
	var all []int
	seen := map[diskStep]bool{}
	for i, s := range steps {
		changes := s.name == "pending-request.json" && (s.step == string(durable.StepLink) || s.step == string(durable.StepRemove))
		if !seen[s] || changes || os.Getenv("ECLUSE_TEST_FULL") != "" {
			all = append(all, i+1)
		}
		seen[s] = true
	}
	return all
}

func oneDiskFailure(t *testing.T, w *world, n int, landed bool) {
	out, _ := diskRun(w, n, landed)
	if out.Status == source.StatusCompleted {
		t.Errorf("the failure of a step was not noticed")
	}
	wrote := len(w.emu.State().Sources) > 0
	if (out.Status == source.StatusPartial) != wrote {
		t.Errorf("status %s (%s), source on the service: %v", out.Status, out.Code, wrote)
	}
	w.connect()
	w.requests()
	w.tokens.Store(0)
	if _, err := os.Stat(w.path("journal")); err != nil {
		return // not even the folder was made
	}
	want := sourcetest.Verdict(t, w.path("journal"), time.Now())
	if status, code := next(t, w, want); sourcetest.Says(status, code) != want {
		t.Errorf("the next run says %s %s, the crash table %s", status, code, want)
	}
	notTwice(t, w)
}

// next resumes, and carries the continuation out if there is one. While anything is open nothing
// may be sent and no token asked for.
func next(t *testing.T, w *world, want string) (status, code string) {
	envelope, out := w.resume()
	if want != sourcetest.Go {
		w.saw()
		if w.tokens.Load() != 0 {
			t.Error("a token was asked for")
		}
	}
	if want == sourcetest.Waiting {
		if out.Status != source.StatusWaiting {
			t.Errorf("status %s", out.Status)
		}
	}
	if envelope != nil {
		done := w.continued(w.approved(envelope))
		if done.Status == source.StatusBlocked || done.FileBatch.Counts.NotAttempted != 0 {
			t.Errorf("the continuation: %s %s %+v", done.Status, done.Code, done.FileBatch.Counts)
		}
	}
	return out.Status, out.Code
}
