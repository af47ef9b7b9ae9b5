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

// R95: a permit that was given while the authority was open no longer holds when it cools; after
// the deadline the same request becomes the probe, and under a probe it is refused.
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

// R95 R74: a probe that was not written yet is refused when an answer to an older request moves the
// deadline away, and gives its slot back.
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
	p, _ := table.Ask(t.Context(), now, a)
	if n := testing.AllocsPerRun(100, func() { p, _ = p.Recheck(now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// R95: a deadline that was moved away and has passed before the probe looked again: the slot is
// taken anew, so that the permit in hand is one that can be withdrawn.
func TestRecheckProbeAfterAMovedDeadline(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	old := d.permit(false)
	d.cool("5")
	d.pass(5 * time.Second)
	probe := d.permit(true)
	d.finish(old, 429, "1")
	d.pass(time.Second)
	next, refusal := probe.Recheck(d.now)
	if refusal != nil || !next.Probe() || withdrawn(next) {
		t.Fatalf("%+v %v, want a probe that holds", next, refusal)
	}
	d.finish(next, 200)
}
