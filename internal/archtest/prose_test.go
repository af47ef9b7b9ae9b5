package archtest_test

import (
	"strings"
	"testing"
)

// What cannot be wrapped may be wide, and so may what a program writes.
func TestWideWithoutFault(t *testing.T) {
	wide, long := strings.Repeat("a ", 51), strings.Repeat("a", 101)
	for name, c := range map[string]struct{ file, text string }{
		"a table":                 {"docs/x.md", "| " + wide + " |\n"},
		"code":                    {"docs/x.md", "```sh\n" + wide + "\n```\n"},
		"indented code":           {"docs/x.md", "a\n\n    " + wide + "\n"},
		"code after a list":       {"docs/x.md", "- a\n\nb\n\n    " + wide + "\n"},
		"one long word":           {"docs/x.md", "- " + long + "\n"},
		"one span of code":        {"docs/x.md", "- `" + wide + "`\n"},
		"a picture":               {"docs/x.md", "![" + wide + "](x.svg)\n"},
		"the target of a link":    {"docs/x.md", "[x]: " + long + " \"x y\"\n"},
		"what a program writes":   {"docs/x.md", "<!-- plot: begin -->\n" + wide + "\n<!-- plot: end -->\n"},
		"umlauts":                 {"docs/x.md", strings.Repeat("ä ", 50) + "\n"},
		"a directive":             {"base/a.go", "//nolint:x // " + wide + "\npackage base\n"},
		"an example in a comment": {"base/a.go", "// Package base\n//\n//\t" + wide + "\npackage base\n"},
		"a long word":             {"base/a.go", "// " + long + "\npackage base\n"},
		"a wide line of code":     {"base/a.go", "package base\n\nvar _ = \"" + wide + "\"\n"},
	} {
		files := sound()
		files[c.file] = c.text
		if findings := check(files); len(findings) > 0 {
			t.Errorf("%s: %q", name, findings)
		}
	}
}

// The documentation of an example is shown with that of its package, a test's is not.
func TestExampleNamesNoCode(t *testing.T) {
	files := sound()
	files["mid/a_test.go"] += "\n// R7\nfunc ExampleA() {}\n"
	findings := strings.Join(check(files), "\n")
	if want := "mid/a_test.go:11: the documentation of a public package names R7"; !strings.Contains(findings, want) {
		t.Errorf("findings %s, want %q", findings, want)
	}
}
