package progress_test

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source/progress"
)

// S147: transitions at once, the same stage at most once a second, a heartbeat every five seconds
// while a file is sent, no stage twice.
func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []progress.Event
		r := progress.New("apply", time.Now, func(e progress.Event) error { got = append(got, e); return nil })
		take := func() []progress.Event { taken := got; got = nil; return taken }

		r.Enter(progress.Source)
		r.Enter(progress.Source)
		if e := take(); len(e) != 1 || e[0].Activity != "source" || e[0].State != progress.Running || e[0].Event != "progress" {
			t.Fatalf("a stage entered twice: %+v", e)
		}
		for range 40 {
			r.Count(3, map[string]int{"confirmed": 1})
			time.Sleep(100 * time.Millisecond)
		}
		if e := take(); len(e) < 3 || len(e) > 4 || e[0].RemainingChecks != 3 || e[0].CompletedCounts["confirmed"] != 1 {
			t.Errorf("40 counts in four seconds made %d events", len(e))
		}
		r.Wait(1500 * time.Millisecond)
		if e := take(); len(e) != 1 || e[0].State != progress.Waiting || *e[0].Wait != (progress.Wait{Reason: "http-429", Seconds: 2}) {
			t.Errorf("wait: %+v", e)
		}
		stop := r.Send(1, 3, 2)
		time.Sleep(11 * time.Second)
		stop()
		e := take()
		if len(e) != 4 || e[3].ProcessingFile != nil || e[0].Activity != "upload" || *e[2].ProcessingFile != (progress.File{Ordinal: 1, Total: 3, Attempt: 2, Elapsed: 10}) {
			t.Errorf("sending for 11 seconds made %d events: %+v", len(e), e)
		}
		time.Sleep(time.Minute)
		if e := take(); len(e) != 0 {
			t.Errorf("a heartbeat after the end: %+v", e)
		}
		r.Enter(progress.Inventory) // the queue route lists files between uploads
		if e := take(); len(e) != 1 || e[0].Activity != "upload" {
			t.Errorf("went back: %+v", e)
		}
		r.Finish(progress.Partial)
		if e := take(); len(e) != 1 || e[0].Activity != "done" || e[0].State != progress.Partial || e[0].ProcessingFile != nil {
			t.Errorf("end: %+v", e)
		}
	})
}

// S148
func TestBrokenWatcher(t *testing.T) {
	calls := 0
	r := progress.New("apply", time.Now, func(progress.Event) error { calls++; return errors.New("broken pipe") })
	r.Enter(progress.Source)
	r.Enter(progress.Upload)
	r.Finish(progress.Completed)
	if calls != 1 || !r.Broken() {
		t.Errorf("%d calls, broken %v", calls, r.Broken())
	}
	var silent *progress.Reporter
	silent.Enter(progress.Source)
	silent.Send(1, 1, 1)()
	if silent.Broken() {
		t.Error("a silent reporter is never broken")
	}
}

func TestEventHasNoBytes(t *testing.T) {
	data, _ := json.Marshal(progress.Event{Sent: 1, Total: 2})
	var m map[string]any
	_ = json.Unmarshal(data, &m)
	if m["Sent"] != nil || m["event"] == nil || m["remaining_checks"] == nil || m["completed_counts"] != nil {
		t.Errorf("%s", data)
	}
}
