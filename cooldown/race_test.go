package cooldown_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// together runs f in n goroutines that start as one.
func together(n int, f func(i int)) {
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range n {
		done.Go(func() {
			start.Wait()
			f(i)
		})
	}
	start.Done()
	done.Wait()
}

// R63 R77: of a thousand that ask at the deadline exactly one is let through, at every deadline of
// the ladder.
func TestOneProbePerDeadline(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	d.cool("5")
	for range 8 {
		d.pass(d.look().Remaining)
		var permits, waits atomic.Int64
		probe := make(chan cooldown.Permit, 1000)
		together(1000, func(int) {
			p, refusal := d.table.Ask(t.Context(), d.now, d.a)
			switch {
			case refusal == nil && p.Probe():
				permits.Add(1)
				probe <- p
			case refusal != nil && refusal.Probing && refusal.RetryAfterSeconds() == 1:
				waits.Add(1)
			}
		})
		if permits.Load() != 1 || waits.Load() != 999 {
			t.Fatalf("%d probes and %d told to wait, want 1 and 999", permits.Load(), waits.Load())
		}
		d.finish(<-probe, 429)
	}
	if state := d.look(); state.Refused != 8*999 {
		t.Errorf("%d refusals counted, want %d", state.Refused, 8*999)
	}
}

// R75: of many first answers at the same instant one makes the entry.
func TestOneEntry(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	permits := make([]cooldown.Permit, 500)
	for i := range permits {
		permits[i] = d.permit(false)
	}
	var entries, others atomic.Int64
	together(len(permits), func(i int) {
		switch tr := permits[i].Finish(d.now, 429, retryafter.Report{}); tr.Kind {
		case cooldown.TransitionEntered:
			entries.Add(1)
		case cooldown.TransitionNone:
		default:
			others.Add(1)
		}
	})
	if entries.Load() != 1 || others.Load() != 0 {
		t.Errorf("%d entries and %d other transitions", entries.Load(), others.Load())
	}
}

// R71 R73: settling a probe from many goroutines at once settles it once.
func TestConcurrentSettling(t *testing.T) {
	table, a, now := cooldown.New(cooldown.Options{}), cooldown.Authority{Host: "a.example", Port: 443}, time.Now()
	p, _ := table.Ask(t.Context(), now, a)
	p.Finish(now, 429, retryafter.Report{})
	now = now.Add(time.Minute)
	p, _ = table.Ask(t.Context(), now, a)
	var recovered atomic.Int64
	together(100, func(i int) {
		if i%2 == 0 {
			p.Release(now)
		} else if p.Finish(now, 200, retryafter.Report{}).Kind == cooldown.TransitionRecovered {
			recovered.Add(1)
		}
	})
	if recovered.Load() > 1 {
		t.Errorf("recovered %d times", recovered.Load())
	}
	if state := table.Look(now, a); state.Phase == cooldown.PhaseProbing {
		t.Errorf("%+v", state)
	}
}

// Everything at once, for the race detector: no send before its time, and never two probes.
func TestHammer(t *testing.T) {
	d := newDesk(t, cooldown.Options{MaxAuthorities: 4, ProbeLease: time.Hour})
	start := d.now
	var clock, probes atomic.Int64
	together(16, func(i int) {
		for step := range 300 {
			now := start.Add(time.Duration(clock.Add(int64(50 * time.Millisecond))))
			a := cooldown.Authority{Host: "registry.example", Port: uint16(440 + i%3)}
			p, refusal := d.table.Ask(t.Context(), now, a)
			if refusal != nil {
				continue
			}
			if p.Probe() && a.Port == 440 {
				if probes.Add(1) > 1 {
					t.Error("two probes")
				}
			}
			d.table.Snapshot(now)
			if p.Probe() && a.Port == 440 {
				probes.Add(-1)
			}
			switch step % 5 {
			case 0:
				p.Finish(now, 429, retryafter.Parse([]string{"1"}, now))
			case 1:
				p.Release(now)
			default:
				p.Finish(now, 200, retryafter.Report{})
			}
		}
	})
}
