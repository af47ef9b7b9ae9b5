package upstream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/upstream"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// R89: all waits of a request together keep within the hold: one that waited for three seconds of
// five, and is refused for three more, waits no longer.
func TestAllWaitsKeepWithinTheHold(t *testing.T) {
	inRegistry(t, upstream.Options{Hold: 5 * time.Second}, func(g *registry) {
		begin := time.Now()
		g.script(func(string) *reply { return &reply{429, "3"} })
		meets := g.do(g.t.Context(), "meets")
		synctest.Wait()
		waits := g.do(g.t.Context(), "waits")
		got := append(meets(), waits()...)
		for _, o := range got {
			if o.at.Sub(begin) != 3*time.Second {
				t.Errorf("%+v after %v", o, o.at.Sub(begin))
			}
		}
		if n := refusals(t, got, 429); n != 1 {
			t.Errorf("%d were refused", n)
		}
		g.arrived(2, 0)
	})
}

// R89: who is held by a probe waits for its answer, also when the hold is shorter than the wait
// that a refusal names, and not for longer than the hold.
func TestHeldByAProbe(t *testing.T) {
	for name, answered := range map[string]bool{"answered": true, "not answered": false} {
		t.Run(name, func(t *testing.T) {
			inRegistry(t, upstream.Options{Hold: 300 * time.Millisecond}, func(g *registry) {
				first := g.do(g.t.Context(), "first")
				g.answerFirst(429, "5")
				first()
				time.Sleep(5 * time.Second)
				probe := g.do(g.t.Context(), "probe")
				g.arrived(2, 1)
				begin := time.Now()
				held := g.do(g.t.Context(), "held")
				synctest.Wait()
				time.Sleep(200 * time.Millisecond)
				if answered {
					g.answerFirst(200, "")
					g.answerFirst(200, "")
				}
				o := held()[0]
				want := 300 * time.Millisecond
				if answered {
					want = 200 * time.Millisecond
				}
				if refusals(t, []outcome{o}, 200) == 1 == answered || o.at.Sub(begin) != want {
					t.Errorf("%+v after %v", o, o.at.Sub(begin))
				}
				g.script(func(string) *reply { return &reply{status: 200} })
				probe()
			})
		})
	}
}

// R89 R97: whoever stood in line when the pause began, and is held then, asks again when it is
// over, and not before.
func TestHeldFromTheLineAskOnce(t *testing.T) {
	inRegistry(t, upstream.Options{Hold: time.Minute}, func(g *registry) {
		all := g.do(g.t.Context(), paths("p", 36)...)
		g.arrived(16, 16)
		g.answerFirst(429, "30")
		if n := g.table.Snapshot(time.Now())[0].Refused; n != 20 {
			t.Errorf("20 waited in line and were refused %d times", n)
		}
		g.answerFirst(429, "40") // which is no answer to a probe
		if n := g.table.Snapshot(time.Now())[0].Refused; n != 20 {
			t.Errorf("20 are held and were refused %d times", n)
		}
		g.script(func(string) *reply { return &reply{status: 200} })
		refusals(t, all(), 200)
	})
}

// R89 R101: an answer to an older request that makes the pause longer concerns those whom the probe
// holds, too: they ask again at once.
func TestHeldByAProbeHearOfALongerPause(t *testing.T) {
	inRegistry(t, upstream.Options{Hold: time.Minute}, func(g *registry) {
		old := g.do(g.t.Context(), "old1", "old2")
		g.answerFirst(429, "5")
		time.Sleep(5 * time.Second)
		g.arrived(3, 2) // the probe is the first one's repetition
		held := g.do(g.t.Context(), "held")
		synctest.Wait()
		g.answerFirst(429, "40") // to the second
		if n := g.table.Snapshot(time.Now())[0].Refused; n != 2 {
			t.Errorf("refused %d times, want 2", n)
		}
		g.script(func(string) *reply { return &reply{status: 200} })
		refusals(t, append(held(), old()...), 200)
	})
}

// R98: the answer that a request does not hand on gives its connection back, for the request that
// is sent once more. The one that is handed on says what its field said.
func TestTheAnswerThatIsNotHandedOn(t *testing.T) {
	answers := 0
	onBench(t, upstream.Options{Hold: 5 * time.Second}, func(w http.ResponseWriter, _ *http.Request) {
		answers++
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "slow down")
	}, func(b *bench) {
		resp, err := b.public.Do(b.t.Context(), b.request(upstream.Metadata))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if seconds, ok := resp.RetryAfter.DelaySeconds(); !ok || seconds != 3 || answers != 2 {
			t.Errorf("%+v after %d answers", resp.RetryAfter, answers)
		}
		if n := b.network.Dials(benchHost + ":80"); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// R98: who goes while his request is held for the answer that it met is told as one who has gone.
func TestGoneAfterTheAnswer(t *testing.T) {
	inRegistry(t, upstream.Options{Hold: time.Minute}, func(g *registry) {
		g.script(func(string) *reply { return &reply{429, "30"} })
		ctx, leave := context.WithCancelCause(g.t.Context())
		cause := errors.New("gone")
		got := g.do(ctx, "met")
		synctest.Wait()
		leave(cause)
		o := got()[0]
		if f, ok := errors.AsType[*upstream.Failure](o.err); !ok || f.Outcome != "cancelled" || !errors.Is(f, cause) {
			t.Errorf("%v", o.err)
		}
		if n := g.table.Unsettled(); n != 0 {
			t.Errorf("%d permits are kept", n)
		}
	})
}

// R97: those whose turn comes after their authority has closed without a word, as by another
// process, are refused one after the other, and take no place along.
func TestTurnOfAClosedAuthority(t *testing.T) {
	inRegistry(t, upstream.Options{}, func(g *registry) {
		other, _ := g.table.Ask(t.Context(), time.Now(), g.public.Authority())
		all := g.do(g.t.Context(), paths("p", 16)...)
		g.arrived(16, 16)
		wait := g.do(g.t.Context(), paths("waits", 5)...)
		synctest.Wait()
		other.Finish(time.Now(), http.StatusTooManyRequests, retryafter.Parse([]string{"30"}, time.Now()))
		begin := time.Now()
		g.answerFirst(200, "")
		got := wait()
		if n := refusals(t, got); n != 5 || !got[4].at.Equal(begin) {
			t.Errorf("%d of 5 were refused, the last after %v", n, got[4].at.Sub(begin))
		}
		g.script(func(string) *reply { return &reply{status: 200} })
		all()
		time.Sleep(30 * time.Second)
		g.do(g.t.Context(), "probe")()
		g.script(func(string) *reply { return nil })
		all = g.do(g.t.Context(), paths("again", 20)...)
		g.arrived(16+1+16, 16)
		g.script(func(string) *reply { return &reply{status: 200} })
		all()
	})
}
