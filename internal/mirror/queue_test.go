package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/obs"
)

func jobN(n int) Job {
	v := fmt.Sprintf("1.0.%d", n)
	return Job{Ecosystem: "npm", Package: "left-pad", Version: v, File: "left-pad-" + v + ".tgz"}
}

// script is a Do that a test scripts, and counts.
type script struct {
	mu   sync.Mutex
	runs map[Job]int
	do   func(j Job, run int) Outcome
}

func newScript(do func(j Job, run int) Outcome) *script { return &script{runs: map[Job]int{}, do: do} }

func (s *script) Do(_ context.Context, j Job) Outcome {
	s.mu.Lock()
	s.runs[j]++
	run := s.runs[j]
	s.mu.Unlock()
	return s.do(j, run)
}

func (s *script) count(j Job) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[j]
}

func (s *script) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, runs := range s.runs {
		n += runs
	}
	return n
}

// eachStore runs a test on both databases: the same code must do the same on both.
func eachStore(t *testing.T, test func(t *testing.T, o QueueOptions)) {
	t.Helper()
	base := QueueOptions{Workers: 4, Logger: slog.New(slog.DiscardHandler), pollInterval: 50 * time.Millisecond, firstRetry: 10 * time.Millisecond}
	t.Run("sqlite", func(t *testing.T) {
		o := base
		o.Path, o.Alone = filepath.Join(t.TempDir(), "queue.db"), true
		test(t, o)
	})
	t.Run("postgresql", func(t *testing.T) {
		o := base
		o.URL = postgres(t)
		test(t, o)
	})
}

func open(t *testing.T, o QueueOptions) *Queue {
	t.Helper()
	q, err := OpenQueue(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

func begin(t *testing.T, q *Queue) {
	t.Helper()
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Stop(context.WithoutCancel(t.Context())) })
}

func insert(t *testing.T, q *Queue, jobs ...Job) int {
	t.Helper()
	n, err := q.Insert(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func status(t *testing.T, q *Queue) Status {
	t.Helper()
	s, err := q.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func until(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ready(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within three minutes", what)
		}
	}
}

// A job is stored once, whether it waits, is done or is dead.
func TestOneJobForEachFile(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, o QueueOptions) {
		s := newScript(func(j Job, _ int) Outcome {
			if j == jobN(2) {
				return Outcome{Result: Failed, Final: true, Reason: "over the bound"}
			}
			return Outcome{Result: Published}
		})
		o.Do = s.Do
		q := open(t, o)
		if n := insert(t, q, jobN(1), jobN(2), jobN(1)); n != 2 {
			t.Errorf("%d jobs were new, want 2", n)
		}
		begin(t, q)
		until(t, "both to end", func() bool { st := status(t, q); return st.Done == 1 && st.Dead == 1 })
		if n := insert(t, q, jobN(1), jobN(2)); n != 0 {
			t.Errorf("%d jobs were new although one is done and one is dead", n)
		}
		st := status(t, q)
		if st.DeadJobs[0].Reason != "over the bound" || st.DeadJobs[0].Job != jobN(2) {
			t.Errorf("dead job = %+v", st.DeadJobs[0])
		}
		if st.HeartbeatAge < 0 || st.HeartbeatAge > 20 {
			t.Errorf("heartbeat age = %v", st.HeartbeatAge)
		}
	})
}

// R57, R61: waiting spends no attempt, however often; R62: the heartbeat moves meanwhile.
func TestWaitingSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, o QueueOptions) {
		const waits = MaxAttempts + 2
		s := newScript(func(_ Job, run int) Outcome {
			if run <= waits {
				return Outcome{Result: Snoozed, Wait: time.Millisecond, Reason: "the authority cools"}
			}
			return Outcome{Result: Published}
		})
		o.Do = s.Do
		q := open(t, o)
		begin(t, q)
		insert(t, q, jobN(1))
		until(t, "the job", func() bool { return status(t, q).Done == 1 })
		if n := s.count(jobN(1)); n != waits+1 {
			t.Errorf("the job ran %d times, want %d", n, waits+1)
		}
	})
}

// C50, R60: failing spends attempts, which are bounded; then the job is dead and says why.
func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, o QueueOptions) {
		s := newScript(func(_ Job, run int) Outcome {
			return Outcome{Result: Failed, Reason: fmt.Sprintf("no connection, run %d", run)}
		})
		o.Do = s.Do
		q := open(t, o)
		begin(t, q)
		insert(t, q, jobN(1))
		until(t, "the job to die", func() bool { return status(t, q).Dead == 1 })
		dead := status(t, q).DeadJobs[0]
		if s.count(jobN(1)) != MaxAttempts || dead.Reason != fmt.Sprintf("no connection, run %d", MaxAttempts) {
			t.Errorf("ran %d times, died of %q", s.count(jobN(1)), dead.Reason)
		}
		// An operator may give it another chance, or let it go (tc-085).
		if _, err := q.Retry(t.Context(), dead.ID); err != nil {
			t.Fatal(err)
		}
		until(t, "another attempt", func() bool { return s.count(jobN(1)) == MaxAttempts+1 && status(t, q).Dead == 1 })
		if _, err := q.Drop(t.Context(), dead.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Drop(t.Context(), dead.ID); !errors.Is(err, ErrNoJob) {
			t.Errorf("dropped twice: %v", err)
		}
		if n := insert(t, q, jobN(1)); n != 1 {
			t.Error("a dropped job cannot come back")
		}
	})
}

// C50: what cannot change by asking again is asked once.
func TestFinalFailureRunsOnce(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, o QueueOptions) {
		s := newScript(func(Job, int) Outcome { return Outcome{Result: Failed, Final: true, Reason: "400"} })
		o.Do = s.Do
		q := open(t, o)
		begin(t, q)
		insert(t, q, jobN(1), jobN(2))
		until(t, "both to die", func() bool { return status(t, q).Dead == 2 })
		if n := s.total(); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
	})
}

// tc-084, tc-086: what waits at a restart waits on afterwards, neither forgotten nor early, with
// its attempts.
func TestRestartKeepsTheWait(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, o QueueOptions) {
		s := newScript(func(Job, int) Outcome {
			return Outcome{Result: Snoozed, Wait: time.Hour, Reason: "the authority cools"}
		})
		o.Do = s.Do
		q := open(t, o)
		begin(t, q)
		insert(t, q, jobN(1))
		until(t, "the wait", func() bool { return status(t, q).Waiting == 1 })
		before := status(t, q).WaitingJobs[0]
		q.Stop(t.Context())
		q.Close()
		q = open(t, o)
		begin(t, q)
		time.Sleep(300 * time.Millisecond)
		after := status(t, q)
		if s.total() != 1 || after.Waiting != 1 || !after.WaitingJobs[0].Next.Equal(before.Next) || after.WaitingJobs[0].Attempts != 0 {
			t.Errorf("%d runs; before %+v, after %+v", s.total(), before, after)
		}
	})
}

// A stop does not count against the jobs that it interrupts.
func TestStopSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, o QueueOptions) {
		w := NewWorker(WorkerOptions{Metrics: obs.NewMetrics()})
		begun := make(chan struct{}, 8)
		o.Do = func(ctx context.Context, _ Job) Outcome {
			begun <- struct{}{}
			<-ctx.Done()
			return w.judge(ctx, ctx.Err())
		}
		q := open(t, o)
		begin(t, q)
		insert(t, q, jobN(1))
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		q.Stop(ctx)
		st := status(t, q)
		if st.Ready+st.Waiting != 1 || st.Dead != 0 {
			t.Fatalf("after the stop: %+v", st)
		}
		q.Close()
		o.Do = func(context.Context, Job) Outcome { return Outcome{Result: Published} }
		q = open(t, o)
		begin(t, q)
		until(t, "the job", func() bool { return status(t, q).Done == 1 })
	})
}

// tc-088: what the queue took is synced, its folder included: SQLite does so in this mode.
func TestSQLiteSyncsFully(t *testing.T) {
	q := open(t, QueueOptions{Path: filepath.Join(t.TempDir(), "a queue?.db"), Logger: slog.New(slog.DiscardHandler)})
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "busy_timeout": "10000"} {
		var got string
		if err := q.store.exec.QueryRow(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, want %q (%v)", pragma, got, want, err)
		}
	}
}

// A dropped job is done, and is shown with why it was dropped.
func TestDroppedJobsAreShown(t *testing.T) {
	eachStore(t, func(t *testing.T, o QueueOptions) {
		script := newScript(func(j Job, _ int) Outcome {
			if j == jobN(1) {
				return Outcome{Result: Dropped, Reason: "denied by ban"}
			}
			return Outcome{Result: Published}
		})
		o.Do = script.Do
		q := open(t, o)
		insert(t, q, jobN(1), jobN(2))
		begin(t, q)
		until(t, "both jobs to end", func() bool { return status(t, q).Done == 2 })
		st := status(t, q)
		if len(st.DroppedJobs) != 1 || st.DroppedJobs[0].Job != jobN(1) || st.DroppedJobs[0].Reason != "denied by ban" || st.DroppedJobs[0].Ended.IsZero() || st.Dead != 0 {
			t.Errorf("%+v", st)
		}
	})
}
