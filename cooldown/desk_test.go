package cooldown_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// desk is a table, a clock that only moves when told, and the random numbers that the table gets.
type desk struct {
	t     *testing.T
	table *cooldown.Table
	now   time.Time
	draws []int64             // the n of each draw
	roll  func(n int64) int64 // what a draw answers; nil is the largest number
	a     cooldown.Authority
}

func newDesk(t *testing.T, o cooldown.Options) *desk {
	t.Helper()
	d := &desk{t: t, now: time.Now(), a: cooldown.Authority{Host: "registry.example", Port: 443}}
	o.Rand = func(n int64) int64 {
		d.draws = append(d.draws, n)
		if d.roll == nil {
			return n - 1
		}
		return d.roll(n)
	}
	o.Strict = func(m cooldown.Misuse) { panic(fmt.Sprintf("permit %v: %+v", m.Kind, m)) }
	d.table = cooldown.New(o)
	t.Cleanup(func() {
		if n := d.table.Unsettled(); n != 0 && !t.Failed() {
			t.Errorf("%d permits were not settled", n)
		}
	})
	return d
}

func (d *desk) pass(by time.Duration) { d.now = d.now.Add(by) }

// permit wants a permit, a probe's or an ordinary one.
func (d *desk) permit(probe bool) cooldown.Permit {
	d.t.Helper()
	p, refusal := d.table.Ask(d.t.Context(), d.now, d.a)
	if refusal != nil || p.Probe() != probe {
		d.t.Fatalf("permit with probe %v, refusal %v; want a permit with probe %v", p.Probe(), refusal, probe)
	}
	return p
}

// refused wants a refusal.
func (d *desk) refused(wait time.Duration, probing bool) {
	d.t.Helper()
	p, refusal := d.table.Ask(d.t.Context(), d.now, d.a)
	if refusal == nil {
		p.Release(d.now)
		d.t.Fatalf("a permit, want to be refused for %v", wait)
	}
	if refusal.Wait != wait || refusal.Probing != probing || refusal.Authority != d.a {
		d.t.Fatalf("%+v, want to be refused for %v, probing %v", refusal, wait, probing)
	}
}

// finish settles a permit with the given status and Retry-After lines.
func (d *desk) finish(p cooldown.Permit, status int, values ...string) cooldown.Transition {
	d.t.Helper()
	return p.Finish(d.now, status, retryafter.Parse(values, d.now))
}

func (d *desk) want(got cooldown.Transition, kind cooldown.TransitionKind, delay time.Duration, hint string) {
	d.t.Helper()
	if got.Kind != kind || got.Delay != delay || got.Hint != hint {
		d.t.Fatalf("%+v, want %v for %v by %q", got, kind, delay, hint)
	}
}

func (d *desk) look() cooldown.State { return d.table.Look(d.now, d.a) }

// cool starts a cooldown of the given seconds.
func (d *desk) cool(seconds string) {
	d.t.Helper()
	if tr := d.finish(d.permit(false), 429, seconds); tr.Kind != cooldown.TransitionEntered {
		d.t.Fatalf("%+v, want entered", tr)
	}
}
