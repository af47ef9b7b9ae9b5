package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// The table from the end of a run to what becomes of the job: R57, R60, R61, C36, C49, C50, tc-079.
func TestJudge(t *testing.T) {
	w := NewWorker(WorkerOptions{Rand: func(n int64) int64 { return n - 1 }})
	undecided := &gate.Denied{What: "x"} // for want of data
	undecided.Verdict.Temporary = true
	for _, c := range []struct {
		err    error
		result Result
		final  bool
		least  time.Duration // of the wait
	}{
		{nil, Published, false, 0},
		{errHeld, Present, false, 0},
		{fmt.Errorf("wrapped: %w", ErrPresent), Present, false, 0},
		{&gate.Unavailable{Wait: 10 * time.Minute, Cooldown: true, Reason: "paused"}, Snoozed, false, 10*time.Minute + clientsFirst},
		{&gate.Unavailable{Wait: time.Second, Cooldown: true, Probing: true, Reason: "probed"}, Snoozed, false, time.Second},
		// no connection: an attempt
		{&gate.Unavailable{Wait: time.Second, Reason: "no answer"}, Failed, false, 0},
		// R90, R97
		{&gate.Unavailable{Wait: 2 * time.Minute, Crowded: true, Reason: "busy"}, Snoozed, false, 2*time.Minute + clientsFirst},
		{&Postponed{Delay: time.Minute, Status: 429}, Snoozed, false, time.Minute},
		{&Rejected{Status: 400}, Failed, true, 0},
		{&gate.Refused{Status: 400}, Failed, true, 0},
		{&gate.Mismatch{File: "x"}, Failed, true, 0},
		{unfit("over the bound"), Failed, true, 0},
		{&gate.Denied{What: "x"}, Dropped, false, 0},
		{undecided, Snoozed, false, firstRetry}, // R99
		{&gate.NotFound{What: "x"}, Dropped, false, 0},
		{&gate.BadUpstream{Reason: "answered 502", Status: 502}, Failed, false, 0},
		{&gate.BadUpstream{Reason: "answered 401 to a listing", Status: 401}, Failed, true, 0},
		{&gate.BadUpstream{Reason: "malformed"}, Failed, false, 0},
		{&upstream.Failure{Outcome: "connection"}, Failed, false, 0},
		{errors.New("the disk is full"), Failed, false, 0},
	} {
		o := w.judge(t.Context(), c.err)
		if o.Result != c.result || o.Final != c.final || o.Wait < c.least || o.Wait > c.least+spread {
			t.Errorf("%v: %+v", c.err, o)
		}
		if (o.Reason == "") != (o.Result == Published || o.Result == Present) {
			t.Errorf("%v: reason %q", c.err, o.Reason)
		}
	}
}

// R60: attempts are spread so that an outage of a day does not use them up in minutes, and each
// waits longer than the one before.
func TestAttemptsAreSpread(t *testing.T) {
	now := time.Now()
	r := retries{firstRetry, func() time.Time { return now }}
	total, last := time.Duration(0), time.Duration(0)
	for attempt := 1; attempt < MaxAttempts; attempt++ {
		wait := r.NextRetry(rowOf(attempt)).Sub(now)
		if wait < firstRetry || wait > lastRetry+lastRetry/10 || wait < last/2 {
			t.Errorf("after attempt %d: %v", attempt, wait)
		}
		total, last = total+wait, wait
	}
	if total < time.Hour {
		t.Errorf("all attempts are used up after %v", total)
	}
}

// R59: while one authority cools, jobs of others go on.
func TestOtherAuthoritiesGoOn(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, o QueueOptions) {
		o.Do = func(_ context.Context, j Job) Outcome {
			if j.Ecosystem == "npm" {
				return Outcome{Result: Snoozed, Wait: time.Hour, Reason: "the authority cools"}
			}
			return Outcome{Result: Published}
		}
		q := open(t, o)
		var jobs []Job
		for i := range 20 {
			pypi := jobN(i)
			pypi.Ecosystem = "pypi"
			jobs = append(jobs, jobN(i), pypi)
		}
		insert(t, q, jobs...)
		begin(t, q)
		until(t, "the others", func() bool { st := status(t, q); return st.Done == 20 && st.Waiting == 20 })
	})
}

// saver is a store that a test breaks.
type saver struct {
	mu     sync.Mutex
	broken bool
	block  chan struct{} // closed: does not block
	saved  []Job
	tries  int
}

func (s *saver) Insert(ctx context.Context, jobs []Job) (int, error) {
	select {
	case <-s.block:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if s.broken {
		return 0, errors.New("the database is gone")
	}
	s.saved = append(s.saved, jobs...)
	return len(jobs), nil
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// An offer never waits: while the store is stuck offers fill the memory, and the rest is counted as
// lost and taken when it comes again.
func TestOffersNeverWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &saver{block: make(chan struct{})}
		o := NewOffers(s, obs.NewMetrics(), slog.New(slog.DiscardHandler))
		go o.Run(t.Context())
		begin := time.Now()
		const n = maxUnsaved + maxBatch + 100
		for i := range n {
			o.Offer(jobN(i))
			synctest.Wait()
		}
		_, lost := o.Unsaved()
		if lost == 0 || lost > 100+maxBatch || time.Since(begin) != 0 {
			t.Errorf("lost %d, waited %v", lost, time.Since(begin))
		}
		close(s.block)
		synctest.Wait()
		for i := range n {
			o.Offer(jobN(i)) // those that were saved are known
			synctest.Wait()
		}
		o.Close(t.Context())
		if len(s.saved) != n {
			t.Errorf("%d jobs saved, want each of %d once", len(s.saved), n)
		}
	})
}

// A store that fails is tried again; what was offered before a stop is saved by it, and an offer
// after it is not taken.
func TestOffersOutliveAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &saver{block: closed(), broken: true}
		o := NewOffers(s, obs.NewMetrics(), slog.New(slog.DiscardHandler))
		go o.Run(t.Context())
		o.Offer(jobN(1))
		time.Sleep(10 * time.Second)
		s.mu.Lock()
		if s.tries < 5 || s.tries > 15 {
			t.Errorf("%d tries in 10 s", s.tries)
		}
		s.broken = false
		s.mu.Unlock()
		o.Offer(jobN(2))
		o.Offer(Job{Ecosystem: "npm"}) // no job
		o.Close(t.Context())
		o.Offer(jobN(3))
		if len(s.saved) != 2 {
			t.Errorf("saved %v", s.saved)
		}
		if _, lost := o.Unsaved(); lost != 0 {
			t.Errorf("lost %d", lost)
		}
	})
}

// One process runs the jobs of a folder.
func TestOneWorkerInAFolder(t *testing.T) {
	o := ServiceOptions{DataDir: t.TempDir(), Work: true, Metrics: obs.NewMetrics(), Logger: slog.New(slog.DiscardHandler)}
	first, err := Begin(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(t.Context(), o); err == nil || !strings.Contains(err.Error(), "--no-worker") {
		t.Errorf("a second worker: %v", err)
	}
	o.Work = false
	taker, err := Begin(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	taker.Offer(jobN(1))
	taker.Stop(t.Context()) // saves it
	if st, err := first.Status(t.Context()); err != nil || st.Ready+st.Running+st.Waiting+st.Dead+st.Done != 1 {
		t.Errorf("%+v %v", st, err)
	}
	first.Stop(t.Context())
	again, err := Begin(t.Context(), ServiceOptions{DataDir: o.DataDir, Work: true, Metrics: obs.NewMetrics(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	again.Stop(t.Context())
}

// A queue that cannot be opened says where and why, and shows no password.
func TestQueueThatCannotBeOpened(t *testing.T) {
	for name, o := range map[string]QueueOptions{
		"no folder":   {Path: filepath.Join(t.TempDir(), "missing", "queue.db")},
		"nobody home": {URL: "postgres://me:secret@127.0.0.1:1/jobs"},
		"no address":  {URL: "postgres://me:secret@:x/jobs"},
	} {
		o.Logger = slog.New(slog.DiscardHandler)
		_, err := OpenQueue(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "queue") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func rowOf(attempt int) *rivertype.JobRow { return &rivertype.JobRow{Attempt: attempt} }
