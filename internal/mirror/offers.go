package mirror

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/internal/obs"
)

const (
	maxUnsaved  = 8192 // offers in memory
	maxBatch    = 200  // offers in one write
	maxRecent   = 16384
	recentFor   = 10 * time.Minute
	saveTimeout = 30 * time.Second
	saveRetry   = time.Second
)

// Saver stores jobs; a *Queue is one.
type Saver interface {
	Insert(ctx context.Context, jobs []Job) (fresh int, err error)
}

// Offers stand between a client and the queue, so that no client waits for a disk. An offer is
// taken in memory and saved moments later; a process that is killed in between loses it, and
// nothing else: no client was promised anything, and the next one that asks for the file offers it
// again. What is saved is never lost. It is safe for concurrent use.
type Offers struct {
	saver   Saver
	metrics *obs.Metrics
	logger  *slog.Logger
	jobs    chan Job
	done    chan struct{}
	lost    atomic.Int64

	mu          sync.Mutex
	closed      bool             // guarded by mu
	recent, old map[Job]struct{} // what was offered lately, in two generations; guarded by mu
	turned      time.Time        // when the generations changed; guarded by mu
}

// NewOffers returns an empty buffer; Run saves what is offered.
func NewOffers(s Saver, m *obs.Metrics, l *slog.Logger) *Offers {
	o := &Offers{
		saver: s, metrics: m, logger: l, jobs: make(chan Job, maxUnsaved), done: make(chan struct{}),
		recent: map[Job]struct{}{}, turned: time.Now(),
	}
	return o
}

// Run saves what is offered until Close, and then what is left, until ctx ends.
func (o *Offers) Run(ctx context.Context) {
	defer close(o.done)
	for j := range o.jobs {
		batch := []Job{j}
	fill:
		for len(batch) < maxBatch {
			select {
			case j, ok := <-o.jobs:
				if !ok {
					break fill
				}
				batch = append(batch, j)
			default:
				break fill
			}
		}
		o.save(ctx, batch)
	}
}

// save stores a batch, as often as it takes: while the store is gone, offers pile up in memory up
// to their bound.
func (o *Offers) save(ctx context.Context, batch []Job) {
	for told := false; ; {
		err := o.insert(ctx, batch)
		if err == nil {
			return
		}
		if !told {
			told = true
			o.logger.Error("mirror jobs cannot be saved; retrying", slog.Int("jobs", len(batch)), obs.Err(err))
		}
		select {
		case <-time.After(saveRetry):
		case <-ctx.Done():
			for range batch {
				o.lose()
			}
			return
		}
	}
}

func (o *Offers) insert(ctx context.Context, batch []Job) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	_, err := o.saver.Insert(ctx, batch)
	return err
}

// Offer takes a job without waiting. One that was offered lately is not taken again, and none is
// when the memory for offers is full.
func (o *Offers) Offer(j Job) {
	if j.check() != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.knownLocked(j) {
		return
	}
	j = j.own()
	select {
	case o.jobs <- j:
		o.recent[j] = struct{}{}
	default:
		o.lose()
	}
}

func (o *Offers) knownLocked(j Job) bool {
	if now := time.Now(); len(o.recent) >= maxRecent/2 || now.Sub(o.turned) > recentFor {
		o.recent, o.old, o.turned = map[Job]struct{}{}, o.recent, now
	}
	if _, ok := o.recent[j]; ok {
		return true
	}
	if _, ok := o.old[j]; ok {
		return true
	}
	return false
}

// Forget lets every job be offered again, as after the loss of those that were saved.
func (o *Offers) Forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.recent)
	clear(o.old)
}

func (o *Offers) lose() {
	o.metrics.MirrorLost()
	if o.lost.Add(1) == 1 {
		o.logger.Warn("too many unsaved mirror jobs; some files will be mirrored when requested again")
	}
}

// Unsaved is how many offers are not saved yet, and Lost how many never were.
func (o *Offers) Unsaved() (waiting int, lost int64) { return len(o.jobs), o.lost.Load() }

// Close takes no more offers and waits until the last are saved, or ctx ends.
func (o *Offers) Close(ctx context.Context) {
	o.mu.Lock()
	if !o.closed {
		o.closed = true
		close(o.jobs)
	}
	o.mu.Unlock()
	select {
	case <-o.done:
	case <-ctx.Done():
	}
}
