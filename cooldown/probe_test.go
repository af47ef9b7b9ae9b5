package cooldown_test

import (
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
)

// R63 R65 R76: after the deadline exactly one asker probes; all others are told to come back in a
// second.
func TestOneProbe(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	d.cool("5")
	d.pass(time.Hour)
	p := d.permit(true)
	for range 100 {
		d.refused(time.Second, true)
	}
	d.finish(p, 200)
	d.permit(false).Release(d.now)
}

// R69 R70 R71 tc-067: a probe that ends without an answer frees the slot and changes nothing else.
func TestReleasedProbe(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	d.cool("5")
	d.pass(5 * time.Second)
	for range 3 {
		p := d.permit(true)
		d.refused(time.Second, true)
		p.Release(d.now)
	}
	p := d.permit(true)
	d.refused(time.Second, true)
	d.want(d.finish(p, 200), cooldown.TransitionRecovered, 0, "")
}

// R72 R86 tc-064: a probe that never comes back holds the slot no longer than its lease.
func TestLostProbe(t *testing.T) {
	d := newDesk(t, cooldown.Options{ProbeLease: 30 * time.Second})
	d.cool("5")
	d.pass(5 * time.Second)
	lost := d.permit(true)
	d.pass(30*time.Second - 1)
	d.refused(time.Second, true)
	d.pass(1)
	if state := d.look(); state.Phase != cooldown.PhaseDue || state.Remaining != 0 { // R94 R102
		t.Fatalf("%+v", state)
	}
	next := d.permit(true)
	d.refused(time.Second, true)
	d.finish(next, 200)
	lost.Release(d.now)
	d.permit(false).Release(d.now)
}

// R73 R86 tc-068 tc-069: a late holder can neither free, nor open, nor double for a newer one.
func TestLateHolder(t *testing.T) {
	for name, late := range map[string]func(d *desk, p cooldown.Permit) cooldown.Transition{
		"release": func(d *desk, p cooldown.Permit) cooldown.Transition { p.Release(d.now); return cooldown.Transition{} },
		"success": func(d *desk, p cooldown.Permit) cooldown.Transition { return d.finish(p, 200) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, cooldown.Options{ProbeLease: time.Second})
			d.cool("5")
			d.pass(5 * time.Second)
			old := d.permit(true)
			d.pass(time.Second)
			newer := d.permit(true)
			if tr := late(d, old); tr != (cooldown.Transition{}) {
				t.Fatalf("%+v", tr)
			}
			d.refused(time.Second, true)
			d.want(d.finish(newer, 429), cooldown.TransitionEntered, 2*time.Minute, "fallback")
		})
	}
	t.Run("throttled", func(t *testing.T) {
		d := newDesk(t, cooldown.Options{ProbeLease: time.Second})
		d.cool("5")
		d.pass(5 * time.Second)
		old := d.permit(true)
		d.pass(time.Second)
		newer := d.permit(true)
		d.want(d.finish(old, 429, "30"), cooldown.TransitionExtended, 30*time.Second, "seconds")
		if state := d.look(); state.Phase != cooldown.PhaseProbing || state.Ceiling != cooldown.Fallback {
			t.Fatalf("%+v", state)
		}
		d.want(d.finish(newer, 200), cooldown.TransitionRecovered, 0, "")
	})
}

// R86: a probe that comes back after its lease, while nobody has taken its place, still counts.
func TestLateHolderWithoutSuccessor(t *testing.T) {
	d := newDesk(t, cooldown.Options{ProbeLease: time.Second})
	d.cool("5")
	d.pass(5 * time.Second)
	p := d.permit(true)
	d.pass(time.Hour)
	d.want(d.finish(p, 200), cooldown.TransitionRecovered, 0, "")
}

// R74: answers to requests from before the cooldown lengthen it when they ask for more; they never
// shorten, end or double it.
func TestLateAnswers(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	var old []cooldown.Permit
	for range 6 {
		old = append(old, d.permit(false))
	}
	d.cool("60")
	d.pass(10 * time.Second)
	d.want(d.finish(old[0], 429, "5"), cooldown.TransitionNone, 0, "")
	d.refused(50*time.Second, false)
	d.want(d.finish(old[1], 200), cooldown.TransitionNone, 0, "")
	old[2].Release(d.now)
	d.refused(50*time.Second, false)
	d.want(d.finish(old[3], 503, "100"), cooldown.TransitionExtended, 100*time.Second, "seconds")
	d.refused(100*time.Second, false)
	d.want(d.finish(old[4], 429), cooldown.TransitionNone, 0, "") // a fallback of 60 s is not later
	if state := d.look(); state.Ceiling != cooldown.Fallback {
		t.Fatalf("%+v", state)
	}
	d.pass(100 * time.Second)
	p := d.permit(true)
	d.want(d.finish(old[5], 200), cooldown.TransitionNone, 0, "") // late, while the probe runs
	d.refused(time.Second, true)
	d.finish(p, 200)
}

// R74: a late throttling answer while a probe runs moves the deadline; the probe's own verdict
// stands, and if it never comes the deadline does.
func TestLateAnswerDuringProbe(t *testing.T) {
	start := func(t *testing.T) (*desk, cooldown.Permit) {
		d := newDesk(t, cooldown.Options{})
		old := d.permit(false)
		d.cool("5")
		d.pass(5 * time.Second)
		p := d.permit(true)
		d.want(d.finish(old, 429, "100"), cooldown.TransitionExtended, 100*time.Second, "seconds")
		d.refused(time.Second, true)
		return d, p
	}
	t.Run("recovered", func(t *testing.T) {
		d, p := start(t)
		d.want(d.finish(p, 200), cooldown.TransitionRecovered, 0, "")
		d.permit(false).Release(d.now)
	})
	t.Run("released", func(t *testing.T) {
		d, p := start(t)
		p.Release(d.now)
		d.refused(100*time.Second, false)
	})
	t.Run("lost", func(t *testing.T) {
		d, p := start(t)
		d.pass(99 * time.Second)
		d.refused(time.Second, true)
		d.pass(cooldown.DefaultProbeLease - 99*time.Second)
		d.permit(true).Release(d.now)
		p.Release(d.now)
	})
	t.Run("throttled", func(t *testing.T) {
		d, p := start(t)
		tr := d.finish(p, 429, "10")
		d.want(tr, cooldown.TransitionEntered, 100*time.Second, "seconds") // never shortened
		if tr.Ceiling != 2*time.Minute {
			t.Fatalf("%+v", tr)
		}
	})
}

// R1: a throttling answer that arrives when a whole cooldown has come and gone begins a new one.
func TestLateAnswerAfterRecovery(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	old := d.permit(false)
	d.cool("5")
	d.pass(5 * time.Second)
	d.finish(d.permit(true), 200)
	d.want(d.finish(old, 429, "9"), cooldown.TransitionEntered, 9*time.Second, "seconds")
}

// R75: two first answers at the same instant make one cooldown and one entry.
func TestTwoFirstAnswers(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	a, b := d.permit(false), d.permit(false)
	d.want(d.finish(a, 429), cooldown.TransitionEntered, time.Minute, "fallback")
	d.want(d.finish(b, 429), cooldown.TransitionNone, 0, "")
}

// tc-057: a server that says 0 again and again while it still blocks gets a wait that grows, not a
// loop.
func TestZeroAgainAndAgain(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	p := d.permit(false)
	for _, want := range []time.Duration{60, 120, 240, 480, 600, 600} {
		d.want(d.finish(p, 429, "0"), cooldown.TransitionEntered, want*time.Second, "fallback")
		d.pass(want * time.Second)
		p = d.permit(true)
	}
	p.Release(d.now)
}
