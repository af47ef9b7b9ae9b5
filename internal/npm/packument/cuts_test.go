package packument

import (
	"slices"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/registry/registrytest"
)

func TestOneVersionChangesFewRuns(t *testing.T) {
	const name = "p"
	old, private := scanned(t, name, string(packument.Generate(name, 700, 1))), scanned(t, name, string(packument.Generate(name, 100, 9)))
	for _, form := range []string{npm.FormFull, npm.FormAbbreviated} {
		t.Run(form, func(t *testing.T) {
			first := []registry.Part{{Document: private, Keep: slices.Repeat([]bool{true}, 100)}}
			registrytest.OneChangesFew(t, old, first, func(t registrytest.Failing, parts []registry.Part) registry.Rendering {
				r, err := Render(registry.View{Package: pkg(name), Form: form, Base: mount, Parts: parts})
				if err != nil {
					t.Fatalf("%v", err)
				}
				return r
			})
		})
	}
}

// The next document of a package, which has one version more and says so at its start, has the runs
// of the one before, but the last.
func TestNextDocumentKeepsRuns(t *testing.T) {
	const name = "p"
	for _, form := range []string{npm.FormFull, npm.FormAbbreviated} {
		before := rendered(t, name, form, keeping(scanned(t, name, string(packument.Generate(name, 999, 1))), all))
		registrytest.FewChange(t, before, rendered(t, name, form, keeping(scanned(t, name, string(packument.Generate(name, 1000, 1))), all)))
	}
}
