package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// R97: 16 at once to an authority that nothing is known of; each good answer makes room for one
// more.
func TestSlowStart(t *testing.T) {
	inRegistry(t, upstream.Options{}, func(g *registry) {
		all := g.do(g.t.Context(), paths("p", 100)...)
		g.arrived(16, 16)
		g.answerFirst(200, "")
		g.arrived(18, 17)
		g.answerFirst(404, "")
		g.arrived(20, 18)
		g.answerFirst(500, "") // nothing to grow by
		g.arrived(21, 18)
		for range 13 { // the rest of the first round
			g.answerFirst(200, "")
		}
		g.arrived(47, 31)
		g.script(func(string) *reply { return &reply{status: 200} })
		refusals(t, all(), 200, 404, 500)
		g.arrived(100, 0)
	})
}

// R97, R34: of 500 cold clients of an authority that throttles all, 16 are sent, and the others
// hear at once how long to wait. After the pause one asks; then 16 at once again.
func TestColdClientsOfAThrottlingAuthority(t *testing.T) {
	inRegistry(t, upstream.Options{}, func(g *registry) {
		begin := time.Now()
		all := g.do(g.t.Context(), paths("p", 500)...)
		g.arrived(16, 16)
		g.answerFirst(429, "30")
		g.arrived(16, 15)
		g.script(func(string) *reply { return &reply{429, "30"} })
		got := all()
		if n := refusals(t, got, 429); n != 484 {
			t.Errorf("%d were refused, want 484", n)
		}
		for _, o := range got {
			if !o.at.Equal(begin) {
				t.Fatalf("one heard after %v", o.at.Sub(begin))
			}
		}
		g.arrived(16, 0)

		time.Sleep(30 * time.Second)
		g.script(func(string) *reply { return nil })
		probe := g.do(g.t.Context(), "probe")
		g.arrived(17, 1)
		if n := refusals(t, g.do(g.t.Context(), paths("late", 299)...)()); n != 299 {
			t.Errorf("%d were refused beside the probe, want 299", n)
		}
		g.answerFirst(200, "")
		probe()
		again := g.do(g.t.Context(), paths("again", 300)...)
		g.arrived(17+16, 16)
		g.script(func(string) *reply { return &reply{status: 200} })
		if n := refusals(t, again(), 200); n != 0 {
			t.Errorf("%d were refused after the recovery", n)
		}
	})
}

// R97: answers to what was sent before a cooldown are no reason to send more after it.
func TestOldAnswersMakeNoRoom(t *testing.T) {
	inRegistry(t, upstream.Options{}, func(g *registry) {
		old := g.do(g.t.Context(), paths("old", 16)...)
		g.arrived(16, 16)
		g.answerFirst(429, "5")
		time.Sleep(5 * time.Second)
		probe := g.do(g.t.Context(), "probe")
		g.arrived(17, 16)
		for range 15 {
			g.answerFirst(200, "")
		}
		g.answerFirst(200, "") // the probe
		probe()
		old()
		again := g.do(g.t.Context(), paths("again", 100)...)
		g.arrived(17+16, 16)
		g.script(func(string) *reply { return &reply{status: 200} })
		refusals(t, again(), 200)
	})
}

// R97: requests from before a cooldown that hang take no places from those after it.
func TestHungRequestsTakeNoPlaces(t *testing.T) {
	inRegistry(t, upstream.Options{}, func(g *registry) {
		g.script(func(string) *reply { return &reply{status: 200} })
		g.do(g.t.Context(), paths("warm", 50)...)()
		g.script(func(string) *reply { return nil })
		old := g.do(g.t.Context(), paths("old", 40)...)
		g.arrived(90, 40)
		g.answerFirst(429, "5")
		time.Sleep(5 * time.Second)
		probe := g.do(g.t.Context(), "probe")
		g.arrived(91, 40)
		g.answerLast(200)
		probe()
		again := g.do(g.t.Context(), paths("again", 100)...)
		g.arrived(91+16, 39+16)
		g.script(func(string) *reply { return &reply{status: 200} })
		refusals(t, append(again(), old()...), 200, 429)
	})
}

// R97: a probe waits for no place and for no budget, although requests that were sent before the
// cooldown have them all.
func TestProbeWaitsForNoPlace(t *testing.T) {
	inRegistry(t, upstream.Options{Budgets: budget(0.001, 16)}, func(g *registry) {
		old := g.do(g.t.Context(), paths("old", 16)...)
		g.arrived(16, 16)
		g.answerFirst(429, "5")
		time.Sleep(time.Second)
		if n := refusals(t, g.do(g.t.Context(), "early")()); n != 1 { // R34
			t.Error("sent while it cools")
		}
		time.Sleep(4 * time.Second)
		probe := g.do(g.t.Context(), "probe")
		g.arrived(17, 16)
		g.script(func(string) *reply { return &reply{status: 200} })
		refusals(t, append(probe(), old()...), 200, 429)
	})
}

// R97: in order, clients before background work; whoever has gone is skipped, and takes no place
// along.
func TestOrderOfTheLine(t *testing.T) {
	inRegistry(t, upstream.Options{}, func(g *registry) {
		first := g.do(g.t.Context(), paths("first", 16)...)
		g.arrived(16, 16)
		mirror := upstream.Background(g.t.Context())
		var rest []func() []outcome
		for _, path := range []string{"b1", "b2"} {
			rest = append(rest, g.do(mirror, path))
			synctest.Wait()
		}
		gone, leave := context.WithCancel(g.t.Context())
		left := g.do(gone, "gone")
		synctest.Wait()
		for _, path := range []string{"c1", "c2", "c3"} {
			rest = append(rest, g.do(g.t.Context(), path))
			synctest.Wait()
		}
		leave()
		if f, ok := errors.AsType[*upstream.Failure](left()[0].err); !ok || f.Outcome != "cancelled" {
			t.Errorf("who has gone heard %v", f)
		}
		g.arrived(16, 16)
		for range 16 { // each answer lets one in; 500 makes no room for more
			g.answerFirst(500, "")
		}
		g.script(func(string) *reply { return &reply{status: 200} })
		first()
		for _, f := range rest {
			refusals(t, f(), 200)
		}
		var order []string
		for _, a := range g.all[16:] {
			order = append(order, strings.Trim(a.path, "/"))
		}
		if want := []string{"c1", "c2", "c3", "b1", "b2"}; !slices.Equal(order, want) {
			t.Errorf("sent %q, want %q", order, want)
		}
	})
}

// R97: nobody waits for ever. A registry that answers nothing is asked in rounds of 16 for a
// minute, and not for longer.
func TestTheLineIsNotEndless(t *testing.T) {
	inRegistry(t, upstream.Options{}, func(g *registry) {
		begin := time.Now()
		got := g.do(g.t.Context(), paths("p", 60)...)()
		timeouts, busy := 0, 0
		for _, o := range got {
			if f, ok := errors.AsType[*upstream.Failure](o.err); ok && f.Outcome == "timeout" {
				timeouts++
			} else if b, ok := errors.AsType[*upstream.Busy](o.err); ok && b.Wait == time.Second && o.at.Sub(begin) == time.Minute {
				busy++
			} else {
				t.Errorf("%+v", o)
			}
		}
		// at one minute the third round and the end of patience come together
		if timeouts+busy != 60 || busy < 60-3*16 {
			t.Errorf("%d timeouts, %d sent away", timeouts, busy)
		}
	})
}

// R97: the line is bounded; whoever comes when it is full is told at once.
func TestTheLineIsBounded(t *testing.T) {
	inRegistry(t, upstream.Options{}, func(g *registry) {
		all := g.do(g.t.Context(), paths("p", 16+4096)...)
		g.arrived(16, 16)
		o := g.do(g.t.Context(), "one more")()[0]
		if b, ok := errors.AsType[*upstream.Busy](o.err); !ok || b.Wait != time.Second {
			t.Errorf("one more: %+v", o)
		}
		g.answerFirst(429, "1") // frees them all
		g.script(func(string) *reply { return &reply{status: 200} })
		if n := refusals(t, all(), 200, 429); n != 4096 {
			t.Errorf("%d refused", n)
		}
	})
}

func budget(rate float64, burst int) map[cooldown.Authority]upstream.Budget {
	return map[cooldown.Authority]upstream.Budget{{Host: "registry.example", Port: 80}: {Rate: rate, Burst: burst}}
}

// R90: a budget spaces requests, with clients before mirror work, and whoever would wait too long
// for it is told when to come.
func TestBudget(t *testing.T) {
	inRegistry(t, upstream.Options{Budgets: budget(2, 2)}, func(g *registry) {
		g.script(func(string) *reply { return &reply{status: 200} })
		begin := time.Now()
		mirror := g.do(upstream.Background(g.t.Context()), paths("mirror", 3)...)
		synctest.Wait()
		clients := g.do(g.t.Context(), paths("client", 3)...)
		refusals(t, append(mirror(), clients()...), 200)
		var got []string
		for _, a := range g.all {
			got = append(got, fmt.Sprint(strings.Trim(a.path, "/0123456789"), " ", a.at.Sub(begin)))
		}
		want := []string{"mirror 0s", "mirror 0s", "client 500ms", "client 1s", "client 1.5s", "mirror 2s"}
		if !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}

		crowd := g.do(g.t.Context(), paths("crowd", 200)...)()
		sent, busy := 0, 0
		for _, o := range crowd {
			if b, ok := errors.AsType[*upstream.Busy](o.err); ok && (b.Wait > 57*time.Second && b.Wait <= 62*time.Second) {
				busy++
			} else if o.status == 200 {
				sent++
			}
		}
		if sent < 113 || sent > 116 || sent+busy != 200 {
			t.Errorf("%d sent and %d sent away", sent, busy)
		}
	})
}

// R101: a cooldown that gets longer says so, with its new end; a shorter one says nothing.
func TestExtendedIsLogged(t *testing.T) {
	inRegistry(t, upstream.Options{}, func(g *registry) {
		all := g.do(g.t.Context(), paths("p", 4)...)
		g.arrived(4, 4)
		g.answerFirst(429, "10")
		time.Sleep(time.Millisecond)
		g.answerFirst(429, "10") // a moment longer, which is not worth a line
		g.answerFirst(429, "5")
		g.answerFirst(429, "40")
		all()
		var lines []string
		for line := range strings.Lines(g.log.String()) {
			_, line, _ = strings.Cut(line, "msg=")
			lines = append(lines, strings.TrimSpace(line))
		}
		want := []string{
			`"cooldown entered" upstream_host=registry.example upstream_port=80 status=429 delay_seconds=10 hint=seconds ceiling_seconds=60 kind=metadata`,
			`"cooldown extended" upstream_host=registry.example upstream_port=80 status=429 delay_seconds=40 hint=seconds ceiling_seconds=60 kind=metadata until=2000-01-01T00:00:41Z`,
		}
		if !slices.Equal(lines, want) {
			t.Errorf("logged %q", lines)
		}
	})
}

// slowLog is a log whose writer takes longer than the pause that it writes of.
type slowLog struct{ slog.Handler }

func (h slowLog) Handle(ctx context.Context, r slog.Record) error {
	time.Sleep(2 * time.Second)
	return h.Handler.Handle(ctx, r)
}

// R2, R15: an answer is judged once, at its receipt. That the date of a 503 passes on its way to
// the caller does not make another answer of it.
func TestOneVerdictForEachAnswer(t *testing.T) {
	inRegistry(t, upstream.Options{Logger: slog.New(slowLog{slog.DiscardHandler})}, func(g *registry) {
		date := time.Now().Add(1500 * time.Millisecond).Truncate(time.Second)
		g.script(func(string) *reply { return &reply{503, date.UTC().Format(http.TimeFormat)} })
		o := g.do(g.t.Context(), "p")()[0]
		if !o.throttled || o.wait != time.Second || o.status != 503 {
			t.Errorf("%+v", o)
		}
	})
}
