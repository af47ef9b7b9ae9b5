// Package registrytest is what the renderings of every ecosystem must hold to, for the tests of
// their packages.
package registrytest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Failing is what of a test or of a property the checks need.
type Failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Runs cuts a rendering where it says.
func Runs(t Failing, r registry.Rendering) []string {
	t.Helper()
	var runs []string
	start := 0
	for _, cut := range append(slices.Clone(r.Cuts), len(r.Body)) {
		if cut < start || start > 0 && cut == start && cut != len(r.Body) || cut > len(r.Body) {
			t.Fatalf("cuts %v of %d bytes", r.Cuts, len(r.Body))
		}
		runs = append(runs, string(r.Body[start:cut]))
		start = cut
	}
	return runs
}

// FewChange demands that a rendering has at least ten runs, and that all but five were there
// before.
func FewChange(t Failing, before, after registry.Rendering) {
	t.Helper()
	known, runs, fresh := Runs(t, before), Runs(t, after), 0
	for _, run := range runs {
		if !slices.Contains(known, run) {
			fresh++
		}
	}
	if len(runs) < 10 || fresh > 5 {
		t.Fatalf("%d of %d runs changed", fresh, len(runs))
	}
}

// OneChangesFew demands that an entry that comes of age, or is withdrawn, leaves all runs of a
// rendering as they are but a few: its own, where else it is named, and what stands before the
// entries. When its run was empty, the comma before the next one comes or goes as well. The
// document stands alone or, where there are others, behind them.
func OneChangesFew(t *testing.T, doc registry.Document, others []registry.Part, render func(Failing, []registry.Part) registry.Rendering) {
	t.Helper()
	n := len(doc.Versions())
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "keep")
		parts := []registry.Part{{Document: doc, Keep: keep}}
		if len(others) > 0 && rapid.Bool().Draw(t, "merged") {
			parts = slices.Concat(others, parts)
		}
		first := render(t, parts)
		flip := rapid.IntRange(0, n-1).Draw(t, "flip")
		keep[flip] = !keep[flip]
		FewChange(t, first, render(t, parts))
	})
}
