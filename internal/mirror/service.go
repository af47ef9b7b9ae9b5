package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/sqlfault"
)

// Numbers of the mirror that have no configuration key.
const (
	// workers is how many jobs run at once: few, since clients come first.
	workers = 4
	// maxFile bounds a mirrored file.
	maxFile = 4 << 30
)

// ServiceOptions begin a Service.
type ServiceOptions struct {
	Lanes map[string]Lane
	// DataDir holds the SQLite file, unless QueueURL names a PostgreSQL database, and files on
	// their way.
	DataDir  string
	QueueURL string
	// Work runs jobs in this process; without it they are only taken.
	Work bool
	// Patient begins without the queue when it cannot be opened now; see Begin.
	Patient bool
	Metrics *obs.Metrics
	Logger  *slog.Logger
	// At is for tests, see WorkerOptions.
	At func(mark string)
	// VirtualTime takes all times from Go's clock and none from the database's, for tests in
	// virtual time.
	VirtualTime bool
}

// Service is the mirror in one process: offers, queue and worker. It is safe for concurrent use.
type Service struct {
	opts   ServiceOptions
	report *obs.Store
	offers *Offers
	cancel context.CancelFunc

	mu       sync.Mutex // guards all below
	queue    *Queue     // nil while it cannot be opened
	unlock   func()
	trouble  error // why the queue is not open
	stopped  bool
	reopened chan struct{} // closed when nobody tries to open the queue any more
}

// Open opens the queue alone, to look at it and to put jobs in.
func Open(ctx context.Context, dataDir, queueURL string, logger *slog.Logger) (*Queue, error) {
	dir, err := folder(dataDir)
	if err != nil {
		return nil, err
	}
	return OpenQueue(ctx, QueueOptions{URL: queueURL, Path: filepath.Join(dir, "queue.db"), Logger: logger})
}

// folder makes the mirror's folder.
func folder(dataDir string) (string, error) {
	dir := filepath.Join(dataDir, "mirror")
	if err := durable.MakeAll(dir); err != nil {
		return "", fmt.Errorf("create the mirror's folder: %v; choose another with --data", err)
	}
	return dir, nil
}

// Begin opens the queue and, if wanted, begins to work. Stop it. A folder's jobs are run by one
// process at a time; PostgreSQL lets many work together.
//
// A Patient service begins also when the queue cannot be opened: it is tried again until it can,
// and what is offered meanwhile waits in memory.
func Begin(ctx context.Context, o ServiceOptions) (*Service, error) {
	s := &Service{opts: o, report: o.Metrics.Store("mirror", o.Logger), unlock: func() {}, reopened: make(chan struct{})}
	ends, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	err := s.open(ctx)
	if err != nil && (!o.Patient || is[*configured](err) || ctx.Err() != nil) {
		cancel()
		return nil, err
	}
	s.offers = NewOffers(s, o.Metrics, o.Logger)
	go s.offers.Run(ends)
	if err == nil {
		close(s.reopened)
	} else {
		s.report.Failed(err)
		go s.keepOpening(ends)
	}
	return s, nil
}

// open opens the queue and begins to work.
func (s *Service) open(ctx context.Context) error {
	q, unlock, err := s.openQueue(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = err
	if err != nil {
		return err
	}
	if s.stopped {
		closeQueue(ctx, q, s.opts.Work)
		unlock()
		return context.Canceled
	}
	s.queue, s.unlock = q, unlock
	return nil
}

func (s *Service) openQueue(ctx context.Context) (q *Queue, unlock func(), err error) {
	dir, err := folder(s.opts.DataDir)
	if err != nil {
		return nil, nil, err
	}
	o := QueueOptions{URL: s.opts.QueueURL, Path: filepath.Join(dir, "queue.db"), Workers: workers, Logger: s.opts.Logger}
	if s.opts.VirtualTime {
		o.time, o.pollInterval = goClock{}, 2*time.Second
	}
	unlock = func() {}
	if s.opts.Work {
		if o.URL == "" {
			if unlock, err = lock(filepath.Join(dir, "worker.lock")); err != nil {
				return nil, nil, err
			}
			o.Alone = true
		}
		o.Do = NewWorker(WorkerOptions{
			Lanes: s.opts.Lanes, SpoolDir: dir, MaxBytes: maxFile, Metrics: s.opts.Metrics, Logger: s.opts.Logger, At: s.opts.At,
		}).Do
	}
	q, err = OpenQueue(ctx, o)
	if sqlfault.IsDamaged(err) && o.URL == "" {
		s.report.Damaged(filepath.Base(o.Path), err)
		if err = sqlfault.SetAside(o.Path); err == nil {
			q, err = OpenQueue(ctx, o)
		}
	}
	if err == nil && s.opts.Work {
		if err = q.Start(ctx); err != nil {
			q.Close()
		}
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return q, unlock, nil
}

// reopenEvery is the time between two tries to open a queue.
const reopenEvery = 10 * time.Second

// keepOpening tries to open the queue until it can, or the service ends.
func (s *Service) keepOpening(ctx context.Context) {
	defer close(s.reopened)
	for {
		select {
		case <-time.After(reopenEvery):
		case <-ctx.Done():
			return
		}
		err := s.open(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		s.report.Failed(err)
	}
}

// Insert implements Saver.
func (s *Service) Insert(ctx context.Context, jobs []Job) (fresh int, err error) {
	q, err := s.current()
	if err == nil {
		fresh, err = q.Insert(ctx, jobs)
	}
	switch {
	case err == nil:
		s.report.Works()
	case ctx.Err() == nil:
		s.report.Failed(err)
	}
	return fresh, err
}

// current is the queue, or why there is none.
func (s *Service) current() (*Queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue == nil {
		return nil, fmt.Errorf("the queue is not open: %w", s.trouble)
	}
	return s.queue, nil
}

// configured is an error that waiting does not help, since it is what was configured.
type configured struct{ text string }

// Error implements error.
func (e *configured) Error() string { return e.text }

// lock takes the right to run the jobs of a folder, which ends with the process.
func lock(path string) (unlock func(), err error) {
	f, err := durable.LockFile(path)
	switch {
	case errors.Is(err, durable.ErrBusy):
		return nil, &configured{"another process is running the mirror jobs of " + path + "; start this one with --no-worker, or choose another folder with --data"}
	case err != nil:
		return nil, fmt.Errorf("lock the mirror's folder: %w", err)
	}
	return func() { _ = durable.Unlock(f) }, nil
}

// goClock makes the database use Go's clock.
type goClock struct{}

func (goClock) Now() time.Time { return time.Now() }

func (goClock) NowOrNil() *time.Time {
	now := time.Now()
	return &now
}

// Offer takes a file that a client got, without waiting.
func (s *Service) Offer(j Job) { s.offers.Offer(j) }

// Status is the queue's, with what this process holds in memory.
func (s *Service) Status(ctx context.Context) (Status, error) {
	q, err := s.current()
	st := Status{HeartbeatAge: -1}
	if err == nil {
		st, err = q.Status(ctx)
	}
	st.Unsaved, st.Lost = s.offers.Unsaved()
	return st, err
}

// Stop saves the last offers, lets the running jobs end for a moment, and closes the queue.
func (s *Service) Stop(ctx context.Context) {
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), softStop)
	defer cancel()
	s.mu.Lock()
	open := s.queue != nil
	s.mu.Unlock()
	if !open {
		cancel() // there is nowhere to save them
	}
	s.offers.Close(flush)
	s.cancel()
	<-s.reopened
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.queue != nil {
		closeQueue(ctx, s.queue, s.opts.Work)
		s.unlock()
	}
}

// closeQueue ends the work on a queue and closes it.
func closeQueue(ctx context.Context, q *Queue, work bool) {
	if work {
		q.Stop(context.WithoutCancel(ctx))
	}
	q.Close()
}
