package npm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// runsOf cuts a rendering where it says.
func runsOf(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, r registry.Rendering,
) []string {
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

// A version that comes of age, or is withdrawn, leaves all runs of a rendering as they are but a few: its own, its publish time's, and what
// stands before the versions. When its run was empty, the comma before the next one comes or goes as well.
func TestOneVersionChangesFewRuns(t *testing.T) {
	const name, versions = "p", 700
	old, private := scanned(t, name, string(packument.Generate(name, versions, 1))), scanned(t, name, string(packument.Generate(name, 100, 9)))
	for _, form := range []string{FormFull, FormAbbreviated} {
		t.Run(form, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				parts := []registry.Part{{Document: old, Keep: rapid.SliceOfN(rapid.Bool(), versions, versions).Draw(t, "keep")}}
				if rapid.Bool().Draw(t, "merged") {
					parts = slices.Insert(parts, 0, registry.Part{Document: private, Keep: slices.Repeat([]bool{true}, 100)})
				}
				render := func() []string {
					r, err := Render(registry.View{Package: pkg(name), Form: form, Base: mount, Parts: parts})
					if err != nil {
						t.Fatalf("%v", err)
					}
					return runsOf(t, r)
				}
				before := render()
				flip := rapid.IntRange(0, versions-1).Draw(t, "flip")
				keep := parts[len(parts)-1].Keep
				keep[flip] = !keep[flip]
				after := render()
				fresh := 0
				for _, run := range after {
					if !slices.Contains(before, run) {
						fresh++
					}
				}
				if len(after) < 10 || fresh > 5 {
					t.Fatalf("%d of %d runs changed", fresh, len(after))
				}
			})
		})
	}
}

// The next document of a package, which has one version more and says so at its start, has the runs of the one before, but the last.
func TestNextDocumentKeepsRuns(t *testing.T) {
	const name = "p"
	for _, form := range []string{FormFull, FormAbbreviated} {
		before := runsOf(t, rendered(t, name, form, keeping(scanned(t, name, string(packument.Generate(name, 999, 1))), all)))
		after := runsOf(t, rendered(t, name, form, keeping(scanned(t, name, string(packument.Generate(name, 1000, 1))), all)))
		fresh := 0
		for _, run := range after {
			if !slices.Contains(before, run) {
				fresh++
			}
		}
		if len(after) < 10 || fresh > 5 {
			t.Errorf("%s: %d of %d runs changed", form, fresh, len(after))
		}
	}
}
