package archtest_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ecluse-gate/ecluse/internal/archtest"
)

const module = "github.com/ecluse-gate/ecluse"

var update = flag.Bool("update", false, "write the third column of "+archtest.Requirements)

// The project obeys its own pages.
func TestProject(t *testing.T) {
	const root = "../.."
	findings, page := archtest.Check(os.DirFS(root), module)
	if *update && page != "" {
		if err := os.WriteFile(filepath.Join(root, archtest.Requirements), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		findings, _ = archtest.Check(os.DirFS(root), module)
	}
	for _, finding := range findings {
		t.Error(finding)
	}
}

// check gives the findings in a tree of the module m.
func check(files map[string]string) []string {
	findings, _ := archtest.Check(tree(files), "m")
	return findings
}

// sound is a tiny tree without a fault.
func sound() map[string]string {
	return map[string]string{
		archtest.Page: "# Rooms\n\n| level | room | for | never | may import |\n|---|---|---|---|---|\n" +
			"| 0 | `base` | a | b | |\n| 0 | `side` | a | b | |\n| 1 | `mid` | a | b, an ecosystem's name | `base` |\n" +
			"| test | `fake` | a | b | |\n| roof | `cmd/x` | a | b | `base`, `mid` |\n\n| too large | why |\n|---|---|\n",
		"go.mod":              "module m\n\nrequire x.org/a v1.2.3\n\nrequire (\n\tx.org/b/v2 v2.0.0\n\tx.org/c v1.0.0 // indirect\n)\n",
		archtest.Dependencies: "| module | a |\n|---|---|\n| `x.org/a`, `x.org/b/v2` | b |\n",
		archtest.Requirements: "# Codes\n\n| code | what holds | tests |\n|---|---|---|\n" +
			"| R7 | seven | [mid/a_test.go](../mid/a_test.go) |\n| R9 | nine | not built yet |\n",
		"base/a.go":      "package base\n",
		"side/a.go":      "package side\n",
		"mid/a.go":       "package mid // npm\n\nimport _ \"m/base\"\n\nfunc f() {\n\t// R9: within\n}\n",
		"mid/a_test.go":  "package mid_test\n\nimport (\n\t_ \"m/fake\"\n\t_ \"m/mid\"\n)\n\n// R7: it holds.\nfunc TestA() {}\n",
		"fake/a.go":      "package fake\n",
		"cmd/x/main.go":  "package main\n\nimport (\n\t_ \"fmt\"\n\t_ \"m/base\"\n\t_ \"m/mid\"\n)\n",
		"mid/testdata/x": "package and not Go",
		"bin/ignored.go": "not Go either",
	}
}

func tree(files map[string]string) fstest.MapFS {
	t := fstest.MapFS{}
	for name, text := range files {
		t[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return t
}

func TestSoundTree(t *testing.T) {
	if findings := check(sound()); len(findings) > 0 {
		t.Errorf("findings in a sound tree: %q", findings)
	}
}

// Each rule can fail: one fault in the sound tree gives exactly one finding.
func TestEveryRuleCanFail(t *testing.T) {
	const table, exceptions = "| level | room | for | never | may import |\n|---|---|---|---|---|\n", "| too large | why |\n|---|---|\n"
	long, wide := strings.Repeat("\n", 460), strings.Repeat("a ", 51)
	for _, c := range []struct{ name, file, old, new, finding string }{
		{"an import that the row does not name", "mid/a.go", "m/base", "m/side", "mid/a.go: imports side, which the row of mid does not name"},
		{"also in tests", "mid/a_test.go", "m/fake", "m/side", "mid/a_test.go: imports side"},
		{"an import of a package without a row", "cmd/x/main.go", "m/mid", "m/unknown", "imports unknown, which the row of cmd/x does not name"},
		{"a row that names a package beside", archtest.Page, "| 1 | `mid` ", "| 0 | `mid` ", "the row of mid names base, which does not lie below it"},
		{"a row that names a package above", archtest.Page, "| 0 | `side` | a | b | |", "| 0 | `side` | a | b | `mid` |", "the row of side names mid, which does not lie below it"},
		{"a row that names a test package", archtest.Page, "`base`, `mid` |", "`base`, `mid`, `fake` |", "the row of cmd/x names fake, a test package"},
		{"a row that names no package", archtest.Page, "`base`, `mid` |", "`base`, `mid`, `gone` |", "names gone, which has no row"},
		{"code without a row", "extra/a.go", "", "package extra\n", "extra holds code and has no row"},
		{"a row without code", archtest.Page, table, table + "| 3 | `ghost` | a | b | |\n", "ghost has a row and no code"},
		{"a test package in product code", "cmd/x/main.go", "m/mid", "m/fake", "product code imports the test package fake"},
		{"a level that is none", archtest.Page, "| 0 | `side`", "| x | `side`", `level "x" is neither`},
		{"two rows", archtest.Page, table, table + "| 0 | `side` | a | b | |\n", "side has two rows"},
		{"a text that names an ecosystem", "mid/a.go", "base\"\n", "base\"\n\nvar s = `x.npm.y`\n", "mid/a.go: names an ecosystem, which the row of mid forbids: line 5: x.npm.y"},
		{"an identifier that names an ecosystem", "mid/a.go", "base\"\n", "base\"\n\nvar usePyPI bool\n", "forbids: line 5: usePyPI"},
		{"a long file", "base/a.go", "package base\n", "package base\n" + long, "base/a.go: 461 lines, more than 450"},
		{"a long test file", "mid/a_test.go", "package mid_test\n", "package mid_test\n" + long, "mid/a_test.go: 4"},
		{"a long function", "base/a.go", "package base\n", "package base\n\nfunc f() {\n" + long[:44] + "}\n", "base/a.go: f: more than 45 lines"},
		{"an exception that is not needed", archtest.Page, exceptions, exceptions + "| `base/a.go` | history |\n", "the exception for base/a.go is not needed"},
		{"a registry's host", "docs/x.md", "", "see https://Registry.npm" + "js.org/x\n", "docs/x.md:1: names the host of a package registry"},
		{"a machine's path", "Makefile", "", "all:\n\tcp /wor" + "k/x .\n", "Makefile:2: names a path of one machine"},
		{"a wide comment", "base/a.go", "package", "// " + wide + "\npackage", "base/a.go:1: a comment of more than 100 columns"},
		{"a wide comment behind code", "mid/a.go", "import", "// " + wide + "\nimport", "a comment of more than 100 columns"},
		{"an indented comment one column too wide", "base/a.go", "package base\n", "package base\n\nfunc f() {\n\t// " + strings.Repeat("a ", 46) + "aa\n}\n", "base/a.go:4: a comment of more than 100 columns"},
		{"a wide line behind what a program writes", "docs/x.md", "", "<!-- plot: begin -->\nx\n<!-- plot: end -->\n\n" + wide + "\n", "docs/x.md:5: a line of more than 100 columns"},
		{"a code in a comment behind a function", "mid/a.go", "within\n}\n", "within\n}\n\n// R9: again\nvar x int\n", "mid/a.go:9: the documentation of a public package names R9"},
		{"a wide line", "docs/x.md", "", "1. " + wide + "\n", "docs/x.md:1: a line of more than 100 columns"},
		{"a wide line of a list", "docs/x.md", "", "- a\n\n    " + wide + "\n", "docs/x.md:3: a line of more than 100 columns"},
		{"a module that nobody argued for", archtest.Dependencies, ", `x.org/b/v2`", "", "requires x.org/b/v2, for which docs/dependencies.md does not argue"},
		{"an argument for a module that is gone", archtest.Dependencies, "`x.org/a`", "`x.org/a`, `x.org/c`", "argues for x.org/c"},
		{"a code without a row", "mid/a_test.go", "// R7: it", "// R7 R8: it", "R8, which mid/a_test.go names, has no row: run make fix, or write \"| R8 |  | [mid/a_test.go](../mid/a_test.go) |"},
		{"the first code of its kind", "mid/a_test.go", "// R7: it", "// R7, rw-001: it", "rw-001, which mid/a_test.go names, has no row"},
		{"a code between two", "mid/a_test.go", "// R7: it", "// R7 to\n// R8: it", "R8, which mid/a_test.go names"},
		{"a code in the name of a case", "mid/a_test.go", "TestA() {}", "TestA() { _ = `S12 x R5` }", "S12, which mid/a_test.go names"},
		{"a code in a script", "mid/testdata/x.txt", "", "# C11: x\nC12\n", "C11, which mid/testdata/x.txt names"},
		{"test vectors", "mid/testdata/x.jsonl", "", `{"id": "asc-001"}`, "asc-*, which mid/testdata/x.jsonl names, has no row"},
		{"a code in a page", "docs/x.md", "", "see (S5)\n", "S5, which docs/x.md names"},
		{"a row of a code that is gone", archtest.Requirements, "| R9 |", "| R8 | x | not built |\n| R9 |", "R8: nothing in the tree names it"},
		{"a row without a test", archtest.Requirements, "not built yet", "", "R9: no test names it"},
		{"a row with links to tests that are gone", archtest.Requirements, "not built yet", "[x](../x)", "R9: no test names it"},
		{"a row without a sentence", archtest.Requirements, "seven", "", "R7: say in the second column"},
		{"a row of older tests", "side/a_test.go", "", "package side\n\n// R7: it holds.\n", "R7: the third column is out of date"},
		{"a code with two rows", archtest.Requirements, "| R9 |", "| R9 | x | not built |\n| R9 |", ": R9 has two rows"},
		{"download addresses", "t/package-lock.json", "", `{"resolved": "x"}`, "holds download addresses"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := maps.Clone(sound())
			if !strings.Contains(files[c.file], c.old) {
				t.Fatalf("%s does not hold %q", c.file, c.old)
			}
			files[c.file] = strings.Replace(files[c.file], c.old, c.new, 1)
			findings := check(files)
			if len(findings) != 1 || !strings.Contains(findings[0], c.finding) {
				t.Errorf("findings %q, want one with %q", findings, c.finding)
			}
		})
	}
}

func TestLargePackage(t *testing.T) {
	files := sound()
	for _, name := range []string{"b", "c", "d", "e"} {
		files["base/"+name+".go"] = "package base\n" + strings.Repeat("\n", 400)
		// tests do not count
		files["side/"+name+"_test.go"] = "package side\n" + strings.Repeat("\n", 400)
	}
	findings := check(files)
	if len(findings) != 1 || !strings.HasPrefix(findings[0], "base: 1605 lines of product code") {
		t.Errorf("findings %q", findings)
	}
	files[archtest.Page] += "| `base` | one grammar, one room |\n"
	if findings := check(files); len(findings) > 0 {
		t.Errorf("the reason is not accepted: %q", findings)
	}
	files[archtest.Page] = strings.Replace(files[archtest.Page], "one grammar, one room", "", 1)
	if findings := check(files); len(findings) != 1 || !strings.Contains(findings[0], "gives no reason") {
		t.Errorf("an empty reason: %q", findings)
	}
}

func TestNoPage(t *testing.T) {
	files := sound()
	files[archtest.Page] = "nothing\n"
	if findings := strings.Join(check(files), "\n"); !strings.Contains(findings, "no table of packages") {
		t.Errorf("findings %q", findings)
	}
}
