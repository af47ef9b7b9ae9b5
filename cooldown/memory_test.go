package cooldown_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// notes is a Memory that keeps a note of each call, and has news when it is given some.
type notes struct {
	calls []string
	news  func(now time.Time, t *cooldown.Table)
}

func (n *notes) Recall(now time.Time, t *cooldown.Table, written bool) {
	n.calls = append(n.calls, fmt.Sprint("recall ", written))
	if n.news != nil {
		n.news(now, t)
		n.news = nil
	}
}

func (n *notes) Remember(now time.Time, t *cooldown.Table, a cooldown.Authority) {
	s := t.Look(now, a)
	n.calls = append(n.calls, fmt.Sprintf("remember %s %s %v %v", a.Host, s.Phase, s.Remaining, s.Ceiling))
}

func (n *notes) want(t *testing.T, want ...string) {
	t.Helper()
	if got := fmt.Sprint(n.calls); got != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	n.calls = nil
}

var (
	memoryStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	kept        = cooldown.Authority{Host: "kept", Port: 443}
)

// R100: the memory is asked before each judgement and told of each transition, when the table knows
// it already; of what changes nothing it hears nothing.
func TestMemoryIsAskedAndTold(t *testing.T) {
	n, now := &notes{}, memoryStart
	table := cooldown.New(cooldown.Options{Memory: n})
	first, _ := table.Ask(t.Context(), now, kept)
	second, _ := table.Ask(t.Context(), now, kept)
	third, _ := table.Ask(t.Context(), now, kept)
	if _, refusal := second.Recheck(now); refusal != nil {
		t.Fatal(refusal)
	}
	n.want(t, "recall false", "recall false", "recall false", "recall true")
	first.Finish(now, 429, retryafter.Report{})
	n.want(t, "remember kept cooling 1m0s 1m0s")
	second.Finish(now, 429, retryafter.Parse([]string{"90"}, now))
	n.want(t, "remember kept cooling 1m30s 1m0s")
	third.Finish(now, 429, retryafter.Parse([]string{"30"}, now))
	table.Ask(t.Context(), now, kept)
	n.want(t, "recall false")
	now = now.Add(90 * time.Second)
	probe, _ := table.Ask(t.Context(), now, kept)
	probe.Release(now)
	probe, _ = table.Ask(t.Context(), now, kept)
	n.want(t, "recall false", "recall false")
	probe.Finish(now, 200, retryafter.Report{})
	n.want(t, "remember kept open 0s 1m0s")
}

// R100 R95: news that are there when a request is about to be written hold for it, whatever permit
// it has.
func TestNewsAtTheWire(t *testing.T) {
	n, now := &notes{}, memoryStart
	table := cooldown.New(cooldown.Options{Memory: n})
	restore := func(remaining time.Duration) func(time.Time, *cooldown.Table) {
		return func(now time.Time, t *cooldown.Table) { t.Restore(now, kept, remaining, cooldown.Fallback) }
	}
	p, _ := table.Ask(t.Context(), now, kept)
	withdrawn := p.Withdrawn()
	n.news = restore(30 * time.Second)
	if _, refusal := p.Recheck(now); refusal == nil || refusal.Wait != 30*time.Second {
		t.Errorf("an ordinary permit: %v", refusal)
	}
	select {
	case <-withdrawn:
	default:
		t.Error("the permit was not withdrawn")
	}
	now = now.Add(30 * time.Second)
	probe, _ := table.Ask(t.Context(), now, kept)
	n.news = restore(10 * time.Second)
	if _, refusal := probe.Recheck(now); !probe.Probe() || refusal == nil || refusal.Wait != 10*time.Second || refusal.Probing {
		t.Errorf("a probe: %v", refusal)
	}
	probe, _ = table.Ask(t.Context(), now.Add(10*time.Second), kept)
	if !probe.Probe() {
		t.Error("the slot was not given back")
	}
}

// R100: the later deadline and the higher ceiling apply, the cap bounds both, and the memory is not
// told what it said itself.
func TestRestore(t *testing.T) {
	n, now := &notes{}, memoryStart
	table := cooldown.New(cooldown.Options{Memory: n})
	for i, c := range []struct {
		remaining, ceiling time.Duration
		kind               cooldown.TransitionKind
		left, high         time.Duration
	}{
		{20 * time.Second, 240 * time.Second, cooldown.TransitionEntered, 20 * time.Second, 240 * time.Second},
		{10 * time.Second, 60 * time.Second, cooldown.TransitionNone, 20 * time.Second, 240 * time.Second},
		{10 * time.Second, 480 * time.Second, cooldown.TransitionNone, 20 * time.Second, 480 * time.Second},
		{time.Hour, time.Hour, cooldown.TransitionExtended, 600 * time.Second, 600 * time.Second},
		{-time.Hour, 0, cooldown.TransitionNone, 600 * time.Second, 600 * time.Second},
	} {
		got := table.Restore(now, kept, c.remaining, c.ceiling)
		s := table.Look(now, kept)
		if got.Kind != c.kind || s.Remaining != c.left || s.Ceiling != c.high || s.Phase != cooldown.PhaseCooling {
			t.Errorf("%d: %+v, then %+v", i, got, s)
		}
		if got.Kind != cooldown.TransitionNone && (!got.Shared || got.Authority != kept || got.Delay != c.left || got.Ceiling != c.high) {
			t.Errorf("%d: %+v", i, got)
		}
	}
	n.want(t)
}

// R100, R19 to R22, R63: a deadline that is over leaves the authority due: one probe, whose failure
// doubles the ceiling that was kept and whose success resets it.
func TestRestoredDue(t *testing.T) {
	now := memoryStart
	table := cooldown.New(cooldown.Options{})
	table.Restore(now, kept, 0, 120*time.Second)
	if s := table.Look(now, kept); s.Phase != cooldown.PhaseDue || s.Ceiling != 120*time.Second {
		t.Errorf("%+v", s)
	}
	probe, refusal := table.Ask(t.Context(), now, kept)
	if refusal != nil || !probe.Probe() {
		t.Fatalf("%+v %v", probe, refusal)
	}
	if _, refusal := table.Ask(t.Context(), now, kept); refusal == nil || !refusal.Probing {
		t.Errorf("the second: %v", refusal)
	}
	if got := probe.Finish(now, 429, retryafter.Parse([]string{"5"}, now)); got.Ceiling != 240*time.Second || !got.Probe {
		t.Errorf("%+v", got)
	}
	now = now.Add(5 * time.Second)
	probe, _ = table.Ask(t.Context(), now, kept)
	probe.Finish(now, 200, retryafter.Report{})
	if s := table.Look(now, kept); s.Phase != cooldown.PhaseOpen || s.Ceiling != cooldown.Fallback {
		t.Errorf("%+v", s)
	}
}

// R74: the verdict of a probe that is already on its way stands, as against an older answer of this
// process.
func TestRestoreDuringAProbe(t *testing.T) {
	now := memoryStart
	table := cooldown.New(cooldown.Options{})
	table.Restore(now, kept, 0, cooldown.Fallback)
	probe, _ := table.Ask(t.Context(), now, kept)
	if got := table.Restore(now, kept, 50*time.Second, cooldown.Fallback); got.Kind != cooldown.TransitionExtended {
		t.Errorf("%+v", got)
	}
	if got := probe.Finish(now, 200, retryafter.Report{}); got.Kind != cooldown.TransitionRecovered {
		t.Errorf("%+v", got)
	}
}

// R33: where there is no room, what is kept makes none, and nothing that cools gives way.
func TestRestoreIntoAFullTable(t *testing.T) {
	now := memoryStart
	table := cooldown.New(cooldown.Options{MaxAuthorities: 1})
	other := cooldown.Authority{Host: "other", Port: 443}
	table.Restore(now, other, time.Minute, cooldown.Fallback)
	if got := table.Restore(now, kept, time.Minute, cooldown.Fallback); got.Kind != cooldown.TransitionNone {
		t.Errorf("%+v", got)
	}
	if s := table.Look(now, other); s.Phase != cooldown.PhaseCooling {
		t.Errorf("%+v", s)
	}
}

// R85 R100: what a store tells is remembered as well, since the store may be gone after a restart.
func TestNewsOfTheStoreAreRemembered(t *testing.T) {
	n, now := &notes{}, memoryStart
	table := cooldown.New(cooldown.Options{Memory: n, Store: newMemoryStore()})
	table.Ask(t.Context(), now, kept)
	table.Observe(now, kept, cooldown.Shared{Generation: 7, Cooling: true, Remaining: 30 * time.Second, Ceiling: 120 * time.Second})
	n.want(t, "recall false", "remember kept cooling 30s 2m0s")
}

// slowMemory remembers when it is let.
type slowMemory struct{ let chan struct{} }

func (slowMemory) Recall(time.Time, *cooldown.Table, bool) {}

func (m slowMemory) Remember(time.Time, *cooldown.Table, cooldown.Authority) { <-m.let }

// R100: nobody hears of a cooldown before it is kept: not the caller whose answer began it, not
// those who are refused, and not those who ask how things stand.
func TestNobodyHearsOfWhatIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := slowMemory{make(chan struct{})}
		table := cooldown.New(cooldown.Options{Memory: m})
		a := cooldown.Authority{Host: "registry.example", Port: 443}
		now := time.Now()
		permit, _ := table.Ask(t.Context(), now, a)
		var told atomic.Int32
		go func() {
			permit.Finish(now, 429, retryafter.Parse([]string{"30"}, now))
			told.Add(1)
		}()
		synctest.Wait()
		for _, hear := range []func(){
			func() { table.Ask(t.Context(), now, a) }, func() { table.Recall(now) },
		} {
			go func() {
				hear()
				told.Add(1)
			}()
		}
		synctest.Wait()
		if n := told.Load(); n != 0 {
			t.Errorf("%d heard of it", n)
		}
		close(m.let)
		synctest.Wait()
		if n := told.Load(); n != 3 {
			t.Errorf("%d were told at last", n)
		}
	})
}

// R16, R35, R36: several answers that come together move the deadline by moments; nobody is told
// more than they ask for, although a caller's reading of the clock is a moment older than that with
// which the deadline was set.
func TestNobodyIsToldMoreThanWasAskedFor(t *testing.T) {
	table := cooldown.New(cooldown.Options{})
	a := cooldown.Authority{Host: "registry.example", Port: 443}
	now := time.Now()
	var permits []cooldown.Permit
	for range 3 {
		permit, _ := table.Ask(t.Context(), now, a)
		permits = append(permits, permit)
	}
	for i, permit := range permits {
		at := now.Add(time.Duration(i) * time.Millisecond)
		permit.Finish(at, 429, retryafter.Parse([]string{"2"}, at))
	}
	if _, refusal := table.Ask(t.Context(), now, a); refusal == nil || refusal.Wait != 2*time.Second {
		t.Errorf("%+v", refusal)
	}
	if s := table.Look(now, a); s.Remaining != 2*time.Second {
		t.Errorf("%+v", s)
	}
	if _, refusal := table.Ask(t.Context(), now.Add(2*time.Second+time.Millisecond), a); refusal == nil || refusal.Wait != time.Millisecond {
		t.Errorf("%+v", refusal)
	}
}

// R99, R100: whoever tells others how things stand finds what another process remembered a moment
// ago.
func TestRecallLooksAtOnce(t *testing.T) {
	n := &notes{}
	table := cooldown.New(cooldown.Options{Memory: n})
	a := cooldown.Authority{Host: "registry.example", Port: 443}
	now := time.Now()
	n.news = func(now time.Time, t *cooldown.Table) { t.Restore(now, a, time.Minute, time.Minute) }
	table.Recall(now)
	if s := table.Look(now, a); len(n.calls) != 1 || n.calls[0] != "recall true" || s.Remaining != time.Minute {
		t.Errorf("%q, %+v", n.calls, s)
	}
}
