package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// Status is the queue as GET /api/v1/queue shows it.
type Status struct {
	// Store is "sqlite" or "postgresql".
	Store string `json:"store"`
	// Ready jobs can run now, Waiting ones later (a cooldown, a target's wish, or the time until
	// the next attempt).
	Ready   int `json:"ready"`
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	Done    int `json:"done"` // in the last day
	Dead    int `json:"dead"`
	// Unsaved files were taken by clients and are not jobs yet; Lost ones never became jobs.
	Unsaved int   `json:"unsaved"`
	Lost    int64 `json:"lost"`
	// HeartbeatAge is how long the worker of this process gave no sign of life, in seconds; -1 when
	// it has none.
	HeartbeatAge float64 `json:"heartbeat_age_seconds"`
	// DeadJobs are the newest dead jobs, at most 100.
	DeadJobs []Entry `json:"dead_jobs"`
	// DroppedJobs are those that ended without a copy, since the rules denied it or it was gone:
	// the newest of the last day, at most 100.
	DroppedJobs []Entry `json:"dropped_jobs"`
	// WaitingJobs are those that wait, the next first, at most 100.
	WaitingJobs []Entry `json:"waiting_jobs"`
}

// Entry is one job in the queue.
type Entry struct {
	ID int64 `json:"id"`
	Job
	State    string    `json:"state"`
	Attempts int       `json:"attempts"`
	Reason   string    `json:"reason,omitempty"`
	Next     time.Time `json:"next_at,omitzero"`  // when it will run, while it waits
	Ended    time.Time `json:"ended_at,omitzero"` // when it died
}

const maxEntries = 100

// Status reads the queue.
func (q *Queue) Status(ctx context.Context) (Status, error) {
	n, err := q.counts(ctx)
	if err != nil {
		return Status{}, err
	}
	s := Status{
		Store: q.store.name, Ready: n[rivertype.JobStateAvailable], Running: n[rivertype.JobStateRunning],
		Waiting: n[rivertype.JobStateScheduled] + n[rivertype.JobStateRetryable] + n[rivertype.JobStatePending],
		Done:    n[rivertype.JobStateCompleted], Dead: n[rivertype.JobStateCancelled] + n[rivertype.JobStateDiscarded], HeartbeatAge: -1,
	}
	if beat := q.beat.Load(); beat != 0 {
		s.HeartbeatAge = q.opts.now().Sub(time.Unix(0, beat)).Seconds()
	}
	if s.DeadJobs, err = q.Dead(ctx, maxEntries); err != nil {
		return Status{}, err
	}
	if s.DroppedJobs, err = q.dropped(ctx); err != nil {
		return Status{}, err
	}
	s.WaitingJobs, err = q.list(ctx, river.NewJobListParams().First(maxEntries).OrderBy(river.JobListOrderByScheduledAt, river.SortOrderAsc).
		States(rivertype.JobStateScheduled, rivertype.JobStateRetryable))
	return s, err
}

// dropped is what a dropped job leaves in its row.
type dropped struct {
	Dropped string `json:"dropped"`
}

// maxFinished is how many finished jobs are looked through for dropped ones.
const maxFinished = 1000

// dropped lists the newest jobs that ended without a copy.
func (q *Queue) dropped(ctx context.Context) ([]Entry, error) {
	r, err := q.store.JobList(ctx, river.NewJobListParams().First(maxFinished).
		OrderBy(river.JobListOrderByFinalizedAt, river.SortOrderDesc).States(rivertype.JobStateCompleted))
	if err != nil {
		return nil, err
	}
	out := []Entry{}
	for _, row := range r.Jobs {
		var d dropped
		if json.Unmarshal(row.Output(), &d) != nil || d.Dropped == "" {
			continue
		}
		e := entryOf(row)
		e.Reason = d.Dropped
		if out = append(out, e); len(out) == maxEntries {
			break
		}
	}
	return out, nil
}

func (q *Queue) counts(ctx context.Context) (map[rivertype.JobState]int, error) {
	return q.store.exec.JobCountByAllStates(ctx, &riverdriver.JobCountByAllStatesParams{})
}

// Dead lists dead jobs, the newest first.
func (q *Queue) Dead(ctx context.Context, limit int) ([]Entry, error) {
	return q.list(ctx, river.NewJobListParams().First(limit).OrderBy(river.JobListOrderByID, river.SortOrderDesc).
		States(rivertype.JobStateCancelled, rivertype.JobStateDiscarded))
}

func (q *Queue) list(ctx context.Context, p *river.JobListParams) ([]Entry, error) {
	r, err := q.store.JobList(ctx, p)
	if err != nil {
		return nil, err
	}
	out := []Entry{}
	for _, row := range r.Jobs {
		out = append(out, entryOf(row))
	}
	return out, nil
}

// unfinished are the jobs that are neither done nor dead, as far as they can be read.
func (q *Queue) unfinished(ctx context.Context) []Job {
	r, err := q.store.JobList(ctx, river.NewJobListParams().First(maxUnsaved).
		States(rivertype.JobStateAvailable, rivertype.JobStateRunning, rivertype.JobStateScheduled, rivertype.JobStateRetryable, rivertype.JobStatePending))
	if err != nil {
		return nil // its owner has reported what is wrong
	}
	var out []Job
	for _, row := range r.Jobs {
		var s sealed
		if json.Unmarshal(row.EncodedArgs, &s) == nil && s.intact() {
			out = append(out, s.Job)
		}
	}
	return out
}

func entryOf(row *rivertype.JobRow) Entry {
	e := Entry{ID: row.ID, State: string(row.State), Attempts: row.Attempt}
	if err := json.Unmarshal(row.EncodedArgs, &e.Job); err != nil {
		e.Reason = "unreadable job"
	}
	if n := len(row.Errors); n > 0 {
		e.Reason = strings.TrimPrefix(row.Errors[n-1].Error, "JobCancelError: ")
	}
	if row.FinalizedAt != nil {
		e.Ended = *row.FinalizedAt
	} else {
		e.Next = row.ScheduledAt
	}
	return e
}

// ErrNoJob says that a job is not in the queue.
var ErrNoJob = errors.New("no such job")

// Retry gives a dead or waiting job another attempt now.
func (q *Queue) Retry(ctx context.Context, id int64) (Entry, error) {
	row, err := q.store.JobRetry(ctx, id)
	return answer(id, row, err)
}

// Drop takes a job out of the queue for good. A running one cannot be dropped.
func (q *Queue) Drop(ctx context.Context, id int64) (Entry, error) {
	row, err := q.store.JobDelete(ctx, id)
	return answer(id, row, err)
}

func answer(id int64, row *rivertype.JobRow, err error) (Entry, error) {
	if errors.Is(err, rivertype.ErrNotFound) {
		return Entry{}, fmt.Errorf("job %d: %w", id, ErrNoJob)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("job %d: %v", id, err)
	}
	return entryOf(row), nil
}

func attemptError(row *rivertype.JobRow, now time.Time, text string) []byte {
	// holds nothing that could fail
	b, _ := json.Marshal(rivertype.AttemptError{At: now, Attempt: max(row.Attempt, 0), Error: text})
	return b
}
