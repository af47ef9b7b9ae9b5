package cooldown_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
	"pgregory.net/rapid"
)

const testLease = 30 * time.Second

// flight is a request under way.
type flight struct {
	permit cooldown.Permit
	sent   time.Time
}

// model is what an outsider knows of one authority: what was sent, what was answered, and the
// promises that follow from it. It does not repeat the implementation: it knows no state but
// "open", and no deadline but the earliest that the answers allow.
type model struct {
	table    *cooldown.Table
	a        cooldown.Authority
	now      time.Time
	flights  []flight
	open     bool
	earliest time.Time // nothing may be sent before it while not open
	ceiling  time.Duration
	holder   *flight // the latest probe, until it is settled
}

func newModel(t *rapid.T) *model {
	m := &model{a: cooldown.Authority{Host: "registry.example", Port: 443}, now: time.Now(), open: true, ceiling: cooldown.Fallback}
	m.table = cooldown.New(cooldown.Options{
		ProbeLease: testLease,
		Rand:       func(n int64) int64 { return rapid.Int64Range(0, n-1).Draw(t, "roll") },
		Strict:     func(misuse cooldown.Misuse) { t.Fatalf("%+v", misuse) },
	})
	return m
}

// probing reports whether a probe is under way whose lease lives.
func (m *model) probing() bool {
	return m.holder != nil && m.now.Before(m.holder.sent.Add(testLease))
}

func (m *model) pass(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.OneOf(
		rapid.Int64Range(0, int64(2*time.Second)), rapid.Int64Range(0, int64(11*time.Minute)), rapid.Just(int64(testLease)), rapid.Just(int64(time.Second)),
	).Draw(t, "by")))
}

// passToDeadline goes to the very deadline, or a nanosecond before it.
func (m *model) passToDeadline(t *rapid.T) {
	if left := m.table.Look(m.now, m.a).Remaining; left > 0 {
		m.now = m.now.Add(left - time.Duration(rapid.IntRange(0, 1).Draw(t, "before")))
	}
}

func (m *model) ask(t *rapid.T) {
	permit, refusal := m.table.Ask(t.Context(), m.now, m.a)
	switch {
	case refusal != nil:
		m.checkRefusal(t, refusal)
	case m.open && permit.Probe():
		t.Fatal("a probe of an open authority")
	case m.open:
		m.flights = append(m.flights, flight{permit, m.now})
	case !permit.Probe():
		t.Fatal("ordinary traffic during a cooldown")
	case m.probing():
		t.Fatal("two probes at once")
	case m.now.Before(m.earliest):
		t.Fatalf("sent %v early", m.earliest.Sub(m.now))
	default:
		f := flight{permit, m.now}
		m.flights, m.holder = append(m.flights, f), &f
	}
}

func (m *model) checkRefusal(t *rapid.T, r *cooldown.Refusal) {
	switch {
	case m.open:
		t.Fatalf("an open authority refuses: %v", r)
	case r.Probing != m.probing():
		t.Fatalf("%v, but probing is %v", r, m.probing())
	case r.Probing && r.Wait != cooldown.ProbeWait:
		t.Fatalf("%v to wait for a probe", r.Wait)
	case !r.Probing && m.now.Add(r.Wait).Before(m.earliest) && m.earliest.Sub(m.now) <= cooldown.MaxDelay:
		t.Fatalf("told to wait %v, but may not be sent to for %v", r.Wait, m.earliest.Sub(m.now))
	case r.Wait <= 0 || r.Wait > cooldown.MaxDelay || r.RetryAfterSeconds() < 1 || r.RetryAfterSeconds() > 600:
		t.Fatalf("a wait of %v", r.Wait)
	}
}

// take removes one flight.
func (m *model) take(t *rapid.T) (f flight, holder bool) {
	if len(m.flights) == 0 {
		t.Skip("nothing under way")
	}
	i := rapid.IntRange(0, len(m.flights)-1).Draw(t, "flight")
	f = m.flights[i]
	m.flights = slices.Delete(m.flights, i, i+1)
	holder = m.holder != nil && m.holder.permit == f.permit
	if holder {
		m.holder = nil
	}
	return f, holder
}

func (m *model) release(t *rapid.T) {
	f, _ := m.take(t)
	before := m.table.Look(m.now, m.a)
	f.permit.Release(m.now)
	if after := m.table.Look(m.now, m.a); after.Remaining != before.Remaining || after.Ceiling != before.Ceiling {
		t.Fatalf("a release turned %+v into %+v", before, after)
	}
}

func (m *model) succeed(t *rapid.T) {
	f, holder := m.take(t)
	before := m.table.Look(m.now, m.a)
	status := rapid.SampledFrom([]int{200, 304, 404, 500, 502, 503}).Draw(t, "status")
	tr := f.permit.Finish(m.now, status, retryafter.Report{})
	switch {
	case holder && tr.Kind != cooldown.TransitionRecovered:
		t.Fatalf("the probe was answered, and nothing came of it: %+v", tr)
	case holder:
		m.open, m.ceiling = true, cooldown.Fallback
	case tr != (cooldown.Transition{}) || m.table.Look(m.now, m.a) != before:
		t.Fatalf("a late success changed something: %+v", tr)
	}
}

func (m *model) throttle(t *rapid.T) {
	f, holder := m.take(t)
	before := m.table.Look(m.now, m.a)
	var values []string
	least := cooldown.Fallback
	if seconds := rapid.OneOf(rapid.Int64Range(-1, 5), rapid.Int64Range(0, 700)).Draw(t, "hint"); seconds >= 0 {
		values = []string{strconv.FormatInt(seconds, 10)}
		if seconds > 0 {
			least = min(time.Duration(seconds)*time.Second, cooldown.MaxDelay)
		}
	}
	tr := f.permit.Finish(m.now, 429, retryafter.Parse(values, m.now))
	m.checkThrottled(t, tr, before, holder)
	if until := m.now.Add(least); m.open || until.After(m.earliest) {
		m.earliest = until
	}
	m.open = false
	m.ceiling = m.table.Look(m.now, m.a).Ceiling
}

func (m *model) checkThrottled(t *rapid.T, tr cooldown.Transition, before cooldown.State, holder bool) {
	after := m.table.Look(m.now, m.a)
	switch {
	case (m.open || holder) != (tr.Kind == cooldown.TransitionEntered):
		t.Fatalf("open %v, probe %v: %+v", m.open, holder, tr)
	case tr.Kind == cooldown.TransitionEntered && tr.Probe != holder:
		t.Fatalf("probe %v: %+v", holder, tr)
	case after.Remaining < before.Remaining:
		t.Fatalf("the wait shrank from %v to %v", before.Remaining, after.Remaining)
	case holder && after.Ceiling != min(2*m.ceiling, cooldown.MaxDelay):
		t.Fatalf("a failed probe turned a ceiling of %v into %v", m.ceiling, after.Ceiling)
	case !holder && after.Ceiling != m.ceiling:
		t.Fatalf("a late answer turned a ceiling of %v into %v", m.ceiling, after.Ceiling)
	case tr.Kind != cooldown.TransitionNone && (tr.Delay <= 0 || tr.Delay != after.Remaining):
		t.Fatalf("%+v, but %v remain", tr, after.Remaining)
	case tr.Hint == cooldown.HintFallback && tr.Kind == cooldown.TransitionEntered && (tr.Delay < cooldown.Fallback || tr.Delay > max(tr.Ceiling, before.Remaining)):
		t.Fatalf("a fallback of %v under a ceiling of %v", tr.Delay, tr.Ceiling)
	}
}

// check holds after every step.
func (m *model) check(t *rapid.T) {
	state := m.table.Look(m.now, m.a)
	switch {
	case m.open != (state.Phase == cooldown.PhaseOpen):
		t.Fatalf("open %v: %+v", m.open, state)
	case m.probing() != (state.Phase == cooldown.PhaseProbing):
		t.Fatalf("probing %v: %+v", m.probing(), state)
	case state.Ceiling < cooldown.Fallback || state.Ceiling > cooldown.MaxDelay || state.Remaining < 0 || state.Remaining > cooldown.MaxDelay:
		t.Fatalf("%+v", state)
	case !m.open && state.Remaining < m.earliest.Sub(m.now):
		t.Fatalf("%+v, but nothing may be sent for %v", state, m.earliest.Sub(m.now))
	}
}

// R23 R63 R73 R74 R77 R86: over random interleavings of asking, answers, releases and time: never
// two probes, never an early send, the ceiling within 60 and 600 s, late results neither shorten
// nor end anything, and every way out frees the slot.
func TestInterleavings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"":           m.check,
			"ask":        m.ask,
			"ask again":  m.ask,
			"pass":       m.pass,
			"deadline":   m.passToDeadline,
			"release":    m.release,
			"succeed":    m.succeed,
			"throttle":   m.throttle,
			"throttle 2": m.throttle,
		})
		for len(m.flights) > 0 { // whatever is still under way ends without an answer
			m.flights[0].permit.Release(m.now)
			m.flights = m.flights[1:]
		}
		m.holder = nil
		m.now = m.now.Add(cooldown.MaxDelay)
		permit, refusal := m.table.Ask(t.Context(), m.now, m.a)
		if refusal != nil || permit.Probe() == m.open {
			t.Fatalf("in the end: %v %v", permit.Probe(), refusal)
		}
		permit.Finish(m.now, 200, retryafter.Report{})
		if state := m.table.Look(m.now, m.a); state.Phase != cooldown.PhaseOpen || m.table.Unsettled() != 0 {
			t.Fatalf("in the end: %+v, %d unsettled", state, m.table.Unsettled())
		}
	})
}
