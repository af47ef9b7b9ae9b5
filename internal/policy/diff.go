package policy

import (
	"iter"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Change is one version whose verdict differs between two sets.
type Change struct {
	Subject
	Before, After Verdict
}

// Diff is the dry run of changed rules: over listings that are at hand, it yields each version
// whose admission at one instant, or whose instant of admission, differs between before and after,
// in the order of the listings. A version that stays denied for good by another rule is no change.
func Diff(now time.Time, before, after *Set, listings iter.Seq2[registry.Package, registry.Document]) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for pkg, doc := range listings {
			for _, version := range doc.Versions() {
				s := Subject{pkg, version}
				wasOK, _, wasAt := before.Admits(now, s)
				isOK, _, isAt := after.Admits(now, s)
				if wasOK == isOK && wasAt.Equal(isAt) {
					continue
				}
				if !yield(Change{s, before.Evaluate(now, s), after.Evaluate(now, s)}) {
					return
				}
			}
		}
	}
}
