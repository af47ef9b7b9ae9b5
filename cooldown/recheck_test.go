package cooldown_test

import (
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
)

func withdrawn(p cooldown.Permit) bool {
	select {
	case <-p.Withdrawn():
		return true
	default:
		return false
	}
}

// R95: a permit that was given while the authority was open no longer holds when it cools; after the deadline the same
// request becomes the probe, and under a probe it is refused.
func TestRecheckOrdinary(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	waiting, second := d.permit(false), d.permit(false)
	if got, refusal := waiting.Recheck(d.now); refusal != nil || got != waiting || withdrawn(waiting) {
		t.Fatalf("%+v %v: the permit holds", got, refusal)
	}
	d.cool("5")
	if !withdrawn(waiting) || !withdrawn(second) {
		t.Fatal("nobody was told")
	}
	if _, refusal := waiting.Recheck(d.now); refusal == nil || refusal.Wait != 5*time.Second {
		t.Fatalf("%+v", refusal)
	}
	d.pass(5 * time.Second)
	probe, refusal := second.Recheck(d.now)
	if refusal != nil || !probe.Probe() {
		t.Fatalf("%+v %v, want the probe", probe, refusal)
	}
	d.refused(time.Second, true)
	if got, refusal := probe.Recheck(d.now); refusal != nil || got != probe || withdrawn(probe) {
		t.Fatalf("%+v %v: the probe holds", got, refusal)
	}
	d.finish(probe, 200)
	d.permit(false).Release(d.now)
}

// R95 R74: a probe that was not written yet is refused when an answer to an older request moves the deadline away, and gives
// its slot back.
func TestRecheckProbe(t *testing.T) {
	d := newDesk(t, cooldown.Options{ProbeLease: 30 * time.Second})
	old := d.permit(false)
	d.cool("5")
	d.pass(5 * time.Second)
	probe := d.permit(true)
	d.finish(old, 429, "20")
	if !withdrawn(probe) {
		t.Error("the probe was not told")
	}
	if _, refusal := probe.Recheck(d.now); refusal == nil || refusal.Wait != 20*time.Second || refusal.Probing {
		t.Fatalf("%+v", refusal)
	}
	d.pass(20 * time.Second)
	lost := d.permit(true)
	d.pass(30 * time.Second)
	next := d.permit(true)
	if _, refusal := lost.Recheck(d.now); refusal == nil || !refusal.Probing || withdrawn(next) || !withdrawn(lost) {
		t.Fatalf("%+v: the lease has gone to another", refusal)
	}
	d.finish(next, 200)
}

// R95: rechecking an open authority allocates nothing.
func TestRecheckAllocatesNothing(t *testing.T) {
	table := cooldown.New(cooldown.Options{})
	now, a := time.Now(), cooldown.Authority{Host: "registry.example", Port: 443}
	p, _ := table.Ask(now, a)
	if n := testing.AllocsPerRun(100, func() { p, _ = p.Recheck(now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// R100: what an earlier process knew applies, within the cap; an earlier deadline and a lower ceiling change nothing.
func TestRestore(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	kept := func(phase cooldown.Phase, remaining, ceiling time.Duration) {
		d.table.Restore(d.now, cooldown.State{Authority: d.a, Phase: phase, Remaining: remaining, Ceiling: ceiling})
	}
	kept(cooldown.PhaseOpen, time.Hour, time.Hour)
	early := d.permit(false)
	kept(cooldown.PhaseCooling, 40*time.Second, 4*time.Minute)
	kept(cooldown.PhaseCooling, 20*time.Second, time.Minute)
	if !withdrawn(early) {
		t.Error("an earlier permit was not withdrawn")
	}
	early.Release(d.now)
	d.refused(40*time.Second, false)
	kept(cooldown.PhaseCooling, 100*time.Hour, 100*time.Hour)
	d.refused(cooldown.MaxDelay, false)
	if got := d.look(); got.Ceiling != cooldown.MaxDelay {
		t.Errorf("%+v", got)
	}
	d.pass(cooldown.MaxDelay)
	d.finish(d.permit(true), 200)
	kept(cooldown.PhaseDue, 0, 2*time.Minute)
	d.permit(true).Release(d.now)
	if got := d.look(); got.Phase != cooldown.PhaseDue || got.Ceiling != 2*time.Minute {
		t.Errorf("%+v", got)
	}
}
