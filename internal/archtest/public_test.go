package archtest_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/archtest"
)

// What strangers import can be imported by strangers: no code of a requirement, no type that they
// cannot name, a word on stability, and no more names than one can read. With -v it lists what each
// package exports.
func TestPublic(t *testing.T) {
	findings, names := archtest.Public(os.DirFS("../.."), module)
	for _, finding := range findings {
		t.Error(finding)
	}
	for _, room := range []string{"retryafter", "cooldown", "cooldown/cooldownhttp", "recovery", "journal", "journal/journaltest"} {
		t.Logf("%s exports %d names: %s", room, len(names[room]), strings.Join(names[room], " "))
		if len(names[room]) == 0 {
			t.Errorf("%s is not public any more", room)
		}
	}
}

// Each rule can fail: one fault in a sound public package gives exactly one finding.
func TestEveryPublicRuleCanFail(t *testing.T) {
	const library = `// Package lib is small.
//
// # Stability
//
// It stays.
package lib

import "m/internal/deep"

// Kind is a kind.
type Kind string

// The kinds.
const (
	One Kind = "one" // the first
)

// Box is a box.
type Box struct {
	// Size is its size.
	Size  int
	inner deep.Box // S12: nobody sees this
}

// Open opens it.
func Open(name string) (*Box, error) { return &Box{inner: deep.New(name)}, nil }

// Close closes it.
func (b *Box) Close() error { return b.close(deep.New("")) }

// close is S13.
func (b *Box) close(deep.Box) error { return nil }

// Reader reads.
type Reader interface {
	// Read reads.
	Read(p []byte) (int, error)
}
`
	sound := map[string]string{
		archtest.Page:   "| 1 | `lib` | books (public) | never | |\n| 1 | `other` | things | never | |\n",
		"lib/a.go":      library,
		"lib/a_test.go": "package lib_test\n\n// Example proves R35.\nfunc Example() {}\n",
		"other/a.go":    "// Package other is about R35.\npackage other\n",
	}
	findings, names := archtest.Public(tree(sound), "m")
	if len(findings) > 0 || strings.Join(names["lib"], " ") != "Box Kind One Open Reader" || len(names) != 1 {
		t.Fatalf("%q %q", findings, names)
	}
	for _, c := range []struct{ name, old, new, finding string }{
		{"a code in the package's documentation", "It stays.", "It stays (R35).", "lib/a.go:1: the documentation names R35"},
		{"of a type", "Kind is a kind", "Kind is a kind (S81, S82)", "names S81"},
		{"of a group", "The kinds.", "The kinds (C11).", "names C11"},
		{"behind a constant", "the first", "see tc-014", "names tc-014"},
		{"of a field", "is its size", "is its size, see spec section 14", "names spec section"},
		{"of a function", "opens it", "opens it: S1", "names S1"},
		{"of a method", "closes it", "closes it: R104", "names R104"},
		{"of an interface's method", "Read reads.", "Read reads: asc-001.", "names asc-001"},
		{"no stability", "# Stability", "# Use", "lib: its documentation has no paragraph # Stability"},
		{"an alias of an internal type", "type Kind string", "type Kind = deep.Kind", "Kind shows deep.Kind, which nobody outside"},
		{"an internal parameter", "Open(name string)", "Open(name deep.Name)", "Open shows deep.Name"},
		{"an internal result", "Close() error", "Close() deep.Error", "Close shows deep.Error"},
		{"an internal field", "Size  int", "Size  deep.Size", "Box shows deep.Size"},
		{"an embedded one", "Size  int", "deep.Size", "Box shows deep.Size"},
		{"an internal constant", `Kind = "one"`, "Kind = deep.One", "One shows deep.One"},
		{"too many names", "// Kind is", "const (" + strings.Repeat("\nA\n", 46) + ")\n\n// Kind is", "lib: exports 51 names, more than 50"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := maps.Clone(sound)
			if !strings.Contains(library, c.old) {
				t.Fatalf("the library does not hold %q", c.old)
			}
			files["lib/a.go"] = strings.Replace(library, c.old, c.new, 1)
			findings, _ := archtest.Public(tree(files), "m")
			if len(findings) != 1 || !strings.Contains(findings[0], c.finding) {
				t.Errorf("findings %q, want one with %q", findings, c.finding)
			}
		})
	}
}
