package cooldown_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// The zero permit can be settled without harm.
func TestZeroPermit(t *testing.T) {
	var p cooldown.Permit
	p.Release(time.Now())
	if tr := p.Finish(time.Now(), 429, retryafter.Report{}); tr != (cooldown.Transition{}) || p.Probe() || p.Authority() != (cooldown.Authority{}) {
		t.Errorf("%+v %+v", p, tr)
	}
}

// Settling twice does no harm: a probe's second word is not heard, and an ordinary permit's success
// says nothing anyway.
func TestSettledTwice(t *testing.T) {
	table, now, a := cooldown.New(cooldown.Options{}), time.Now(), cooldown.Authority{Host: "a.example", Port: 443}
	throttled := retryafter.Parse([]string{"5"}, now)
	p := ask(t, table, now, a)
	p.Finish(now, 429, throttled)
	if tr := p.Finish(now, 429, throttled); tr != (cooldown.Transition{}) {
		t.Errorf("an entry twice: %+v", tr)
	}
	p.Finish(now, 200, throttled)
	p.Release(now)
	if state := table.Look(now, a); state.Remaining != 5*time.Second || state.Ceiling != cooldown.Fallback {
		t.Errorf("%+v", state)
	}

	now = now.Add(5 * time.Second)
	probe := ask(t, table, now, a)
	probe.Release(now)
	probe.Release(now)
	if tr := probe.Finish(now, 200, retryafter.Report{}); tr != (cooldown.Transition{}) {
		t.Errorf("recovered after the release: %+v", tr)
	}
	next := ask(t, table, now, a)
	probe.Release(now)
	probe.Finish(now, 200, retryafter.Report{})
	if _, refusal := table.Ask(t.Context(), now, a); refusal == nil || !refusal.Probing {
		t.Errorf("a settled permit freed the slot of the next: %+v", refusal)
	}
	next.Finish(now, 429, retryafter.Report{})
	if next.Finish(now, 429, retryafter.Report{}); table.Look(now, a).Ceiling != 2*cooldown.Fallback {
		t.Errorf("doubled twice: %+v", table.Look(now, a))
	}
}

// Strict tells of permits that are settled twice, and does not let the second time count.
func TestStrictTwice(t *testing.T) {
	var misuses []cooldown.Misuse
	table := cooldown.New(cooldown.Options{Strict: func(m cooldown.Misuse) { misuses = append(misuses, m) }})
	now, a := time.Now(), cooldown.Authority{Host: "a.example", Port: 443}
	p := ask(t, table, now, a)
	if table.Unsettled() != 1 {
		t.Errorf("%d unsettled", table.Unsettled())
	}
	p.Finish(now, 200, retryafter.Report{})
	other := p // a copy is the same permit
	if tr := other.Finish(now, 429, retryafter.Report{}); tr != (cooldown.Transition{}) {
		t.Errorf("%+v", tr)
	}
	if len(misuses) != 1 || misuses[0] != (cooldown.Misuse{Kind: cooldown.MisuseTwice, Authority: a}) || table.Unsettled() != 0 {
		t.Errorf("%+v, %d unsettled", misuses, table.Unsettled())
	}
	runtime.KeepAlive(p)
}

// Strict tells of permits that nobody settles.
func TestStrictLost(t *testing.T) {
	lost := make(chan cooldown.Misuse, 10)
	table := cooldown.New(cooldown.Options{Strict: func(m cooldown.Misuse) { lost <- m }})
	now, a := time.Now(), cooldown.Authority{Host: "a.example", Port: 443}
	// settled: not lost
	ask(t, table, now, a).Finish(now, 429, retryafter.Parse([]string{"1"}, now))
	func() { ask(t, table, now.Add(time.Second), a) }()
	limit := time.After(time.Minute)
	for {
		runtime.GC()
		select {
		case m := <-lost:
			if m != (cooldown.Misuse{Kind: cooldown.MisuseLost, Authority: a, Probe: true}) || table.Unsettled() != 0 {
				t.Fatalf("%+v, %d unsettled", m, table.Unsettled())
			}
			return
		case <-limit:
			t.Fatal("the lost permit was not noticed")
		case <-time.After(time.Millisecond):
		}
	}
}
