package cooldown_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// R85: a throttling answer that one process gets cools the authority for the others, with the same
// deadline and ceiling.
func TestSharedCooldown(t *testing.T) {
	f := newFleet(t)
	f.two.finish(f.two.permit(false), 200)
	f.one.cool("60")
	f.pass(10 * time.Second)
	f.push(t)
	f.two.refused(50*time.Second, false)
	want := cooldown.Transition{Kind: cooldown.TransitionEntered, Authority: f.two.a, Delay: 50 * time.Second, Ceiling: cooldown.Fallback, Shared: true}
	if len(f.heard) != 1 || f.heard[0] != want {
		t.Fatalf("%+v, want %+v", f.heard, want)
	}
}

// tc-084 tc-086 tc-090 R85: a process that joins reads before it sends, and its joining writes
// nothing.
func TestJoining(t *testing.T) {
	f := newFleet(t)
	f.one.cool("60")
	f.pass(10 * time.Second)
	writes := f.writes
	f.two.refused(50*time.Second, false)
	if f.writes != writes {
		t.Errorf("joining wrote %d times", f.writes-writes)
	}
	late := newDesk(t, cooldown.Options{Store: f})
	f.pass(time.Hour)
	late.permit(true).Release(late.now) // a deadline that has passed still wants a probe
}

// tc-091 R85: hearing of a cooldown again and again does not move its deadline.
func TestHearingDoesNotExtend(t *testing.T) {
	f := newFleet(t)
	f.two.permit(false).Release(f.two.now)
	f.one.cool("60")
	for range 59 {
		f.pass(time.Second)
		f.push(t)
	}
	f.two.refused(time.Second, false)
	f.pass(time.Second)
	f.push(t)
	f.two.permit(true).Release(f.two.now)
	if len(f.heard) != 1 {
		t.Errorf("%+v", f.heard)
	}
}

// R85: the later of the local and the shared deadline applies, whichever way round.
func TestLaterDeadlineApplies(t *testing.T) {
	f := newFleet(t)
	a, b := f.one.permit(false), f.two.permit(false)
	f.one.finish(a, 429, "100")
	tr := f.two.finish(b, 429, "5") // learns of the longer one with its own report
	if tr.Kind != cooldown.TransitionEntered || tr.Delay != 100*time.Second {
		t.Fatalf("%+v", tr)
	}
	f.two.refused(100*time.Second, false)

	g := newFleet(t)
	a, b = g.one.permit(false), g.two.permit(false)
	g.two.finish(b, 429, "100")
	g.setDown(errors.New("unreachable"))
	g.one.finish(a, 429, "5")
	g.setDown(nil)
	g.pass(5 * time.Second)
	g.one.refused(95*time.Second, false) // asks the store before it probes, and is told
}

// R85 R86: one probe at a time in the whole fleet; the others learn of its outcome, and nobody else
// has to probe after a recovery.
func TestOneProbeInTheFleet(t *testing.T) {
	f := newFleet(t)
	f.two.finish(f.two.permit(false), 200)
	f.one.cool("5")
	f.push(t)
	f.pass(5 * time.Second)
	probe := f.one.permit(true)
	f.two.refused(time.Second, true)
	before := f.calls
	for range 100 {
		f.two.refused(time.Second, true)
	}
	if f.calls != before {
		t.Errorf("the store was asked %d times in the same second", f.calls-before)
	}
	f.pass(time.Second)
	f.two.refused(time.Second, true) // asked again, and still probing
	if f.calls != before+1 {
		t.Errorf("%d calls, want 1", f.calls-before)
	}
	f.one.want(f.one.finish(probe, 200), cooldown.TransitionRecovered, 0, "")
	f.pass(time.Second)
	f.two.permit(false).Release(f.two.now)
	last := f.heard[len(f.heard)-1]
	if last.Kind != cooldown.TransitionRecovered || !last.Shared || last.Probe {
		t.Errorf("%+v", last)
	}
}

// R85: a recovery can be pushed, and then nobody waits for it.
func TestPushedRecovery(t *testing.T) {
	f := newFleet(t)
	f.two.finish(f.two.permit(false), 200)
	f.one.cool("5")
	f.push(t)
	f.pass(5 * time.Second)
	probe := f.one.permit(true)
	f.two.refused(time.Second, true)
	f.one.finish(probe, 200)
	f.push(t)
	f.two.permit(false).Release(f.two.now)
}

// R85: the ceiling is shared: the second failed probe doubles what the first has doubled, whoever
// sends it.
func TestSharedCeiling(t *testing.T) {
	f := newFleet(t)
	f.two.finish(f.two.permit(false), 200)
	f.one.cool("5")
	f.pass(5 * time.Second)
	f.one.finish(f.one.permit(true), 429, "5")
	f.push(t)
	f.pass(5 * time.Second)
	tr := f.two.finish(f.two.permit(true), 429)
	f.two.want(tr, cooldown.TransitionEntered, 4*time.Minute, "fallback")
	if tr.Ceiling != 4*time.Minute {
		t.Fatalf("%+v", tr)
	}
}

// R86: a holder whose lease ran out can neither open nor free anything for the one that came after
// it.
func TestLateHolderInTheFleet(t *testing.T) {
	f := newFleet(t)
	f.two.finish(f.two.permit(false), 200)
	f.one.cool("5")
	f.push(t)
	f.pass(5 * time.Second)
	stale := f.one.permit(true)
	f.pass(cooldown.DefaultProbeLease)
	newer := f.two.permit(true)
	stale.Release(f.one.now)
	f.one.refused(time.Second, true)
	f.two.refused(time.Second, true)
	f.two.finish(newer, 429, "30")
	f.pass(time.Second)
	f.one.refused(29*time.Second, false)
}

// R85: with the store unreachable each process goes on with what it knows: it forgets nothing, and
// sends one probe, not a storm.
func TestStoreUnreachable(t *testing.T) {
	f := newFleet(t)
	f.two.finish(f.two.permit(false), 200)
	f.one.cool("60")
	f.push(t)
	f.setDown(errors.New("unreachable"))
	f.pass(10 * time.Second)
	f.one.refused(50*time.Second, false)
	f.two.refused(50*time.Second, false)
	f.pass(50 * time.Second)
	a, b := f.one.permit(true), f.two.permit(true) // one each
	for range 100 {
		f.one.refused(time.Second, true)
		f.two.refused(time.Second, true)
	}
	f.two.want(f.two.finish(b, 200), cooldown.TransitionRecovered, 0, "")
	f.one.want(f.one.finish(a, 429), cooldown.TransitionEntered, 2*time.Minute, "fallback")
	stranger := cooldown.Authority{Host: "new.example", Port: 443}
	p, refusal := f.one.table.Ask(t.Context(), f.one.now, stranger)
	if refusal != nil {
		t.Fatal(refusal)
	}
	p.Release(f.one.now)

	f.setDown(nil) // the store knows nothing of the failed probe; this process does
	f.pass(time.Minute)
	f.one.refused(time.Minute, false)
	f.pass(time.Minute)
	f.one.want(f.one.finish(f.one.permit(true), 200), cooldown.TransitionRecovered, 0, "")
}

// R85: a store that has lost its memory does not open what this process knows to be cooling.
func TestStoreForgets(t *testing.T) {
	f := newFleet(t)
	f.one.cool("60")
	f.mu.Lock()
	clear(f.keys)
	f.mu.Unlock()
	f.pass(30 * time.Second)
	f.one.table.Observe(f.one.now, f.one.a, cooldown.Shared{})
	f.one.refused(30*time.Second, false)
	f.pass(30 * time.Second)
	f.one.want(f.one.finish(f.one.permit(true), 200), cooldown.TransitionRecovered, 0, "")
}

// R85: a cooldown that the store was not told of is not ended by an older recovery that it tells
// of.
func TestUntoldCooldown(t *testing.T) {
	f := newFleet(t)
	f.two.finish(f.two.permit(false), 200)
	f.one.cool("5")
	f.pass(5 * time.Second)
	f.one.finish(f.one.permit(true), 200) // the store reads open now
	f.setDown(errors.New("unreachable"))
	f.two.cool("30")
	f.setDown(nil)
	f.push(t)
	f.two.refused(30*time.Second, false)
	f.pass(30 * time.Second)
	f.two.permit(true).Release(f.two.now)
}

// R85: news from before what is known change nothing.
func TestStaleNews(t *testing.T) {
	f := newFleet(t)
	f.one.cool("5")
	old, _ := f.Load(t.Context(), f.one.a)
	f.pass(5 * time.Second)
	leased := f.one.permit(true)
	during, _ := f.Load(t.Context(), f.one.a)
	f.one.finish(leased, 200)
	for _, news := range []cooldown.Shared{old, during} {
		f.one.table.Observe(f.one.now, f.one.a, news)
		f.one.permit(false).Release(f.one.now)
	}
	f.one.table.Observe(f.one.now, cooldown.Authority{Host: "never.example", Port: 1}, old)
	if n := len(f.one.table.Snapshot(f.one.now)); n != 1 {
		t.Errorf("%d authorities: news of others make no entry", n)
	}
}

// R9 R12: whatever a store says, no wait is longer than the maximum and no ceiling outside its
// bounds.
func TestAbsurdNews(t *testing.T) {
	for _, news := range []cooldown.Shared{
		{Generation: 9, Cooling: true, Remaining: 1 << 62, Ceiling: 1 << 62, Probing: 1 << 62},
		{Generation: 9, Cooling: true, Remaining: -1 << 62, Ceiling: -1 << 62, Probing: -1 << 62},
	} {
		d := newDesk(t, cooldown.Options{})
		d.permit(false).Release(d.now)
		d.table.Observe(d.now, d.a, news)
		state := d.look()
		if state.Phase == cooldown.PhaseOpen || state.Remaining < 0 || state.Remaining > cooldown.MaxDelay || state.Ceiling < cooldown.Fallback || state.Ceiling > cooldown.MaxDelay {
			t.Errorf("%+v", state)
		}
		d.pass(cooldown.MaxDelay + time.Second)
		d.permit(true).Release(d.now)
	}
}

// R85 R77: two processes with many goroutines each at the deadline: one probe.
func TestFleetRace(t *testing.T) {
	f := newFleet(t)
	f.two.finish(f.two.permit(false), 200)
	f.one.cool("5")
	f.push(t)
	f.pass(5 * time.Second)
	permits := make(chan cooldown.Permit, 200)
	together(200, func(i int) {
		d := f.one
		if i%2 == 0 {
			d = f.two
		}
		if p, refusal := d.table.Ask(t.Context(), d.now, d.a); refusal == nil {
			permits <- p
		} else if !refusal.Probing {
			t.Errorf("%+v", refusal)
		}
	})
	if len(permits) != 1 {
		t.Fatalf("%d probes", len(permits))
	}
	p := <-permits
	if tr := p.Finish(f.one.now, 200, retryafter.Report{}); tr.Kind != cooldown.TransitionRecovered {
		t.Errorf("%+v", tr)
	}
}

// R85: news from during a probe whose good end the store could not be told of do not close the
// authority again.
func TestStaleNewsOfOwnProbe(t *testing.T) {
	f := newFleet(t)
	f.one.cool("5")
	f.pass(5 * time.Second)
	probe := f.one.permit(true)
	news, _ := f.Load(t.Context(), f.one.a)
	f.setDown(errors.New("unreachable"))
	f.one.finish(probe, 200)
	f.one.table.Observe(f.one.now, f.one.a, news)
	f.one.permit(false).Release(f.one.now)
}

// vagueStore grants nothing and says nothing.
type vagueStore struct{ *memoryStore }

func (vagueStore) Acquire(context.Context, cooldown.Authority, cooldown.Lease) (cooldown.Shared, bool, error) {
	return cooldown.Shared{}, false, nil
}

// R65 R85: a store that refuses the probe without a reason gets no traffic sent; the asker is told
// to come back in a second.
func TestVagueStore(t *testing.T) {
	d := newDesk(t, cooldown.Options{Store: vagueStore{newMemoryStore()}})
	d.cool("5")
	d.pass(5 * time.Second)
	d.refused(time.Second, true)
	d.refused(time.Second, true)
}

// R69 R85: a probe that ends without an answer in one process frees the slot for the other.
func TestReleaseInTheFleet(t *testing.T) {
	f := newFleet(t)
	f.two.finish(f.two.permit(false), 200)
	f.one.cool("5")
	f.push(t)
	f.pass(5 * time.Second)
	f.one.permit(true).Release(f.one.now)
	p := f.two.permit(true)
	f.one.refused(time.Second, true)
	f.two.finish(p, 200)
}

// contextStore notes what the contexts of its calls say.
type contextStore struct {
	*memoryStore
	ended map[string]error
	value map[string]any
}

type contextKey struct{}

func (s contextStore) note(ctx context.Context, method string) {
	s.ended[method], s.value[method] = ctx.Err(), ctx.Value(contextKey{})
}

func (s contextStore) Load(ctx context.Context, a cooldown.Authority) (cooldown.Shared, error) {
	s.note(ctx, "Load")
	return s.memoryStore.Load(ctx, a)
}

func (s contextStore) Throttled(ctx context.Context, a cooldown.Authority, r cooldown.ThrottleRecord) (cooldown.Shared, error) {
	s.note(ctx, "Throttled")
	return s.memoryStore.Throttled(ctx, a, r)
}

func (s contextStore) Acquire(ctx context.Context, a cooldown.Authority, l cooldown.Lease) (cooldown.Shared, bool, error) {
	s.note(ctx, "Acquire")
	return s.memoryStore.Acquire(ctx, a, l)
}

func (s contextStore) Settle(ctx context.Context, a cooldown.Authority, token string, recovered bool) (cooldown.Shared, error) {
	s.note(ctx, "Settle")
	return s.memoryStore.Settle(ctx, a, token, recovered)
}

// R85: a store is asked with the context of the request, and told what the request learned even
// when that was cancelled.
func TestStoreContexts(t *testing.T) {
	s := contextStore{newMemoryStore(), map[string]error{}, map[string]any{}}
	d := newDesk(t, cooldown.Options{Store: s})
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "request"))
	ordinary, _ := d.table.Ask(ctx, d.now, d.a)
	late, _ := d.table.Ask(ctx, d.now, d.a)
	cancel()
	d.want(d.finish(late, 429, "60"), cooldown.TransitionEntered, time.Minute, cooldown.HintSeconds)
	ordinary.Release(d.now)
	d.pass(time.Minute)
	s.pass(time.Minute)
	probe, refusal := d.table.Ask(ctx, d.now, d.a)
	if refusal != nil {
		t.Fatal(refusal)
	}
	probe.Release(d.now)
	want := map[string]error{"Load": nil, "Throttled": nil, "Acquire": context.Canceled, "Settle": nil}
	for method, err := range want {
		if got, called := s.ended[method]; !called || !errors.Is(got, err) || s.value[method] != "request" {
			t.Errorf("%s: called %v, context ended with %v and value %v; want %v", method, called, got, s.value[method], err)
		}
	}
}

// R85: a cancelled request that could not learn what other processes know leaves the question to
// the next one, which does not go out into their cooldown.
func TestCancelledRequestLearnsNothing(t *testing.T) {
	f := newFleet(t)
	f.one.cool("60")
	late := newDesk(t, cooldown.Options{Store: f})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.setDown(ctx.Err())
	p, refusal := late.table.Ask(ctx, late.now, late.a)
	if refusal != nil {
		t.Fatal(refusal)
	}
	p.Release(late.now)
	f.setDown(nil)
	late.refused(time.Minute, false)
}
