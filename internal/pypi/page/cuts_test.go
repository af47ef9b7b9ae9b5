package page

import (
	"slices"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/registry/registrytest"
)

func TestOneFileChangesFewRuns(t *testing.T) {
	own := scanned(t, jsonSource(page(file("x-0.0.0.tar.gz")+","+file("x-77.tar.gz"))))
	first := []registry.Part{{Document: own, Keep: []bool{true, true}}}
	for from, src := range bigPage(1_700) {
		doc := scanned(t, src)
		for _, form := range []string{pypi.FormJSON, pypi.FormHTML} {
			t.Run("from "+from+" to "+form, func(t *testing.T) {
				registrytest.OneChangesFew(t, doc, first, func(t registrytest.Failing, parts []registry.Part) registry.Rendering {
					r, err := Render(registry.View{Package: pkg("x"), Form: form, Base: mount, Parts: parts})
					if err != nil {
						t.Fatalf("%v", err)
					}
					return r
				})
			})
		}
	}
}

// The next page of a project, which has one file more, has the runs of the one before, but the
// last.
func TestNextPageKeepsRuns(t *testing.T) {
	before, after := bigPage(1_700), bigPage(1_701)
	for from := range before {
		for _, form := range []string{pypi.FormJSON, pypi.FormHTML} {
			next := rendered(t, form, keeping(scanned(t, after[from]), all))
			registrytest.FewChange(t, rendered(t, form, keeping(scanned(t, before[from]), all)), next)
		}
	}
}

// A page without a file, and one of a few, have their runs too.
func TestRunsOfSmallPages(t *testing.T) {
	doc := scanned(t, jsonSource(page(file("x-1.0.tar.gz")+","+file("x-2.0.tar.gz"))))
	for _, form := range []string{pypi.FormJSON, pypi.FormHTML} {
		for _, keep := range [][]bool{{false, false}, {false, true}, {true, true}} {
			r := rendered(t, form, registry.Part{Document: doc, Keep: keep})
			if got := registrytest.Runs(t, r); slices.Contains(got, "") || len(got) < 2 {
				t.Errorf("%s, %v: runs %q", form, keep, got)
			}
		}
	}
}
