package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/obs"
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
	Work    bool
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
	queue  *Queue
	offers *Offers
	work   bool
	unlock func()
	cancel context.CancelFunc
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
func Begin(ctx context.Context, o ServiceOptions) (*Service, error) {
	dir, err := folder(o.DataDir)
	if err != nil {
		return nil, err
	}
	s := &Service{work: o.Work, unlock: func() {}}
	q := QueueOptions{URL: o.QueueURL, Path: filepath.Join(dir, "queue.db"), Workers: workers, Logger: o.Logger}
	if o.VirtualTime {
		q.time, q.pollInterval = goClock{}, 2*time.Second
	}
	if o.Work {
		if q.URL == "" {
			if s.unlock, err = lock(filepath.Join(dir, "worker.lock")); err != nil {
				return nil, err
			}
			q.Alone = true
		}
		q.Do = NewWorker(WorkerOptions{
			Lanes: o.Lanes, SpoolDir: dir, MaxBytes: maxFile, Metrics: o.Metrics, Logger: o.Logger, At: o.At,
		}).Do
	}
	if s.queue, err = OpenQueue(ctx, q); err != nil {
		s.unlock()
		return nil, err
	}
	if o.Work {
		if err := s.queue.Start(ctx); err != nil {
			s.queue.Close()
			s.unlock()
			return nil, err
		}
	}
	s.offers = NewOffers(s.queue, o.Metrics, o.Logger)
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go s.offers.Run(ctx)
	return s, nil
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
	st, err := s.queue.Status(ctx)
	st.Unsaved, st.Lost = s.offers.Unsaved()
	return st, err
}

// Stop saves the last offers, lets the running jobs end for a moment, and closes the queue.
func (s *Service) Stop(ctx context.Context) {
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), softStop)
	defer cancel()
	s.offers.Close(flush)
	s.cancel()
	if s.work {
		s.queue.Stop(context.WithoutCancel(ctx))
	}
	s.queue.Close()
	s.unlock()
}
