package cooldown_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
	"pgregory.net/rapid"
)

// R85 R86: over random interleavings in two processes with random deliveries of news: never two
// live probes in the fleet, never a probe before a deadline that the store knows, and in the end
// everything is open again.
func TestFleetInterleavings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := newMemoryStore()
		a := cooldown.Authority{Host: "registry.example", Port: 443}
		var tables [2]*cooldown.Table
		for i := range tables {
			tables[i] = cooldown.New(cooldown.Options{Store: store, ProbeLease: testLease})
		}
		now := time.Now()
		var flights []flight
		live := func() int {
			n := 0
			for _, f := range flights {
				if f.permit.Probe() && now.Before(f.sent.Add(testLease)) {
					n++
				}
			}
			return n
		}
		take := func(t *rapid.T) cooldown.Permit {
			if len(flights) == 0 {
				t.Skip("nothing under way")
			}
			i := rapid.IntRange(0, len(flights)-1).Draw(t, "flight")
			p := flights[i].permit
			flights = slices.Delete(flights, i, i+1)
			return p
		}
		askOne := func(t *rapid.T) {
			key := store.keys[a]
			early := key != nil && key.cooling && store.now.Before(key.deadline)
			p, refusal := tables[rapid.IntRange(0, 1).Draw(t, "process")].Ask(t.Context(), now, a)
			if refusal != nil {
				return
			}
			flights = append(flights, flight{p, now})
			if p.Probe() && early {
				t.Fatal("a probe before the shared deadline")
			}
			if live() > 1 {
				t.Fatal("two probes in the fleet")
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask":   askOne,
			"ask 2": askOne,
			"pass": func(t *rapid.T) {
				by := time.Duration(rapid.OneOf(rapid.Int64Range(0, int64(2*time.Second)), rapid.Int64Range(0, int64(11*time.Minute)), rapid.Just(int64(testLease))).Draw(t, "by"))
				now = now.Add(by)
				store.pass(by)
			},
			"push": func(t *rapid.T) {
				news, _ := store.Load(t.Context(), a)
				tables[rapid.IntRange(0, 1).Draw(t, "process")].Observe(now, a, news)
			},
			"release": func(t *rapid.T) { take(t).Release(now) },
			"succeed": func(t *rapid.T) { take(t).Finish(now, 200, retryafter.Report{}) },
			"throttle": func(t *rapid.T) {
				take(t).Finish(now, 429, retryafter.Parse([]string{rapid.SampledFrom([]string{"", "1", "5", "700"}).Draw(t, "hint")}, now))
			},
		})
		for len(flights) > 0 {
			flights[0].permit.Release(now)
			flights = flights[1:]
		}
		for range 4 { // whoever is asked probes, and the other hears of it when it asks
			now = now.Add(cooldown.MaxDelay)
			store.pass(cooldown.MaxDelay)
			for _, table := range tables {
				if p, refusal := table.Ask(t.Context(), now, a); refusal == nil {
					p.Finish(now, 200, retryafter.Report{})
				}
			}
		}
		for i, table := range tables {
			if state := table.Look(now, a); state.Phase != cooldown.PhaseOpen {
				t.Fatalf("process %d in the end: %+v", i, state)
			}
		}
	})
}
