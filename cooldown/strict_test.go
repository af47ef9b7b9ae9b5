package cooldown_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// Strict follows the permits of an authority that is known and open as well: the ordinary case, and
// the one that a quick look at the table would leave out.
func TestStrictFollowsOpenAuthorities(t *testing.T) {
	var misuses []cooldown.Misuse
	table := cooldown.New(cooldown.Options{Strict: func(m cooldown.Misuse) { misuses = append(misuses, m) }})
	now, a := time.Now(), cooldown.Authority{Host: "a.example", Port: 443}
	ask(t, table, now, a).Finish(now, http.StatusOK, retryafter.Report{}) // now it is known
	for range 3 {
		p := ask(t, table, now, a)
		if n := table.Unsettled(); n != 1 {
			t.Fatalf("%d permits are followed, want 1", n)
		}
		p.Release(now)
		p.Release(now)
		if n := table.Unsettled(); n != 0 {
			t.Fatalf("%d permits are followed after the release", n)
		}
	}
	if len(misuses) != 3 || misuses[0] != (cooldown.Misuse{Kind: cooldown.MisuseTwice, Authority: a}) {
		t.Errorf("%+v", misuses)
	}
	cold := cooldown.Authority{Host: "b.example", Port: 443} // and after a recovery
	ask(t, table, now, cold).Finish(now, http.StatusTooManyRequests, retryafter.Parse([]string{"1"}, now))
	now = now.Add(time.Second)
	ask(t, table, now, cold).Finish(now, http.StatusOK, retryafter.Report{})
	p := ask(t, table, now, cold)
	if n := table.Unsettled(); n != 1 {
		t.Errorf("%d permits are followed after a recovery, want 1", n)
	}
	p.Release(now)
}

// R85 R100: news from a store never bring a deadline or a ceiling closer, however new they are;
// only a recovery ends a wait.
func TestNewsNeverShorten(t *testing.T) {
	for name, news := range map[string]cooldown.Shared{
		"sooner":  {Remaining: 5 * time.Second, Ceiling: cooldown.Fallback},
		"passed":  {Remaining: 0, Ceiling: cooldown.Fallback},
		"past":    {Remaining: -time.Hour, Ceiling: -time.Hour},
		"probing": {Remaining: 0, Ceiling: cooldown.Fallback, Probing: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, cooldown.Options{})
			d.cool("5")
			d.pass(5 * time.Second)
			d.finish(d.permit(true), 429, "300") // a failed probe: the ceiling is doubled
			news.Cooling = true
			for generation := uint64(1); generation < 5; generation++ {
				news.Generation = generation
				d.table.Observe(d.now, d.a, news)
				state := d.look()
				if state.Remaining != 300*time.Second || state.Ceiling != 2*cooldown.Fallback {
					t.Fatalf("generation %d: %+v", generation, state)
				}
			}
			d.pass(299 * time.Second)
			p, refusal := d.table.Ask(t.Context(), d.now, d.a)
			if refusal == nil {
				p.Release(d.now)
				t.Fatal("a permit before the deadline")
			}
		})
	}
}

// R85: an answer of the store to this process's own report does not shorten what that report has
// just set.
func TestAnswerOfTheStoreNeverShortens(t *testing.T) {
	d := newDesk(t, cooldown.Options{Store: shortStore{newMemoryStore()}})
	tr := d.finish(d.permit(false), 429, "300")
	d.want(tr, cooldown.TransitionEntered, 300*time.Second, "seconds")
	d.refused(300*time.Second, false)
}

// shortStore answers every report with a deadline that is near.
type shortStore struct{ *memoryStore }

func (s shortStore) Throttled(ctx context.Context, a cooldown.Authority, r cooldown.ThrottleRecord) (cooldown.Shared, error) {
	known, err := s.memoryStore.Throttled(ctx, a, r)
	known.Remaining, known.Ceiling = time.Second, 0
	return known, err
}
