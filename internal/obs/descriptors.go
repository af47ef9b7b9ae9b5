package obs

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// descriptors tells of a process that is out of file descriptors.
type descriptors struct {
	exhausted prometheus.Gauge

	mu     sync.Mutex // guards all below
	out    bool
	told   bool // of the want that goes on
	warned time.Time
}

// lookFor is how long after a want of descriptors it is looked whether there are some again.
const lookFor = time.Second

// Exhausted reports whether an error says that the process or the system has no file descriptor
// left. If it does, that is one warning and a gauge, however many connections and files meet it; a
// second line says when there are some again. Nil Metrics report nothing.
func (m *Metrics) Exhausted(l *slog.Logger, err error) bool {
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return false
	}
	if m == nil {
		return true
	}
	d := &m.descriptors
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.out {
		return true
	}
	d.out = true
	d.exhausted.Set(1)
	if now := time.Now(); now.Sub(d.warned) >= quietFor {
		d.told, d.warned = true, now
		l.Warn("out of file descriptors; new connections wait, and nothing is kept on disk; raise the limit (ulimit -n, LimitNOFILE)", Err(err))
	}
	time.AfterFunc(lookFor, func() { d.look(l) })
	return true
}

// look ends the want of descriptors if a file can be opened, and else looks again later.
func (d *descriptors) look(l *slog.Logger) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		time.AfterFunc(lookFor, func() { d.look(l) })
		return
	}
	_ = f.Close() // nothing was written
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out = false
	d.exhausted.Set(0)
	if d.told {
		d.told = false
		l.Info("there are file descriptors again")
	}
}
