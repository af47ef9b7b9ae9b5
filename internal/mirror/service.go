package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
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

	watched chan struct{} // closed when nobody looks after the queue any more

	mu      sync.Mutex // guards all below
	queue   *Queue     // nil while it cannot be opened
	file    os.FileInfo
	unlock  func()
	trouble error // why the queue is not open
	stopped bool
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
// and what is offered meanwhile waits in memory. Any service makes a new SQLite file in the place
// of one that was damaged or has gone while it was in use.
func Begin(ctx context.Context, o ServiceOptions) (*Service, error) {
	s := &Service{opts: o, report: o.Metrics.Store("mirror", o.Logger), unlock: func() {}, watched: make(chan struct{})}
	ends, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	err := s.open(ctx)
	if err != nil && (!o.Patient || is[*configured](err) || ctx.Err() != nil) {
		cancel()
		return nil, err
	}
	s.offers = NewOffers(s, o.Metrics, o.Logger)
	go s.offers.Run(ends)
	if err != nil {
		s.report.Failed(err)
	}
	go s.watch(ends)
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
	s.file, _ = os.Stat(s.path()) // nil, for PostgreSQL as well, is never another file
	return nil
}

// path is where the SQLite file lies.
func (s *Service) path() string { return filepath.Join(s.opts.DataDir, "mirror", "queue.db") }

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

// watchEvery is the time between two looks after the queue.
const watchEvery = 10 * time.Second

// watch opens a queue that could not be opened, and opens one anew that is damaged or has gone,
// until the service ends.
func (s *Service) watch(ctx context.Context) {
	defer close(s.watched)
	for {
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
			return
		}
		q, err := s.current()
		if err == nil {
			if err = s.lost(ctx, q); err == nil {
				continue
			}
			s.giveUp(ctx, q, err)
		}
		if err = s.open(ctx); err != nil && ctx.Err() == nil {
			s.report.Failed(err)
		}
	}
}

// lost says why an SQLite queue that is open is none any more; nil while it is one, and while it
// only cannot be read.
func (s *Service) lost(ctx context.Context, q *Queue) error {
	s.mu.Lock()
	file := s.file
	s.mu.Unlock()
	if file == nil {
		return nil
	}
	now, err := os.Stat(s.path())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(file, now) {
		return errors.New("the file of the queue was removed or replaced")
	}
	if _, err := q.counts(ctx); sqlfault.IsDamaged(err) {
		return err
	}
	return nil
}

// giveUp closes a queue that is none any more. A damaged one is set aside. The jobs that can still
// be read go into the next one; the others are offered again when clients ask for their files.
func (s *Service) giveUp(ctx context.Context, q *Queue, why error) {
	s.mu.Lock()
	unlock := s.unlock
	s.queue, s.unlock, s.trouble = nil, func() {}, why
	s.mu.Unlock()
	s.report.Damaged(filepath.Base(s.path()), why)
	if s.opts.Work {
		q.Stop(context.WithoutCancel(ctx))
	}
	left := q.unfinished(ctx)
	q.Close()
	unlock()
	if sqlfault.IsDamaged(why) {
		if err := sqlfault.SetAside(s.path()); err != nil {
			s.report.Failed(err)
		}
	}
	s.offers.Forget()
	for _, j := range left {
		s.offers.Offer(j)
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
	<-s.watched
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
