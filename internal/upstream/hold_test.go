package upstream_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// R98: with a hold the request that meets the 429 itself is sent once more after the pause, once,
// and only if the pause is within it.
func TestHoldOfTheRequestThatMeetsThePause(t *testing.T) {
	for _, c := range []struct {
		name     string
		hold     time.Duration
		answers  []reply
		status   int
		after    time.Duration
		arrivals []time.Duration
	}{
		{"within", 5 * time.Second, []reply{{429, "3"}, {200, ""}}, 200, 3 * time.Second, []time.Duration{0, 3 * time.Second}},
		{"just within", 3 * time.Second, []reply{{429, "3"}, {200, ""}}, 200, 3 * time.Second, []time.Duration{0, 3 * time.Second}},
		{"503 with a hint", 5 * time.Second, []reply{{503, "3"}, {200, ""}}, 200, 3 * time.Second, []time.Duration{0, 3 * time.Second}},
		{"too long", 2 * time.Second, []reply{{429, "3"}}, 429, 0, []time.Duration{0}},
		{"no hint", 5 * time.Second, []reply{{429, ""}}, 429, 0, []time.Duration{0}},
		{"off", 0, []reply{{429, "1"}}, 429, 0, []time.Duration{0}},
		{"twice", 10 * time.Second, []reply{{429, "3"}, {429, "2"}}, 429, 3 * time.Second, []time.Duration{0, 3 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inRegistry(t, upstream.Options{Hold: c.hold}, func(g *registry) {
				var n int
				g.script(func(string) *reply { n++; return &c.answers[min(n, len(c.answers))-1] })
				begin := time.Now()
				o := g.do(g.t.Context(), "p")()[0]
				var at []time.Duration
				for _, a := range g.all {
					at = append(at, a.at.Sub(begin))
				}
				if o.status != c.status || o.at.Sub(begin) != c.after || !slices.Equal(at, c.arrivals) || o.throttled != (c.status == 429) {
					t.Errorf("%+v after %v, sent at %v", o, o.at.Sub(begin), at)
				}
			})
		})
	}
}

// R98, R97, R89: the held come out one by one: a probe, then 16 at once, and without waiting for
// more than the probe's answer.
func TestTheHeldLeaveInOrder(t *testing.T) {
	inRegistry(t, upstream.Options{Hold: 6 * time.Second}, func(g *registry) {
		begin := time.Now()
		all := g.do(g.t.Context(), paths("p", 500)...)
		g.arrived(16, 16)
		g.script(func(string) *reply { return &reply{429, "5"} })
		g.arrived(16, 0)
		g.script(func(string) *reply { return nil })
		time.Sleep(5 * time.Second)
		g.arrived(17, 1) // R34: the probe, and it alone
		time.Sleep(100 * time.Millisecond)
		g.answerFirst(200, "")
		g.arrived(17+16, 16)
		g.script(func(string) *reply { return &reply{status: 200} })
		if n := refusals(t, all(), 200); n != 0 {
			t.Errorf("%d of the held were refused", n)
		}
		if len(g.all) != 516 || time.Since(begin) > 5200*time.Millisecond {
			t.Errorf("%d sent, the last after %v", len(g.all), time.Since(begin))
		}
	})
}

// R98: a held request whose caller goes ends then, and sends nothing any more.
func TestHeldCallerGoes(t *testing.T) {
	inRegistry(t, upstream.Options{Hold: time.Minute}, func(g *registry) {
		g.script(func(string) *reply { return &reply{429, "30"} })
		ctx, leave := context.WithCancel(g.t.Context())
		got := g.do(ctx, "met", "refused")
		synctest.Wait()
		leave()
		for _, o := range got() {
			_, cancelled := errors.AsType[*upstream.Failure](o.err)
			if _, refused := errors.AsType[*cooldown.Refusal](o.err); !cancelled && !refused {
				t.Errorf("%+v", o)
			}
		}
		time.Sleep(time.Minute)
		g.arrived(len(g.all), 0)
		if len(g.all) > 2 {
			t.Errorf("%d sent", len(g.all))
		}
	})
}
