// Package progress tells a watcher what a run is doing, seldom enough to be read and often enough
// to be believed (S147): a change at once, the same thing at most once a second, a sign of life
// every five seconds while a file is being sent, and never a stage that was left already. A watcher
// that breaks is left alone and never disturbs the run (S148).
package progress

import (
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// Stage is where a run is. Stages only go forward.
type Stage int

// The stages of a run, in order.
const (
	Files     Stage = iota // local files are measured
	Source                 // the knowledge source is read or written
	Inventory              // the files on the server are listed
	Upload                 // files are sent
	Verify                 // the files on the server are listed once more
	Done
)

func (s Stage) String() string {
	return [...]string{"files", "source", "inventory", "upload", "verify", "done"}[s]
}

// The states of an event.
const (
	Running    = "running"
	Waiting    = "waiting"
	Processing = "processing"
	Completed  = "completed"
	Blocked    = "blocked"
	Partial    = "partial"
)

// Event is one line of --progress json.
type Event struct {
	Event           string         `json:"event"` // always "progress"
	Workflow        string         `json:"workflow"`
	Activity        string         `json:"activity"`
	State           string         `json:"state"`
	ElapsedSeconds  int64          `json:"elapsed_seconds"`
	RemainingChecks int            `json:"remaining_checks"`
	CompletedCounts map[string]int `json:"completed_counts"`
	Wait            *Wait          `json:"wait,omitempty"`
	ProcessingFile  *File          `json:"processing_file,omitempty"`
	// Sent and Total are bytes of the files, for a bar.
	Sent  int64 `json:"-"`
	Total int64 `json:"-"`
}

// Wait is a wait that the server asked for.
type Wait struct {
	Reason  string `json:"reason"` // http-429
	Seconds int    `json:"seconds"`
}

// File is the file being sent. Ordinal counts from 1.
type File struct {
	Ordinal int   `json:"ordinal"`
	Total   int   `json:"total"`
	Attempt int   `json:"attempt"`
	Elapsed int64 `json:"elapsed"` // seconds
}

const (
	sameEvery = time.Second
	heartbeat = 5 * time.Second
)

// Reporter collects what happens and emits events. Safe for concurrent use. The zero value and a
// nil *Reporter are silent.
type Reporter struct {
	now  func() time.Time
	emit func(Event) error

	mu      sync.Mutex // guards everything below
	started time.Time
	last    time.Time
	stage   Stage
	event   Event
	fileAt  time.Time
	broken  bool
}

// New starts a report. emit is called by one goroutine at a time and must not block for long.
func New(workflow string, now func() time.Time, emit func(Event) error) *Reporter {
	return &Reporter{
		now: now, emit: emit, started: now(),
		event: Event{Event: "progress", Workflow: workflow, Activity: Files.String(), State: Running, CompletedCounts: map[string]int{}},
	}
}

// Enter goes on to a stage; an earlier one than the present is ignored.
func (r *Reporter) Enter(stage Stage) {
	r.change(func() bool {
		ahead := stage > r.stage
		if ahead {
			r.stage, r.event.Activity = stage, stage.String()
		}
		changed := ahead || r.event.State != Running
		r.event.State, r.event.Wait, r.event.ProcessingFile = Running, nil, nil
		return changed
	})
}

// Wait says that the run waits d because the server asked for it.
func (r *Reporter) Wait(d time.Duration) {
	r.change(func() bool {
		r.event.State, r.event.Wait = Waiting, &Wait{Reason: "http-429", Seconds: int(retryafter.Seconds(d))}
		return true
	})
}

// Send says that a file (the first is 1) is being sent; the returned function ends that and its
// heartbeat.
func (r *Reporter) Send(ordinal, total, attempt int) (stop func()) {
	if r == nil || r.emit == nil {
		return func() {}
	}
	r.change(func() bool {
		if r.stage < Upload {
			r.stage, r.event.Activity = Upload, Upload.String()
		}
		r.fileAt = r.now()
		r.event.State, r.event.Wait = Processing, nil
		r.event.ProcessingFile = &File{Ordinal: ordinal, Total: total, Attempt: attempt}
		return true
	})
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.change(func() bool { return true })
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
		r.change(func() bool {
			r.event.State, r.event.ProcessingFile = Running, nil
			return false
		})
	}
}

// Count sets how many files are where, and how many are still to be proved.
func (r *Reporter) Count(remaining int, completed map[string]int) {
	r.change(func() bool {
		r.event.RemainingChecks, r.event.CompletedCounts = remaining, completed
		return false
	})
}

// Bytes adds to what was sent; total is the sum of all files.
func (r *Reporter) Bytes(sent, total int64) {
	r.change(func() bool {
		r.event.Sent, r.event.Total = sent, total
		return false
	})
}

// Finish says how the run ended: Completed, Blocked, Partial or Waiting.
func (r *Reporter) Finish(state string) {
	r.change(func() bool {
		r.stage, r.event.Activity = Done, Done.String()
		r.event.State, r.event.Wait, r.event.ProcessingFile = state, nil, nil
		return true
	})
}

// Broken reports whether an event could not be written; none was tried after that.
func (r *Reporter) Broken() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// change applies f and emits an event when f says that it is a transition, or when the last event
// is a second old.
func (r *Reporter) change(f func() (transition bool)) {
	if r == nil || r.emit == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if !f() && now.Sub(r.last) < sameEvery || r.broken {
		return
	}
	r.last = now
	event := r.event
	event.ElapsedSeconds = int64(now.Sub(r.started) / time.Second)
	if event.ProcessingFile != nil {
		file := *event.ProcessingFile
		file.Elapsed = int64(now.Sub(r.fileAt) / time.Second)
		event.ProcessingFile = &file
	}
	r.broken = r.emit(event) != nil
}
