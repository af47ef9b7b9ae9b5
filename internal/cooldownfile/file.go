// Package cooldownfile is a cooldown.Memory in a file of the data folder: deadlines and ceilings
// outlive the process that met them, and processes that share the folder learn of each other's
// before they send (R100). Only what the table says is kept; the table stays the one that decides.
//
// The file is looked at, which is one system call, whenever a request is about to be written, and
// now and then when one is asked for. It is written, durably and under the folder's lock, when a
// cooldown begins, is extended or ends, before the answer is handed on. Changes that come together
// are written together.
package cooldownfile

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// Name is the file's name in the data folder.
const Name = "cooldowns.json"

const (
	// interval is how old a look at the file may be for a request that is only being asked for.
	interval = 50 * time.Millisecond
	// again is how long after a failed write the next one is tried, when a request asks.
	again = 3 * time.Second
	// maxKnown bounds what is remembered of cooldowns that are no longer in the file.
	maxKnown = 4 * maxRecords
)

// File implements cooldown.Memory. A folder that does not exist keeps nothing, and is not made.
type File struct {
	shared *durable.Shared
	logger *slog.Logger
	looked atomic.Int64 // when the file was last looked at, in nanoseconds of the wall clock
	failed atomic.Int64 // when a write failed that was not made up for, in the same; 0 for none
	ailing atomic.Bool  // the last write failed

	// guards edition and known; held while the file is read, since requests have to wait for that
	news    sync.RWMutex
	edition *durable.Edition
	known   map[cooldown.Authority]known

	writing sync.Mutex // held by the one commit that is at work, on purpose across its I/O
	joining sync.Mutex // guards next and what is in it
	next    *commit
}

// known is a record that the table was told of, or that comes from it.
type known struct {
	record record
	// its deadline by the clock of this process, which no step of the wall clock moves
	until time.Time
	own   bool // it was written by this process
}

// commit is a write that several changes share: whoever is first does it, and all others wait for
// it.
type commit struct {
	once  sync.Once
	dirty map[cooldown.Authority]struct{}
	now   time.Time // of the latest change
}

// New returns the memory in a data folder. Problems are told to the logger; none of them stops a
// request.
func New(dataDir string, logger *slog.Logger) *File { return open(dataDir, logger, durable.Options{}) }

func open(dataDir string, logger *slog.Logger, o durable.Options) *File {
	f := &File{
		shared: durable.NewShared(filepath.Join(dataDir, Name), maxBytes, o), logger: logger, known: map[cooldown.Authority]known{},
		next: &commit{dirty: map[cooldown.Authority]struct{}{}},
	}
	f.looked.Store(math.MinInt64 / 2) // never
	return f
}

// Close lets go of the file. No request may be at work.
func (f *File) Close() { f.edition.Close() }

// Recall implements cooldown.Memory.
func (f *File) Recall(now time.Time, t *cooldown.Table, written bool) {
	at := now.UnixNano()
	if failed := f.failed.Load(); failed != 0 && at >= failed+int64(again) && f.failed.CompareAndSwap(failed, 0) {
		go f.retry(now, t) // it may take as long as another process holds the lock
	}
	if last := f.looked.Load(); !written && last <= at && at < last+int64(interval) {
		return
	}
	f.news.RLock()
	current := f.edition.Current()
	f.news.RUnlock()
	if !current {
		f.read(now, t)
	}
	f.looked.Store(at)
}

// read hands to the table what has changed in the file.
func (f *File) read(now time.Time, t *cooldown.Table) {
	if old := f.takeIn(now, t); len(old) > 0 {
		f.write(now, t, old)
	}
}

// takeIn returns the authorities whose cooldowns were met in the future. The wall clock was set
// back then, and their delays count from now: the file has to say so, or they would begin anew with
// each start.
func (f *File) takeIn(now time.Time, t *cooldown.Table) map[cooldown.Authority]struct{} {
	f.news.Lock()
	defer f.news.Unlock()
	if f.edition.Current() { // another request was quicker
		return nil
	}
	f.edition.Close()
	f.edition = f.shared.Read()
	records, problems := understand(f.edition)
	for _, problem := range problems {
		f.logger.Warn("kept cooldowns were ignored", slog.String("file", f.shared.Path()), slog.String("problem", problem.what),
			slog.String("remedy", problem.remedy))
	}
	ahead := map[cooldown.Authority]struct{}{}
	for a, r := range records {
		if f.known[a].record == r {
			continue
		}
		left := r.remaining(now)
		f.tell(t.Restore(now, a, left, r.ceiling))
		f.known[a] = known{record: r, until: now.Add(left)}
		if r.ahead(now) {
			ahead[a] = struct{}{}
		}
	}
	if len(f.known) > maxKnown {
		maps.DeleteFunc(f.known, func(a cooldown.Authority, _ known) bool { _, in := records[a]; return !in })
	}
	return ahead
}

func (f *File) tell(t cooldown.Transition) {
	if t.Kind == cooldown.TransitionNone {
		return
	}
	f.logger.Warn("cooldown taken over from the data folder",
		slog.String("upstream_host", t.Authority.Host), slog.Int("upstream_port", int(t.Authority.Port)),
		slog.Float64("delay_seconds", t.Delay.Seconds()), slog.Float64("ceiling_seconds", t.Ceiling.Seconds()))
}

// Remember implements cooldown.Memory.
func (f *File) Remember(now time.Time, t *cooldown.Table, a cooldown.Authority) {
	f.joining.Lock()
	c := f.next
	c.dirty[a] = struct{}{}
	if now.After(c.now) {
		c.now = now
	}
	f.joining.Unlock()
	f.do(c, t)
}

// do writes a commit, or waits for whoever does.
func (f *File) do(c *commit, t *cooldown.Table) {
	c.once.Do(func() {
		f.writing.Lock()
		defer f.writing.Unlock()
		f.joining.Lock()
		f.next = &commit{dirty: map[cooldown.Authority]struct{}{}} // nobody joins c any more
		f.joining.Unlock()
		f.write(c.now, t, c.dirty)
	})
}

// retry writes what a failed write has left for the next one.
func (f *File) retry(now time.Time, t *cooldown.Table) {
	f.joining.Lock()
	c := f.next
	if now.After(c.now) {
		c.now = now
	}
	f.joining.Unlock()
	f.do(c, t)
}

// write makes the file say what the table says of some authorities. What could not be written is
// tried again with the next change, or soon when a request asks.
func (f *File) write(now time.Time, t *cooldown.Table, dirty map[cooldown.Authority]struct{}) {
	before := map[cooldown.Authority]known{}
	err := f.shared.Update(func(old *durable.Edition) ([]byte, error) {
		records, problems := understand(old)
		for _, problem := range problems {
			if problem.keep {
				return nil, errors.New(problem.what + "; " + problem.remedy)
			}
		}
		f.news.Lock()
		defer f.news.Unlock()
		for a := range dirty {
			before[a] = f.known[a]
			f.renew(now, t.Look(now, a), records)
		}
		return render(now, records)
	})
	if err == nil && f.ailing.Swap(false) {
		f.logger.Info("cooldowns are kept again", slog.String("file", f.shared.Path()))
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) { // without a data folder nothing is kept (R32)
		return
	}
	f.failed.Store(now.UnixNano())
	say := f.logger.Debug // what fails again and again is said once
	if !f.ailing.Swap(true) {
		say = f.logger.Warn
	}
	say("a cooldown was not kept; other processes do not know of it, and a restart forgets it; "+
		"check that the data folder is writable and not full", slog.String("file", f.shared.Path()), obs.Err(err))
	f.joining.Lock()
	maps.Copy(f.next.dirty, dirty)
	f.joining.Unlock()
	f.news.Lock()
	maps.Copy(f.known, before) // what the file says is still what it said
	f.news.Unlock()
}

// renew brings one authority's record up to date. A later deadline and a higher ceiling of another
// process stay.
func (f *File) renew(now time.Time, s cooldown.State, records map[cooldown.Authority]record) {
	r, kept := records[s.Authority]
	k := f.known[s.Authority]
	own := kept && k.own && k.record == r
	left := r.remaining(now)
	if kept && k.record == r {
		left = max(0, k.until.Sub(now))
	}
	if s.Phase == cooldown.PhaseOpen {
		if own || left == 0 {
			delete(records, s.Authority)
		}
		return
	}
	next := record{met: now.UnixNano(), delay: s.Remaining, ceiling: s.Ceiling}
	if kept && !own {
		next.ceiling = max(next.ceiling, r.ceiling)
		if left > next.delay {
			r.ceiling = next.ceiling
			records[s.Authority] = r
			return
		}
	}
	records[s.Authority] = next
	f.known[s.Authority] = known{record: next, until: now.Add(next.delay), own: true}
}
