package policy

import (
	"fmt"
	"iter"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Change is one version whose verdict differs between two sets.
type Change struct {
	Subject
	Before, After Verdict
}

// String is one line for people: what changes, from which rule to which, and why.
func (c Change) String() string {
	name := c.Package.String() + "@" + c.Version.Version
	word := map[bool]string{true: "admitted", false: "denied"}
	if c.Before.Admit != c.After.Admit {
		return fmt.Sprintf("%s: %s by %s (%s); was %s by %s (%s)", name,
			word[c.After.Admit], c.After.Rule, c.After.Reason, word[c.Before.Admit], c.Before.Rule, c.Before.Reason)
	}
	return fmt.Sprintf("%s: still denied, %s; was to be admitted %s", name, c.After.Reason, when(c.Before.AdmittedAt))
}

func when(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return "from " + stamp(at)
}

// Diff is the dry run of changed rules: over listings that are at hand, it yields each version whose admission at one instant, or
// whose instant of admission, differs between before and after, in the order of the listings. A version that stays denied for good
// by another rule is no change.
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
