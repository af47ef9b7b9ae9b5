package recovery

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// Whatever a server says, whenever it says it, and however bad the sleeper is: when a wait is over,
// the server's time has passed on both clocks and the deadline has not; and nobody ever sleeps more
// than 30 s, or twice. tc-001, tc-029, tc-030, tc-031, tc-043.
func TestNeverShortened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.wall = w.wall.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "fraction")))
		if rapid.Bool().Draw(t, "bad sleeper") {
			w.early = time.Duration(rapid.Int64Range(-int64(40*time.Second), int64(2*time.Second)).Draw(t, "early"))
			w.slowWall = time.Duration(rapid.Int64Range(-int64(5*time.Second), int64(5*time.Second)).Draw(t, "slow"))
		}
		start := w.mono
		budget := time.Duration(rapid.Int64Range(1, int64(2*MaxBudget)).Draw(t, "budget"))
		seq := w.sequence(Options{Budget: budget})
		ahead := rapid.Int64Range(-100, 100).Draw(t, "ahead")
		field := rapid.SampledFrom([]string{
			retryafter.FormatDate(w.wall.Add(time.Duration(ahead) * time.Second)), rapid.StringMatching(`[0-9]{1,25}`).Draw(t, "digits"),
			rapid.StringMatching(`[0-9]{1,2}`).Draw(t, "few digits"), rapid.String().Draw(t, "text"), "",
		}).Draw(t, "field")
		report := retryafter.Parse([]string{field}, w.wall)
		w.pass(time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "decision takes")))
		decided, wall := w.mono, w.wall

		err := seq.Wait(t.Context(), Outcome{Status: 429, RetryAfter: report})
		for _, d := range w.slept {
			if d < 0 || d > MaxDelay {
				t.Fatalf("slept %v", d)
			}
		}
		if err != nil {
			return
		}
		var owed time.Duration
		switch c := report.Canonical(); c.Kind {
		case "seconds":
			owed = time.Duration(c.Value) * time.Second
		case "date", "date-rfc850":
			owed = report.Date.Sub(wall)
			if w.wall.Before(report.Date) {
				t.Fatalf("%q: the instant %v has not come at %v", field, report.Date, w.wall)
			}
		case "overlong":
			t.Fatalf("%q was waited for", field)
		default:
			owed = FallbackDelay
		}
		if waited := w.mono - decided; waited < owed {
			t.Fatalf("%q: waited %v of %v", field, waited, owed)
		}
		if spent := w.mono - start; spent >= min(budget, MaxBudget) {
			t.Fatalf("went on after %v of %v", spent, budget)
		}
		if err := seq.Wait(t.Context(), Outcome{Status: 429, RetryAfter: report}); codeOf(err) != CodeExhausted || len(w.slept) != 1 {
			t.Fatalf("a second wait: %v", err)
		}
	})
}
