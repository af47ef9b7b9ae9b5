package advisory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/internal/advisory/osv"
)

// tempPrefix begins the names of files that are not yet, or no longer, what they are meant to be.
const tempPrefix = "tmp-"

// staleTemp is the age from which on a file with tempPrefix was left behind by a process that died.
const staleTemp = 24 * time.Hour

// Options make a Store.
type Options struct {
	// Dir is the folder of the compiled databases; it is made when it is not there. Nothing else may live in it.
	Dir string
	// Source is the configured source, see Locate.
	Source string
	// Ecosystems are those to keep data of: "npm", "pypi".
	Ecosystems []string
	// Interval is the time between two looks at the source; at least a minute is kept.
	Interval time.Duration
	// Fetcher is needed for a source behind a URL only.
	Fetcher Fetcher
	// OnSwap is told of each new snapshot, one at a time, but not of what Open finds; it must not call Refresh. It may be nil.
	OnSwap func(*Data)
	// OnRefresh is told how each look at the source ended, nil for well; may be nil.
	OnRefresh func(ecosystem string, err error)
}

// Store keeps the data of each ecosystem: in memory what is asked, on disk what survives a restart. It is safe for concurrent use.
type Store struct {
	opts Options
	data atomic.Pointer[Data]

	swap sync.Mutex // held while data changes, and while OnSwap is told

	mu     sync.Mutex // guards states
	states map[string]*state
}

// state is how things stand with one ecosystem.
type state struct {
	loadErr error // why the database on disk was not taken
	err     error // how the last look ended
	checked time.Time
	next    time.Time
}

// Status is how things stand with the data of one ecosystem.
type Status struct {
	Info
	// Loaded tells whether there is data at all; without, Info is empty but for the ecosystem.
	Loaded bool
	// Checked is when the source last confirmed or renewed the data; zero for not in this process. Next is when it is asked again.
	Checked, Next time.Time
	// Err is what went wrong last, if it did; the data is then the last that was good.
	Err error
}

// Age is how old the news of the data are: the time since the source confirmed them, or since they were compiled.
func (s *Status) Age(now time.Time) time.Duration {
	at := s.Compiled
	if s.Checked.After(at) {
		at = s.Checked
	}
	return now.Sub(at)
}

// Open takes what an earlier run left in the folder, without asking the source. A database that does not verify is passed over for the one
// before it; that is in the Status, and no error.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{opts: o, states: map[string]*state{}}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("advisory data: %v", err)
	}
	s.sweep(time.Now())
	data := &Data{indexes: map[string]*index{}}
	for _, ecosystem := range o.Ecosystems {
		st := &state{}
		s.states[ecosystem] = st
		for _, name := range []string{current(ecosystem), previous(ecosystem)} {
			x, err := load(ctx, s.path(name), ecosystem)
			if err == nil {
				data.indexes[ecosystem] = x
				break
			}
			if _, absent := os.Stat(s.path(name)); absent == nil {
				st.loadErr = errors.Join(st.loadErr, fmt.Errorf("%s: %v", name, err))
			}
		}
		st.err = st.loadErr
	}
	s.data.Store(data)
	return s, ctx.Err()
}

func current(ecosystem string) string  { return ecosystem + ".db" }
func previous(ecosystem string) string { return ecosystem + ".previous.db" }

func (s *Store) path(name string) string { return filepath.Join(s.opts.Dir, name) }

// sweep removes what dead processes left half done.
func (s *Store) sweep(now time.Time) {
	entries, _ := os.ReadDir(s.opts.Dir)
	for _, e := range entries {
		if st, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), tempPrefix) && now.Sub(st.ModTime()) > staleTemp {
			_ = os.Remove(s.path(e.Name()))
		}
	}
}

// Data is the snapshot of now.
func (s *Store) Data() *Data { return s.data.Load() }

// Status lists how things stand, in the order of the ecosystems in the options.
func (s *Store) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := s.data.Load()
	var out []Status
	for _, ecosystem := range s.opts.Ecosystems {
		st := s.states[ecosystem]
		status := Status{Info: Info{Ecosystem: ecosystem}, Checked: st.checked, Next: st.next, Err: st.err}
		if x := data.indexes[ecosystem]; x != nil {
			status.Loaded, status.Info = true, x.info
		}
		out = append(out, status)
	}
	return out
}

// Run looks at the source now and then at each interval, until ctx ends. What it meets is in the Status; the source's pauses are kept.
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
		for _, ecosystem := range s.opts.Ecosystems {
			if at := s.nextOf(ecosystem); at.IsZero() || !time.Now().Before(at) {
				_ = s.Refresh(ctx, ecosystem)
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

// Refresh looks at the source of one ecosystem once: fetch, compile, verify, swap. On any error the data stays what it was.
func (s *Store) Refresh(ctx context.Context, ecosystem string) error {
	err := s.refresh(ctx, ecosystem)
	if errors.Is(err, errUnchanged) {
		err = nil
	}
	now := time.Now()
	s.mu.Lock()
	st := s.states[ecosystem]
	st.err, st.next = err, now.Add(s.pauseAfter(err))
	if err == nil {
		st.checked = now
	}
	s.mu.Unlock()
	if s.opts.OnRefresh != nil && ctx.Err() == nil {
		s.opts.OnRefresh(ecosystem, err)
	}
	return err
}

// Times between two looks at the source, beside the configured interval.
const (
	minInterval = time.Minute
	afterError  = 5 * time.Minute
)

// pauseAfter is how long the source is left alone after a look that ended like this.
func (s *Store) pauseAfter(err error) time.Duration {
	interval := max(s.opts.Interval, minInterval)
	var t *Throttled
	switch {
	case errors.As(err, &t) && t.Wait > 0:
		return max(t.Wait, time.Second)
	case err == nil || t != nil:
		return interval
	}
	return min(interval, afterError)
}

func (s *Store) refresh(ctx context.Context, ecosystem string) error {
	old := s.data.Load().indexes[ecosystem]
	location, known := Locate(s.opts.Source, ecosystem), ""
	if old != nil && old.info.Source == location {
		known = old.info.Validator
	}
	export, validator, release, err := s.obtain(ctx, location, known)
	if err != nil {
		return err
	}
	defer release()
	info := Info{Ecosystem: ecosystem, Source: location, Validator: validator, Compiled: time.Now()}
	x, err := s.compile(ctx, info, export, old)
	if err != nil {
		return err
	}
	s.swap.Lock()
	defer s.swap.Unlock()
	indexes := maps.Clone(s.data.Load().indexes)
	indexes[ecosystem] = x
	data := &Data{indexes: indexes}
	s.data.Store(data)
	if s.opts.OnSwap != nil {
		s.opts.OnSwap(data)
	}
	return nil
}

// compile makes a new database beside the current one, verifies it by reading it back, and puts it in its place: the current one becomes the
// previous one. Both steps are renames, so that whatever dies leaves one whole database that is found.
func (s *Store) compile(ctx context.Context, info Info, export string, old *index) (*index, error) {
	f, err := os.CreateTemp(s.opts.Dir, tempPrefix+"*.db")
	if err != nil {
		return nil, err
	}
	temp := f.Name()
	defer func() { _ = os.Remove(temp) }()
	if err := f.Close(); err != nil {
		return nil, err
	}
	if err := compileInto(ctx, temp, &info, osv.Export(export)); err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	x, err := load(ctx, temp, info.Ecosystem)
	if err != nil {
		return nil, fmt.Errorf("verify: %v", err)
	}
	if err := plausible(x.info, old); err != nil {
		return nil, err
	}
	if err := syncFile(temp); err != nil {
		return nil, err
	}
	name := s.path(current(info.Ecosystem))
	if err := os.Rename(name, s.path(previous(info.Ecosystem))); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.Rename(temp, name); err != nil {
		return nil, err
	}
	return x, syncFolder(s.opts.Dir)
}

// plausible compares with the last good data: exports grow, and one that lost half of its records has lost more than it should.
func plausible(info Info, old *index) error {
	if old != nil && 2*info.Records < old.info.Records {
		return fmt.Errorf("the export has %d records where the last good one had %d; to take it all the same, remove the databases and start again",
			info.Records, old.info.Records)
	}
	return nil
}
