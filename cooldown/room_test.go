package cooldown_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// host is the nth of many authorities.
func host(n int) cooldown.Authority {
	return cooldown.Authority{Host: "h" + strconv.Itoa(n) + ".example", Port: 443}
}

func ask(t *testing.T, table *cooldown.Table, now time.Time, a cooldown.Authority) cooldown.Permit {
	t.Helper()
	p, refusal := table.Ask(t.Context(), now, a)
	if refusal != nil {
		t.Fatal(refusal)
	}
	return p
}

// R33: the table keeps to its bound, and forgets open authorities only.
func TestBound(t *testing.T) {
	table, now := cooldown.New(cooldown.Options{MaxAuthorities: 10}), time.Now()
	ask(t, table, now, host(0)).Finish(now, 429, retryafter.Parse([]string{"300"}, now))
	for n := range 1000 {
		ask(t, table, now, host(1+n))
	}
	if got := len(table.Snapshot(now)); got != 10 {
		t.Errorf("%d authorities, want 10", got)
	}
	if state := table.Look(now, host(0)); state.Phase != cooldown.PhaseCooling || state.Remaining != 5*time.Minute {
		t.Errorf("forgot a cooldown: %+v", state)
	}
}

// R33: when all are cooling, a new one is refused until the first of them may be probed; long
// silent ones give way.
func TestFullOfCooling(t *testing.T) {
	table, now := cooldown.New(cooldown.Options{MaxAuthorities: 3}), time.Now()
	for n := range 3 {
		ask(t, table, now, host(n)).Finish(now, 429, retryafter.Parse([]string{strconv.Itoa(100 + n)}, now))
	}
	_, refusal := table.Ask(t.Context(), now, host(3))
	if refusal == nil || !refusal.TableFull || refusal.Probing || refusal.Wait != 100*time.Second || refusal.Authority != host(3) {
		t.Fatalf("%+v", refusal)
	}
	now = now.Add(100*time.Second + cooldown.MaxDelay - 1)
	if _, refusal = table.Ask(t.Context(), now, host(3)); refusal == nil || refusal.Wait != cooldown.ProbeWait {
		t.Fatalf("%+v", refusal)
	}
	now = now.Add(1)
	ask(t, table, now, host(3))
	if state := table.Look(now, host(0)); state.Phase != cooldown.PhaseOpen {
		t.Errorf("%+v", state)
	}
	for n := 1; n < 3; n++ {
		if state := table.Look(now, host(n)); state.Phase != cooldown.PhaseDue {
			t.Errorf("%d: %+v", n, state)
		}
	}
}

// R33 R1: a throttling answer for an authority that has given way meanwhile is kept, and the bound
// holds again with the next newcomer.
func TestAnswerOfTheForgotten(t *testing.T) {
	table, now := cooldown.New(cooldown.Options{MaxAuthorities: 2}), time.Now()
	first := ask(t, table, now, host(0))
	for n := range 20 {
		ask(t, table, now, host(1+n))
	}
	if tr := first.Finish(now, 429, retryafter.Report{}); tr.Kind != cooldown.TransitionEntered {
		t.Fatalf("%+v", tr)
	}
	if _, refusal := table.Ask(t.Context(), now, host(0)); refusal == nil {
		t.Fatal("forgot it")
	}
	ask(t, table, now, host(30))
	if got := len(table.Snapshot(now)); got > 2 {
		t.Errorf("%d authorities, want 2", got)
	}
}
