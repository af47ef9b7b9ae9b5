package policy

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// versions is a document that holds nothing but facts.
type versions []registry.Version

func (v versions) Versions() []registry.Version { return v }
func (versions) Lookup(string) int              { return -1 }
func (versions) Dropped() int                   { return 0 }
func (versions) Source() []byte                 { return nil }
func (versions) Cost() int64                    { return 0 }

func listings(names ...string) iter.Seq2[registry.Package, registry.Document] {
	doc := versions{{Version: "1.0.0", Published: old}, {Version: "2.0.0", Published: young}, {Version: "3.0.0"}}
	return func(yield func(registry.Package, registry.Document) bool) {
		for _, name := range names {
			if !yield(registry.Package{Ecosystem: "npm", Name: name}, doc) {
				return
			}
		}
	}
}

// line is a change for people: what changes, from which rule to which, and why.
func line(c Change) string {
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

// Issue 5, item 7: a dry run of changed rules says what would change and why, and nothing else.
func TestDiff(t *testing.T) {
	before := mustSet(t, week)
	after := mustSet(t, Spec{Name: "min-age", Type: AllowIfOlderThan, Age: 30 * time.Minute}, Spec{Name: "ban", Type: DenyByIdentity, Packages: []string{"b@1.0.0"}})
	var lines []string
	for c := range Diff(now, before, after, listings("a", "b")) {
		lines = append(lines, line(c))
	}
	want := []string{
		"npm:a@2.0.0: admitted by min-age (published 2026-12-01T11:00:00Z; versions are admitted 30m0s after that, here from 2026-12-01T11:30:00Z); was denied by min-age (published",
		"npm:b@1.0.0: denied by ban (matches the pattern \"b@1.0.0\"); was admitted by min-age",
		"npm:b@2.0.0: admitted",
	}
	if len(lines) != len(want) {
		t.Fatalf("changes: %s", strings.Join(lines, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("change %d: %s\nwant %s", i, lines[i], want[i])
		}
	}
}

func TestDiffOfTime(t *testing.T) {
	longer := week
	longer.Age = 14 * 24 * time.Hour
	changes := slices.Collect(Diff(now, mustSet(t, week), mustSet(t, longer), listings("a")))
	if len(changes) != 1 || changes[0].Version.Version != "2.0.0" ||
		!strings.Contains(line(changes[0]), "here from 2026-12-15T11:00:00Z; was to be admitted from 2026-12-08T11:00:00Z") {
		t.Errorf("changes: %+v", changes)
	}
	changes = slices.Collect(Diff(now, mustSet(t), mustSet(t, week), listings("a")))
	if len(changes) != 2 || !strings.Contains(line(changes[1]), "was to be admitted never") {
		t.Errorf("changes: %v", changes)
	}
}

func TestDiffOfTheSameIsEmptyAndStopsWhenAsked(t *testing.T) {
	set := mustSet(t, week)
	for c := range Diff(now, set, set.WithAdvisories(data{"npm": nil}), listings("a", "b")) {
		t.Errorf("change: %v", c)
	}
	n := 0
	for range Diff(now, mustSet(t), set, listings("a", "b", "c")) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d changes", n)
	}
}
