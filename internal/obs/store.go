package obs

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Store reports how one of the stores in the data folder fares: one warning when it begins to fail
// and one line when it works again, however many transfers meet that, and a gauge that says so all
// the time. Stores are a help: whoever reports a failure goes on without. A nil Store reports
// nothing. It is safe for concurrent use.
type Store struct {
	name    string
	logger  *slog.Logger
	metrics *Metrics
	failing prometheus.Gauge
	damaged prometheus.Counter

	mu     sync.Mutex // guards all below
	fails  bool
	told   bool      // of the failure that goes on
	warned time.Time // the last warning
	full   time.Time // the last line about room
}

// quietFor is how long a store that fails and works by turns says no more of it.
const quietFor = 10 * time.Minute

// Store returns the reports of a store: artifacts, documents, advisories, mirror or cooldowns.
func (m *Metrics) Store(name string, l *slog.Logger) *Store {
	return &Store{name: name, logger: l, metrics: m, failing: m.storeFailing.WithLabelValues(name), damaged: m.storeDamaged.WithLabelValues(name)}
}

// Failed reports that something could not be kept or read. For want of a file descriptor, the
// process says so once for all that meet it.
func (s *Store) Failed(err error) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = true
	s.failing.Set(1)
	if s.metrics.Exhausted(s.logger, err) {
		return
	}
	if now := time.Now(); !s.told && now.Sub(s.warned) >= quietFor {
		s.told, s.warned = true, now
		s.logger.Warn("a store on disk fails; serving goes on without it, and it resumes by itself", slog.String("store", s.name), Err(err))
	}
}

// Works reports that something was kept.
func (s *Store) Works() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fails {
		return
	}
	s.fails = false
	s.failing.Set(0)
	if s.told {
		s.told = false
		s.logger.Info("a store on disk works again", slog.String("store", s.name))
	}
}

// Full reports that the disk had no room, and that the least recently used made some.
func (s *Store) Full(err error) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.full) >= quietFor {
		s.full = now
		s.logger.Warn("the disk is full; the least recently used is removed to make room", slog.String("store", s.name), Err(err))
	}
}

// Damaged reports something kept that is not what was written, and was dropped. What names it.
func (s *Store) Damaged(what string, err error) {
	if s == nil {
		return
	}
	s.damaged.Inc()
	s.logger.Warn("discarding damaged data on disk", slog.String("store", s.name), slog.String("name", what), Err(err))
}
