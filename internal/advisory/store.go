package advisory

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/durable/spool"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/sqlfault"
)

// Options make a Store.
type Options struct {
	// Dir is the folder of the compiled databases; it is made when it is not there. Nothing else
	// may live in it.
	Dir string
	// Source is the configured source, see Locate.
	Source string
	// Ecosystems are those to keep data of.
	Ecosystems registry.Ecosystems
	// Interval is the time between two looks at the source; at least a minute is kept.
	Interval time.Duration
	// Fetcher is needed for a source behind a URL only.
	Fetcher Fetcher
	// OnSwap is called for each new snapshot, one at a time, but not of what Open finds; it must
	// not call Refresh. It may be nil.
	OnSwap func(*Data)
	// Report hears how the disk fares; may be nil.
	Report *obs.Store
	// Around is for tests of failing disks.
	Around durable.Around
	// OnRefresh is called after each refresh, with nil on success; may be nil.
	OnRefresh func(ecosystem string, err error)
}

// Store keeps the data of each ecosystem: in memory what is asked, on disk what survives a restart.
// It is safe for concurrent use.
//
// Of several processes that share a folder, the first one looks at the source; the others take over
// what it compiles, and its work when it ends.
type Store struct {
	opts Options
	data atomic.Pointer[Data]
	swap sync.Mutex // held while data changes, and while OnSwap runs

	mu     sync.Mutex // guards all below
	folder *spool.Folder
	states map[string]*state
}

// state is how things stand with one ecosystem.
type state struct {
	err     error // how the last look ended
	checked time.Time
	next    time.Time
}

// Status is how things stand with the data of one ecosystem.
type Status struct {
	Info
	// Loaded reports whether there is data at all; without, Info is empty but for the ecosystem.
	Loaded bool
	// Checked is when the source last confirmed or renewed the data, in this process or before it.
	// Next is when it is asked again.
	Checked, Next time.Time
	// Err is what went wrong last, if it did; the data is then the last that was good.
	Err error
}

// Open takes what an earlier run left in the folder, without asking the source. A database that
// does not verify is passed over for the one before it; that is in the Status, and no error, nor is
// a folder that fails: it is tried again with each look at the source. Close ends the use of the
// folder.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{opts: o, states: map[string]*state{}}
	if _, err := s.own(); err != nil && !errors.Is(err, durable.ErrBusy) {
		o.Report.Failed(err)
	}
	data := &Data{indexes: map[string]*index{}}
	for _, ecosystem := range o.Ecosystems {
		x, err := loadNewest(ctx, o.Dir, ecosystem)
		s.states[ecosystem.Name] = &state{err: err}
		if err != nil && x != nil {
			o.Report.Damaged(ecosystem.Name, err)
		}
		if x != nil {
			data.indexes[ecosystem.Name] = x
			s.states[ecosystem.Name].checked = x.confirmed
		}
	}
	s.data.Store(data)
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// own takes the folder for this process, and makes it again when it has gone. While another one has
// it, the error wraps durable.ErrBusy.
func (s *Store) own() (*spool.Folder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.folder == nil {
		s.folder = spool.New(s.opts.Dir, durable.Options{Around: s.opts.Around})
	}
	_, _, err := s.folder.Renew()
	return s.folder, err
}

// Close gives the folder to other processes, once Run has returned. The data goes on to be there.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.folder == nil {
		return nil
	}
	folder := s.folder
	s.folder = nil
	return folder.Close()
}

// Data is the current snapshot.
func (s *Store) Data() *Data { return s.data.Load() }

// Status lists how things stand, in the order of the ecosystems in the options.
func (s *Store) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := s.data.Load()
	var out []Status
	for _, ecosystem := range s.opts.Ecosystems.Names() {
		st := s.states[ecosystem]
		status := Status{Info: Info{Ecosystem: ecosystem}, Checked: st.checked, Next: st.next, Err: st.err}
		if x := data.indexes[ecosystem]; x != nil {
			status.Loaded, status.Info = true, x.info
		}
		out = append(out, status)
	}
	return out
}

// Run looks at the source now and then at each interval, until ctx ends. What it meets is in the
// Status; the source's pauses are kept.
func (s *Store) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		var soonest time.Time
		for _, ecosystem := range s.opts.Ecosystems.Names() {
			if at := s.nextOf(ecosystem); at.IsZero() || !time.Now().Before(at) {
				_ = s.Refresh(ctx, ecosystem) // OnRefresh and Status tell
			}
			if at := s.nextOf(ecosystem); soonest.IsZero() || at.Before(soonest) {
				soonest = at
			}
		}
		timer.Reset(max(time.Until(soonest), time.Second))
	}
}

func (s *Store) nextOf(ecosystem string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[ecosystem].next
}

// Refresh looks at the source of one ecosystem once: fetch, compile, verify, swap. On any error the
// data stays what it was.
func (s *Store) Refresh(ctx context.Context, name string) error {
	ecosystem, ok := s.opts.Ecosystems.Named(name)
	if !ok {
		return s.opts.Ecosystems.Check(name)
	}
	var checked time.Time
	folder, err := s.own()
	switch {
	case err == nil:
		checked, err = s.renew(ctx, place{folder, s.opts.Dir}, ecosystem)
	case errors.Is(err, durable.ErrBusy):
		checked, err = s.adopt(ctx, ecosystem)
	default:
		err = durable.OfDisk(err)
	}
	if (durable.IsDisk(err) || sqlfault.IsDisk(err)) && ctx.Err() == nil {
		s.opts.Report.Failed(err)
		checked, err = s.renewAside(ctx, ecosystem)
	} else if err == nil {
		s.opts.Report.Works()
	}
	pause := s.pauseAfter(err)
	if errors.Is(err, errAdopted) {
		err = nil
	}
	s.mu.Lock()
	st := s.states[name]
	st.err, st.next = err, time.Now().Add(pause)
	if checked.After(st.checked) {
		st.checked = checked
	}
	s.mu.Unlock()
	if s.opts.OnRefresh != nil && ctx.Err() == nil {
		s.opts.OnRefresh(name, err)
	}
	return err
}

// Times between two looks at the source, beside the configured interval.
const (
	minInterval = time.Minute // also between two looks at what another process has compiled
	afterError  = 5 * time.Minute
)

// pauseAfter is how long the source is left alone after a look that ended like this.
func (s *Store) pauseAfter(err error) time.Duration {
	interval := max(s.opts.Interval, minInterval)
	var t *Throttled
	switch {
	case errors.As(err, &t) && t.Wait > 0:
		return max(t.Wait, time.Second)
	case errors.Is(err, errAdopted):
		return minInterval
	case err == nil || t != nil:
		return interval
	}
	return min(interval, afterError)
}

// renew asks the source, and returns when it confirmed or renewed the data.
func (s *Store) renew(ctx context.Context, at place, ecosystem registry.Ecosystem) (time.Time, error) {
	old := s.data.Load().indexes[ecosystem.Name]
	location, known := Locate(s.opts.Source, ecosystem), ""
	if old != nil && old.info.Source == location && (at.dir != s.opts.Dir || at.has(ecosystem.Name, old.number)) {
		known = old.info.Validator
	}
	from, err := s.obtain(ctx, at.folder, location, known)
	if errors.Is(err, errUnchanged) {
		now := time.Now()
		// for the next reader of the folder, which asks the source once more if this fails
		if err := at.folder.Touch(databaseName(ecosystem.Name, old.number), now); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.opts.Report.Failed(err)
		}
		return now, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	defer from.release()
	info := Info{Ecosystem: ecosystem.Name, Source: location, Validator: from.validator, Compiled: time.Now()}
	x, err := compile(ctx, at, ecosystem, info, from, old)
	if x == nil {
		return time.Time{}, err
	}
	s.put(ecosystem.Name, x)
	return info.Compiled, err
}

// errAdopted says that another process is refreshing the advisories, and that its data is ours as
// well.
var errAdopted = errors.New("another process is refreshing the advisories")

// adopt takes over what another process has compiled, and returns when the source confirmed it.
func (s *Store) adopt(ctx context.Context, ecosystem registry.Ecosystem) (time.Time, error) {
	old := s.data.Load().indexes[ecosystem.Name]
	numbers, err := databases(s.opts.Dir, ecosystem.Name)
	if err == nil && old != nil && len(numbers) > 0 && numbers[0] == old.number {
		return confirmed(s.opts.Dir, ecosystem.Name, old.number), errAdopted
	}
	x, err := loadNewest(ctx, s.opts.Dir, ecosystem)
	switch {
	case x == nil:
		return time.Time{}, errors.Join(errors.New("another process holds the advisory folder and has loaded no data yet"), err)
	case old == nil || old.number != x.number:
		s.put(ecosystem.Name, x)
	}
	return x.confirmed, errors.Join(errAdopted, err)
}

// put makes an index the current one, and reports it.
func (s *Store) put(ecosystem string, x *index) {
	s.swap.Lock()
	defer s.swap.Unlock()
	indexes := maps.Clone(s.data.Load().indexes)
	indexes[ecosystem] = x
	data := &Data{indexes: indexes}
	s.data.Store(data)
	if s.opts.OnSwap != nil {
		s.opts.OnSwap(data)
	}
}
