package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/ecluse-gate/ecluse/internal/obs"
)

// Bounds of a job's life that have no configuration key.
const (
	// MaxAttempts is how often a job may fail before it is dead; waiting for a cooldown spends none
	// (R61).
	MaxAttempts = 8
	// firstRetry doubles with every attempt up to lastRetry, so that an outage cannot burn the
	// attempts in seconds (R60).
	firstRetry = 30 * time.Second
	lastRetry  = time.Hour
	// jobTimeout bounds one run, and rescueAfter is when a run whose process has ended is given to
	// another.
	jobTimeout  = 30 * time.Minute
	rescueAfter = 35 * time.Minute
	// doneFor is how long a finished job stays, and keeps others from asking for the same.
	doneFor = 24 * time.Hour

	fetchCooldown = 20 * time.Millisecond
	pollInterval  = 500 * time.Millisecond
	beatInterval  = 10 * time.Second
	softStop      = 10 * time.Second
)

// QueueOptions open a Queue.
type QueueOptions struct {
	// URL is the address of a PostgreSQL database; empty means the SQLite file at Path.
	URL  string
	Path string
	// Do runs a job; nil opens a queue that only takes and shows jobs.
	Do func(context.Context, Job) Outcome
	// Alone reports that no other process runs jobs of this queue, so that what a dead process had
	// begun may start again at once. It is for SQLite, under a lock of the folder.
	Alone bool
	// Workers is how many jobs run at once.
	Workers int
	Logger  *slog.Logger

	// Below are for tests.
	time                     rivertype.TimeGenerator
	jobTimeout, rescueAfter  time.Duration
	firstRetry, pollInterval time.Duration
}

// Queue is the durable queue of mirror jobs. What Insert has returned survives the process. It is
// safe for concurrent use.
type Queue struct {
	store  *store
	opts   QueueOptions
	beat   atomic.Int64 // the heartbeat, in Unix nanoseconds
	cancel context.CancelFunc
}

// OpenQueue opens the queue and brings its tables up to date. Close it.
func OpenQueue(ctx context.Context, o QueueOptions) (*Queue, error) {
	orDefault(&o.jobTimeout, jobTimeout)
	orDefault(&o.rescueAfter, rescueAfter)
	orDefault(&o.firstRetry, firstRetry)
	orDefault(&o.pollInterval, pollInterval)
	q := &Queue{opts: o, cancel: func() {}}
	cfg := &river.Config{
		CancelledJobRetentionPeriod: -1, // dead jobs stay until they are dropped
		DiscardedJobRetentionPeriod: -1,
		CompletedJobRetentionPeriod: doneFor,
		FetchCooldown:               fetchCooldown, FetchPollInterval: o.pollInterval,
		JobTimeout: o.jobTimeout, RescueStuckJobsAfter: o.rescueAfter,
		MaxAttempts: MaxAttempts, RetryPolicy: retries{o.firstRetry, o.now},
		Logger: slog.New(quiet{o.Logger.Handler(), &sync.Map{}}),
		Test:   river.TestConfig{Time: o.time},
	}
	if o.Do != nil {
		cfg.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.Workers}}
		cfg.Workers = river.NewWorkers()
		river.AddWorker(cfg.Workers, &runner{queue: q})
	}
	var err error
	q.store, err = openStore(ctx, o, cfg)
	return q, err
}

func orDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Insert stores jobs that are not in the queue yet, dead or alive, and returns how many were new.
func (q *Queue) Insert(ctx context.Context, jobs []Job) (fresh int, err error) {
	params, seen := make([]river.InsertManyParams, 0, len(jobs)), map[Job]bool{}
	for _, j := range jobs {
		if err := j.check(); err != nil {
			return 0, err
		}
		if seen[j] {
			continue
		}
		seen[j] = true
		params = append(params, river.InsertManyParams{Args: seal(j), InsertOpts: &river.InsertOpts{UniqueOpts: river.UniqueOpts{
			ByArgs: true, ByState: rivertype.JobStates(),
		}}})
	}
	if len(params) == 0 {
		return 0, nil
	}
	results, err := q.store.InsertMany(ctx, params)
	for _, r := range results {
		if !r.UniqueSkippedAsDuplicate {
			fresh++
		}
	}
	return fresh, err
}

// Start begins to run jobs, until Stop.
func (q *Queue) Start(ctx context.Context) error {
	if q.opts.Do == nil {
		return errors.New("this queue runs no jobs")
	}
	if q.opts.Alone {
		if err := q.reclaim(ctx); err != nil {
			return fmt.Errorf("rescue the jobs of a process that ended: %v", err)
		}
	}
	ctx, q.cancel = context.WithCancel(context.WithoutCancel(ctx))
	q.pulse()
	go q.beats(ctx)
	return q.store.Start(ctx)
}

// Stop lets the running jobs end for a while, and then cancels them; what did not end is run again
// by the next start.
func (q *Queue) Stop(ctx context.Context) {
	defer q.cancel()
	soft, cancel := context.WithTimeout(ctx, softStop)
	defer cancel()
	if err := q.store.Stop(soft); err != nil {
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), softStop)
		defer cancel()
		_ = q.store.StopAndCancel(hard)
	}
}

// Close closes the database.
func (q *Queue) Close() {
	q.cancel()
	q.store.close()
}

// reclaim makes jobs available that a process was running when it was killed. No other process runs
// jobs, so it is all of them.
func (q *Queue) reclaim(ctx context.Context) error {
	horizon := q.opts.now().Add(time.Minute)
	for {
		stuck, err := q.store.exec.JobGetStuck(ctx, &riverdriver.JobGetStuckParams{Max: 1000, StuckHorizon: horizon})
		if err != nil || len(stuck) == 0 {
			return err
		}
		p := &riverdriver.JobRescueManyParams{StuckHorizon: horizon}
		for _, row := range stuck {
			p.ID = append(p.ID, row.ID)
			p.Error = append(p.Error, attemptError(row, q.opts.now(), "the process that ran the job ended"))
			p.FinalizedAt = append(p.FinalizedAt, nil)
			p.ScheduledAt = append(p.ScheduledAt, q.opts.now())
			p.State = append(p.State, string(rivertype.JobStateAvailable))
		}
		if _, err := q.store.exec.JobRescueMany(ctx, p); err != nil {
			return err
		}
	}
}

// beats moves the heartbeat while the queue answers, whatever the jobs wait for (R62).
func (q *Queue) beats(ctx context.Context) {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := q.counts(ctx); err == nil {
				q.pulse()
			}
		case <-ctx.Done():
			return
		}
	}
}

func (q *Queue) pulse() { q.beat.Store(q.opts.now().UnixNano()) }

func (o QueueOptions) now() time.Time {
	if o.time != nil {
		return o.time.Now()
	}
	return time.Now()
}

// runner hands River's jobs to Do and tells River what was decided.
type runner struct {
	river.WorkerDefaults[sealed]
	queue *Queue
}

// Work implements river.Worker.
func (r *runner) Work(ctx context.Context, job *river.Job[sealed]) error {
	q := r.queue
	q.pulse()
	defer q.pulse()
	o := Outcome{Result: Dropped, Reason: "the stored job is damaged"}
	if job.Args.intact() {
		o = q.opts.Do(ctx, job.Args.Job)
	}
	attrs := []slog.Attr{
		obs.Ecosystem(job.Args.Ecosystem), obs.Package(job.Args.Package), slog.String("version", job.Args.Version),
		slog.String("file", job.Args.File), slog.String("result", string(o.Result)),
	}
	if o.Reason != "" {
		attrs = append(attrs, slog.String("reason", o.Reason))
	}
	log := func(level slog.Level, msg string) {
		q.opts.Logger.LogAttrs(context.WithoutCancel(ctx), level, msg, attrs...)
	}
	switch {
	case o.Result == Snoozed:
		log(slog.LevelDebug, "mirror job snoozed")
		return river.JobSnooze(o.Wait)
	case o.Result == Failed && o.Final:
		log(slog.LevelError, "mirror job is dead")
		return river.JobCancel(errors.New(o.Reason))
	case o.Result == Failed && job.Attempt >= job.MaxAttempts:
		log(slog.LevelError, "mirror job is dead after its last attempt")
		return errors.New(o.Reason)
	case o.Result == Failed:
		log(slog.LevelWarn, "mirror job failed and will be retried")
		return errors.New(o.Reason)
	}
	if o.Result == Dropped {
		if err := river.RecordOutput(ctx, dropped{o.Reason}); err != nil {
			return err
		}
	}
	log(slog.LevelInfo, "mirror job done")
	return nil
}

// retries spreads a job's attempts: each waits twice as long as the one before.
type retries struct {
	first time.Duration
	now   func() time.Time
}

// NextRetry implements river.ClientRetryPolicy.
func (r retries) NextRetry(row *rivertype.JobRow) time.Time {
	wait := min(r.first<<min(max(row.Attempt-1, 0), 20), lastRetry)
	return r.now().Add(wait + time.Duration(rand.Int64N(int64(wait/10)+1)))
}

// quiet keeps River's own lines out of the log, but for trouble that is not a job's, each kind of
// it now and then: the queue logs jobs itself.
type quiet struct {
	slog.Handler
	said *sync.Map // when each message was last said
}

// quietFor is how long a kind of trouble is not said again.
const quietFor = 10 * time.Minute

// Enabled implements slog.Handler.
func (h quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError && h.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h quiet) Handle(ctx context.Context, r slog.Record) error {
	now := time.Now()
	last, told := h.said.Swap(r.Message, now)
	if at, _ := last.(time.Time); told && now.Sub(at) < quietFor {
		h.said.Store(r.Message, at)
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{h.Handler.WithAttrs(a), h.said} }

// WithGroup implements slog.Handler.
func (h quiet) WithGroup(name string) slog.Handler { return quiet{h.Handler.WithGroup(name), h.said} }
