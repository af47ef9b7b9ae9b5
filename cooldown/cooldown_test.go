package cooldown_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// R1 R2 R3 R4: what starts a cooldown, for how long, and what does not. R10 R11 R12 R13 R14 R16:
// which hints are usable. C69 C71 C72 C73 C81 tc-010 tc-057 tc-059 tc-030.
func TestTriggers(t *testing.T) {
	date := func(now time.Time, in time.Duration) string { return retryafter.FormatDate(now.Add(in)) }
	now := time.Now().Truncate(time.Second)
	for _, test := range []struct {
		status int
		values []string
		delay  time.Duration // 0 is no cooldown
		hint   string
	}{
		{429, nil, time.Minute, "fallback"},
		{429, []string{"5"}, 5 * time.Second, "seconds"}, // no minimum, no jitter
		{429, []string{"1"}, time.Second, "seconds"},
		{429, []string{"60"}, time.Minute, "seconds"},
		{429, []string{"600"}, 10 * time.Minute, "seconds"},
		{429, []string{"601"}, 10 * time.Minute, "seconds"},
		{429, []string{"9223372037"}, 10 * time.Minute, "seconds"},
		{429, []string{"18446744074"}, 10 * time.Minute, "seconds"},
		{429, []string{"99999999999999999999999"}, 10 * time.Minute, "seconds"},
		{429, []string{date(now, 90*time.Second)}, 90 * time.Second, "date"},
		{429, []string{date(now, time.Hour)}, 10 * time.Minute, "date"},
		{429, []string{"Fri, 31 Dec 9999 23:59:59 GMT"}, 10 * time.Minute, "date"},
		{429, []string{"0"}, time.Minute, "fallback"},
		{429, []string{date(now, 0)}, time.Minute, "fallback"},
		{429, []string{"Wed, 21 Oct 2015 07:28:00 GMT"}, time.Minute, "fallback"},
		{429, []string{"-5"}, time.Minute, "fallback"},
		{429, []string{"+5"}, time.Minute, "fallback"},
		{429, []string{"1.5"}, time.Minute, "fallback"},
		{429, []string{"5s"}, time.Minute, "fallback"},
		{429, []string{""}, time.Minute, "fallback"},
		{429, []string{"5, 10"}, time.Minute, "fallback"},
		{429, []string{"5", "5"}, time.Minute, "fallback"},
		{429, []string{"\u0665"}, time.Minute, "fallback"},
		{429, []string{" 5\t"}, 5 * time.Second, "seconds"},
		{503, []string{"5"}, 5 * time.Second, "seconds"},
		{503, []string{date(now, time.Second)}, time.Second, "date"},
		{503, []string{"99999999999999999999999"}, 10 * time.Minute, "seconds"},
		{503, nil, 0, ""},
		{503, []string{"0"}, 0, ""},
		{503, []string{"-5"}, 0, ""},
		{503, []string{"soon"}, 0, ""},
		{503, []string{"5", "5"}, 0, ""},
		{503, []string{date(now, -time.Second)}, 0, ""},
	} {
		t.Run(fmt.Sprint(test.status, test.values), func(t *testing.T) {
			d := newDesk(t, cooldown.Options{})
			d.now = now
			header := retryafter.Parse(test.values, now)
			tr := d.permit(false).Finish(now, test.status, header)
			if throttles := cooldown.Throttles(test.status, header); throttles != (test.delay > 0) {
				t.Errorf("Throttles is %v", throttles)
			}
			if test.delay == 0 {
				if tr != (cooldown.Transition{}) {
					t.Fatalf("%+v, want nothing", tr)
				}
				d.finish(d.permit(false), 200)
				return
			}
			want := cooldown.Transition{Kind: cooldown.TransitionEntered, Authority: d.a, Status: test.status, Delay: test.delay, Hint: test.hint, Ceiling: cooldown.Fallback}
			if tr != want {
				t.Fatalf("%+v, want %+v", tr, want)
			}
			d.pass(test.delay - 1)
			d.refused(1, false)
			d.pass(1)
			d.permit(true).Release(d.now)
		})
	}
}

// R4 R6 C36: no other status starts a cooldown, whatever it says about waiting; what happens to the
// body later is not asked about at all.
func TestOtherStatusesStartNothing(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	for _, status := range []int{0, 100, 200, 204, 206, 301, 302, 304, 307, 400, 401, 403, 404, 408, 410, 425, 428, 430, 500, 501, 502, 504, 520, 529, 599} {
		if tr := d.finish(d.permit(false), status, "30"); tr != (cooldown.Transition{}) {
			t.Errorf("%d: %+v", status, tr)
		}
		if state := d.look(); state.Phase != cooldown.PhaseOpen {
			t.Errorf("%d: %+v", status, state)
		}
	}
}

// R5: a failure without a response starts nothing.
func TestFailureStartsNothing(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	for range 50 {
		d.permit(false).Release(d.now)
	}
	d.permit(false).Release(d.now)
}

// R15 tc-025: a date is measured against the wall clock at receipt, to the fraction; what remains
// of a second counts.
func TestDateHint(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	received := time.Date(2026, time.December, 1, 12, 0, 4, 700_000_000, time.UTC)
	tr := d.permit(false).Finish(d.now, 429, retryafter.Parse([]string{"Tue, 01 Dec 2026 12:00:05 GMT"}, received))
	d.want(tr, cooldown.TransitionEntered, 300*time.Millisecond, "date")
	d.refused(300*time.Millisecond, false)
	d.pass(300*time.Millisecond - 1)
	d.refused(1, false)
	d.pass(1)
	d.permit(true).Release(d.now)
}

// stepWall moves the wall clock of a reading and leaves its monotonic clock alone, as a step of the
// system's clock does.
func stepWall(t *testing.T, at time.Time, seconds int64) time.Time {
	t.Helper()
	stepped := at
	// the first word: a flag, 33 bits of seconds, 30 bits of nanoseconds
	wall := (*uint64)(unsafe.Pointer(&stepped))
	*wall = uint64(int64(*wall) + seconds<<30)
	if stepped.Sub(at) != 0 || stepped.Unix()-at.Unix() != seconds {
		t.Skip("this Go release lays out time.Time differently")
	}
	return stepped
}

// R15 tc-043: steps of the wall clock neither extend nor cut a cooldown, and a timer that fires
// early gets nothing.
func TestClockSteps(t *testing.T) {
	for _, step := range []int64{-86400, -3600, 3600, 86400} {
		d := newDesk(t, cooldown.Options{})
		d.cool("60")
		d.now = stepWall(t, d.now, step)
		d.refused(time.Minute, false)
		d.pass(time.Minute - 11*time.Millisecond)
		d.refused(11*time.Millisecond, false)
		d.pass(11 * time.Millisecond)
		d.permit(true).Release(d.now)
	}
}

// R17 R18 R19 R23 C81 tc-041 tc-042 tc-059: the fallback is drawn between 60 s and a ceiling that
// doubles with each failed probe, to 600 s.
func TestFallbackLadder(t *testing.T) {
	for name, roll := range map[string]func(int64) int64{
		"lowest": func(int64) int64 { return 0 }, "highest": func(n int64) int64 { return n - 1 },
		// a broken source
		"beyond": func(n int64) int64 { return n }, "negative": func(int64) int64 { return -1 },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, cooldown.Options{})
			d.roll = roll
			p := d.permit(false)
			for i, ceiling := range []time.Duration{60, 120, 240, 480, 600, 600, 600} {
				ceiling *= time.Second
				tr := d.finish(p, 429)
				want := ceiling
				if name == "lowest" || name == "negative" {
					want = cooldown.Fallback
				}
				d.want(tr, cooldown.TransitionEntered, want, "fallback")
				if tr.Ceiling != ceiling || tr.Probe != (i > 0) || d.look().Ceiling != ceiling {
					t.Fatalf("%d: %+v, want a ceiling of %v", i, tr, ceiling)
				}
				d.pass(tr.Delay)
				p = d.permit(true)
			}
			p.Release(d.now)
			if len(d.draws) != 6 || d.draws[0] != int64(time.Minute)+1 || d.draws[5] != int64(9*time.Minute)+1 {
				t.Errorf("drawn from %v; the first fallback is exactly 60 s and draws nothing", d.draws)
			}
		})
	}
}

// R20: only a throttling answer to the probe doubles the ceiling.
func TestCancelledProbeDoublesNothing(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	d.cool("5")
	d.pass(5 * time.Second)
	for range 5 {
		d.permit(true).Release(d.now)
		if state := d.look(); state.Ceiling != cooldown.Fallback || state.Phase != cooldown.PhaseDue {
			t.Fatalf("%+v", state)
		}
	}
	tr := d.finish(d.permit(true), 429)
	d.want(tr, cooldown.TransitionEntered, 2*time.Minute, "fallback")
}

// R21 R79: a failed probe's hint sets the delay, and the ceiling doubles all the same.
func TestFailedProbeWithHint(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	d.cool("5")
	d.pass(5 * time.Second)
	tr := d.finish(d.permit(true), 503, "7")
	d.want(tr, cooldown.TransitionEntered, 7*time.Second, "seconds")
	if tr.Ceiling != 2*time.Minute || !tr.Probe || tr.Status != 503 {
		t.Fatalf("%+v", tr)
	}
	d.pass(7 * time.Second)
	tr = d.finish(d.permit(true), 429)
	d.want(tr, cooldown.TransitionEntered, 4*time.Minute, "fallback")
}

// R22 R66 C03 tc-066: any answer that does not throttle opens the authority and resets the ceiling.
func TestRecovery(t *testing.T) {
	for _, test := range []struct {
		status int
		values []string
	}{{200, nil}, {304, nil}, {302, nil}, {401, nil}, {404, nil}, {500, []string{"60"}}, {502, nil}, {503, nil}, {503, []string{"0"}}, {503, []string{"soon"}}} {
		d := newDesk(t, cooldown.Options{})
		d.cool("5")
		d.pass(5 * time.Second)
		d.finish(d.permit(true), 429, "5") // the ceiling is 120 s now
		d.pass(5 * time.Second)
		tr := d.finish(d.permit(true), test.status, test.values...)
		want := cooldown.Transition{Kind: cooldown.TransitionRecovered, Authority: d.a, Status: test.status, Ceiling: cooldown.Fallback, Probe: true}
		if tr != want {
			t.Fatalf("%d: %+v, want %+v", test.status, tr, want)
		}
		a, b := d.permit(false), d.permit(false)
		d.want(d.finish(a, 429), cooldown.TransitionEntered, time.Minute, "fallback")
		d.finish(b, 200)
	}
}

// R24 R30 R31 tc-049: authorities cool separately, and one authority cools for all.
func TestAuthoritiesAreSeparate(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	d.cool("300")
	other := cooldown.Authority{Host: d.a.Host, Port: 8443}
	p, refusal := d.table.Ask(t.Context(), d.now, other)
	if refusal != nil {
		t.Fatal(refusal)
	}
	d.finish(p, 200)
	d.refused(5*time.Minute, false)
}

// R34 R36: while cooling nobody gets a permit, and the wait shrinks with the clock; R35 R76: it is
// never advertised as zero.
func TestWaitShrinks(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	d.cool("60")
	d.pass(10 * time.Second)
	for range 3 {
		d.refused(50*time.Second, false)
	}
	for _, test := range []struct {
		left time.Duration
		want int64
	}{{50 * time.Second, 50}, {49_000_000_001, 50}, {49 * time.Second, 49}, {1500 * time.Millisecond, 2}, {time.Second, 1}, {1, 1}} {
		_, refusal := d.table.Ask(t.Context(), d.now.Add(50*time.Second-test.left), d.a)
		if refusal == nil || refusal.RetryAfterSeconds() != test.want {
			t.Errorf("with %v left: %v, want %d", test.left, refusal, test.want)
		}
	}
	d.pass(50 * time.Second)
	d.permit(true).Release(d.now) // R76: exactly at the deadline
}

// R94 tc-072: reading the state changes nothing; after the deadline it reads cooling with nothing
// remaining, and open reads a ceiling of 60 s.
func TestReading(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	if got := d.table.Snapshot(d.now); len(got) != 0 {
		t.Fatalf("%+v: nothing was asked yet", got)
	}
	open := cooldown.State{Authority: d.a, Phase: cooldown.PhaseOpen, Ceiling: cooldown.Fallback}
	if got := d.look(); got != open {
		t.Fatalf("%+v, want %+v", got, open)
	}
	if got := d.table.Snapshot(d.now); len(got) != 0 {
		t.Fatalf("%+v: looking is not asking", got)
	}
	d.cool("5")
	d.refused(5*time.Second, false)
	d.refused(5*time.Second, false)
	cooling := cooldown.State{Authority: d.a, Phase: cooldown.PhaseCooling, Remaining: 5 * time.Second, Ceiling: cooldown.Fallback, Refused: 2}
	if got := d.look(); got != cooling {
		t.Fatalf("%+v, want %+v", got, cooling)
	}
	d.pass(time.Hour)
	cooling.Remaining, cooling.Phase = 0, cooldown.PhaseDue // R94 R102
	for range 10 {
		if got := d.table.Snapshot(d.now); len(got) != 1 || got[0] != cooling {
			t.Fatalf("%+v, want %+v", got, cooling)
		}
	}
	p := d.permit(true) // looking took nothing away
	d.refused(time.Second, true)
	if got := d.look(); got.Phase != cooldown.PhaseProbing || got.Refused != 3 {
		t.Fatalf("%+v", got)
	}
	d.finish(p, 200)
	open.Refused = 3
	if got := d.table.Snapshot(d.now); len(got) != 1 || got[0] != open {
		t.Fatalf("%+v, want %+v", got, open)
	}
}

func TestSnapshotOrder(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	for _, s := range []string{"b.example:443", "a.example:8443", "[::1]:443", "a.example:443"} {
		p, _ := d.table.Ask(t.Context(), d.now, mustParse(t, s))
		p.Release(d.now)
	}
	var order []string
	for _, s := range d.table.Snapshot(d.now) {
		order = append(order, s.Authority.String())
	}
	if got, want := fmt.Sprint(order), "[[::1]:443 a.example:443 a.example:8443 b.example:443]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// R12 R36: an asker whose clock reading is older than the answer's is told no more than the
// maximum.
func TestOlderReading(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	d.cool("600")
	_, refusal := d.table.Ask(t.Context(), d.now.Add(-time.Minute), d.a)
	if refusal == nil || refusal.Wait != cooldown.MaxDelay || refusal.RetryAfterSeconds() != 600 {
		t.Fatalf("%+v", refusal)
	}
}

// A refusal is an error that says what, why and until when, and it is found again inside others.
func TestRefusal(t *testing.T) {
	a := cooldown.Authority{Host: "registry.example", Port: 443}
	for _, test := range []struct {
		refusal cooldown.Refusal
		want    string
	}{
		{cooldown.Refusal{Authority: a, Wait: 1500 * time.Millisecond}, "registry.example:443 is throttled; try again in 2 s"},
		{cooldown.Refusal{Authority: a, Wait: time.Second, Probing: true}, "registry.example:443 is throttled: a recovery probe is in progress; try again in 1 s"},
		{cooldown.Refusal{Authority: a, Wait: 0, TableFull: true}, "registry.example:443 is refused: too many other authorities are throttled; try again in 1 s"},
	} {
		if got := test.refusal.Error(); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
		wrapped := fmt.Errorf("get: %w", errors.Join(errors.New("other"), &test.refusal))
		if got, ok := cooldown.AsRefusal(wrapped); !ok || got != &test.refusal {
			t.Errorf("%v not found", test.want)
		}
		if cooldown.IsProbeWait(wrapped) != test.refusal.Probing {
			t.Errorf("%v: IsProbeWait", test.want)
		}
	}
	if _, ok := cooldown.AsRefusal(errors.New("other")); ok || cooldown.IsProbeWait(nil) {
		t.Error("found a refusal where there is none")
	}
	if got := (&cooldown.Refusal{Wait: math.MaxInt64}).RetryAfterSeconds(); got != 9223372037 {
		t.Errorf("%d", got)
	}
}

func TestNames(t *testing.T) {
	got := fmt.Sprint(cooldown.PhaseOpen, cooldown.PhaseCooling, cooldown.PhaseProbing, cooldown.TransitionNone, cooldown.TransitionEntered, cooldown.TransitionExtended, cooldown.TransitionRecovered, cooldown.MisuseLost, cooldown.MisuseTwice)
	if want := "open cooling probing none entered extended recovered lost settled twice"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// R18 R23: without a given source the system's is used, and its draws keep to the same bounds and
// differ.
func TestDefaultSource(t *testing.T) {
	table, a, now := cooldown.New(cooldown.Options{}), mustParse(t, "a.example"), time.Now()
	seen := map[time.Duration]bool{}
	p := ask(t, table, now, a)
	for range 40 {
		tr := p.Finish(now, 429, retryafter.Report{})
		if tr.Delay < cooldown.Fallback || tr.Delay > tr.Ceiling {
			t.Fatalf("%+v", tr)
		}
		seen[tr.Delay] = true
		now = now.Add(tr.Delay)
		p = ask(t, table, now, a)
	}
	if len(seen) < 35 {
		t.Errorf("40 draws gave %d delays", len(seen))
	}
}

// R32 R84: without a store a table knows nothing of another one's cooldowns, and a new one, as
// after a restart, nothing of the past.
func TestTablesAreSeparate(t *testing.T) {
	d := newDesk(t, cooldown.Options{})
	d.cool("300")
	p := ask(t, cooldown.New(cooldown.Options{}), d.now, d.a)
	if p.Probe() {
		t.Error("a new table probes")
	}
	d.refused(5*time.Minute, false)
}
