//go:build linux || darwin

package cooldownfile

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// machine is what the property test knows: the true time, and what has been met.
type machine struct {
	dir     string
	passed  time.Duration // really
	step    time.Duration // what was added to the wall clock until now
	forward bool          // it was set forward, so that nothing is sure any more but the cap
	all     []*worker
	// the latest deadline that somebody was given, in true time; 0 after a recovery
	ends time.Duration
}

// worker is a process. The wall clock of a running one does not matter to it; it counts from its
// start.
type worker struct {
	file    *File
	table   *cooldown.Table
	step    time.Duration // of the wall clock when it began
	pending []cooldown.Permit
}

func (m *machine) begin() *worker {
	w := &worker{file: open(m.dir, obs.Discard(), durable.Options{}), step: m.step}
	w.table = cooldown.New(cooldown.Options{Memory: w.file, Rand: func(n int64) int64 { return n - 1 }})
	return w
}

func (m *machine) now(w *worker) time.Time { return start.Add(m.passed + w.step) }

// R100: whatever two processes on one machine meet, in whatever order, however often they are
// killed and started, and whatever becomes of the wall clock in between: nobody sends before a
// deadline that anybody was given, unless the wall clock was set forward; nobody is kept waiting
// longer than the cap; and after that the authority can be probed.
func TestNobodySendsEarly(t *testing.T) {
	root, n := t.TempDir(), 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		dir := filepath.Join(root, strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			r.Fatal(err)
		}
		m := &machine{dir: dir}
		m.all = []*worker{m.begin(), m.begin()}
		defer func() {
			for _, w := range m.all {
				w.file.Close()
			}
		}()
		r.Repeat(map[string]func(*rapid.T){
			"time passes": func(r *rapid.T) { m.passed += time.Duration(rapid.Int64Range(0, int64(200*time.Second)).Draw(r, "by")) },
			"ask":         func(r *rapid.T) { m.ask(r, m.one(r)) },
			"answer":      func(r *rapid.T) { m.answer(r, m.one(r)) },
			"restart": func(r *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(r, "process")
				m.all[i].file.Close()
				m.all[i] = m.begin()
			},
			// while nobody runs: what a running process keeps is told by its own clock
			"the wall clock is set": func(r *rapid.T) {
				by := rapid.SampledFrom([]time.Duration{-time.Hour, -time.Minute, -1500 * time.Millisecond, -10 * time.Millisecond, time.Hour}).Draw(r, "by")
				m.step += by
				m.forward = m.forward || by > 0
				for i, w := range m.all {
					w.file.Close()
					m.all[i] = m.begin()
				}
			},
		})
		last := m.begin() // a clock that was set back counts from when it is looked at
		last.table.Ask(t.Context(), m.now(last), npm)
		last.file.Close()
		// each wait is within the cap; together with a step below skew they may reach this
		m.passed += cooldown.MaxDelay + skew
		last = m.begin()
		defer last.file.Close()
		if _, refusal := last.table.Ask(t.Context(), m.now(last), npm); refusal != nil {
			r.Fatalf("refused after the cap: %v", refusal)
		}
	})
}

func (m *machine) one(r *rapid.T) *worker { return m.all[rapid.IntRange(0, 1).Draw(r, "process")] }

func (m *machine) ask(r *rapid.T, w *worker) {
	now := m.now(w)
	p, refusal := w.table.Ask(context.Background(), now, npm)
	if refusal == nil {
		p, refusal = p.Recheck(now)
	}
	switch {
	case refusal != nil && (refusal.Wait <= 0 || refusal.Wait > cooldown.MaxDelay):
		r.Fatalf("a wait of %v", refusal.Wait)
	case refusal != nil:
		return
	case m.passed < m.ends && !m.forward:
		r.Fatalf("sent %v before the deadline", m.ends-m.passed)
	}
	w.pending = append(w.pending, p)
}

func (m *machine) answer(r *rapid.T, w *worker) {
	if len(w.pending) == 0 {
		r.Skip()
	}
	p := w.pending[0]
	w.pending = w.pending[1:]
	now, status := m.now(w), rapid.SampledFrom([]int{200, 429, 429}).Draw(r, "status")
	hint := rapid.SampledFrom([]string{"", "1", "30", "599", "99999"}).Draw(r, "hint")
	tr := p.Finish(now, status, retryafter.Parse([]string{hint}, now))
	switch tr.Kind {
	case cooldown.TransitionRecovered:
		m.ends = 0
	case cooldown.TransitionEntered, cooldown.TransitionExtended:
		m.ends = max(m.ends, m.passed+tr.Delay)
	case cooldown.TransitionNone:
	}
}
