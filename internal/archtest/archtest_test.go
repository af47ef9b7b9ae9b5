package archtest_test

import (
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ecluse-gate/ecluse/internal/archtest"
)

const module = "github.com/ecluse-gate/ecluse"

// The project obeys its own page.
func TestProject(t *testing.T) {
	for _, finding := range archtest.Check(os.DirFS("../.."), module) {
		t.Error(finding)
	}
}

// sound is a tiny tree without a fault.
func sound() map[string]string {
	return map[string]string{
		archtest.Page: "# Rooms\n\n| level | room | for | never | may import |\n|---|---|---|---|---|\n" +
			"| 0 | `base` | a | b | |\n| 0 | `side` | a | b | |\n| 1 | `mid` | a | b | `base` |\n" +
			"| test | `fake` | a | b | |\n| roof | `cmd/x` | a | b | `base`, `mid` |\n\n| too large | why |\n|---|---|\n",
		"go.mod":              "module m\n\nrequire x.org/a v1.2.3\n\nrequire (\n\tx.org/b/v2 v2.0.0\n\tx.org/c v1.0.0 // indirect\n)\n",
		archtest.Dependencies: "| module | a |\n|---|---|\n| `x.org/a`, `x.org/b/v2` | b |\n",
		"base/a.go":           "package base\n",
		"side/a.go":           "package side\n",
		"mid/a.go":            "package mid\n\nimport _ \"m/base\"\n",
		"mid/a_test.go":       "package mid_test\n\nimport (\n\t_ \"m/fake\"\n\t_ \"m/mid\"\n)\n",
		"fake/a.go":           "package fake\n",
		"cmd/x/main.go":       "package main\n\nimport (\n\t_ \"fmt\"\n\t_ \"m/base\"\n\t_ \"m/mid\"\n)\n",
		"mid/testdata/x":      "package and not Go",
		"bin/ignored.go":      "not Go either",
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
	if findings := archtest.Check(tree(sound()), "m"); len(findings) > 0 {
		t.Errorf("findings in a sound tree: %q", findings)
	}
}

// Each rule can fail: one fault in the sound tree gives exactly one finding.
func TestEveryRuleCanFail(t *testing.T) {
	const table, exceptions = "| level | room | for | never | may import |\n|---|---|---|---|---|\n", "| too large | why |\n|---|---|\n"
	long := strings.Repeat("\n", 460)
	for _, c := range []struct{ name, file, old, new, finding string }{
		{"an import that the row does not name", "mid/a.go", "m/base", "m/side", "mid/a.go: imports side, which the row of mid does not name"},
		{"also in tests", "mid/a_test.go", "m/fake", "m/side", "mid/a_test.go: imports side"},
		{"an import of a room without a row", "cmd/x/main.go", "m/mid", "m/unknown", "imports unknown, which the row of cmd/x does not name"},
		{"a row that names a room beside", archtest.Page, "| 1 | `mid` | a | b | `base` |", "| 0 | `mid` | a | b | `base` |", "the row of mid names base, which does not lie below it"},
		{"a row that names a room above", archtest.Page, "| 0 | `side` | a | b | |", "| 0 | `side` | a | b | `mid` |", "the row of side names mid, which does not lie below it"},
		{"a row that names a test room", archtest.Page, "`base`, `mid` |", "`base`, `mid`, `fake` |", "the row of cmd/x names fake, a test room"},
		{"a row that names no room", archtest.Page, "`base`, `mid` |", "`base`, `mid`, `gone` |", "names gone, which has no row"},
		{"code without a row", "extra/a.go", "", "package extra\n", "extra holds code and has no row"},
		{"a row without code", archtest.Page, table, table + "| 3 | `ghost` | a | b | |\n", "ghost has a row and no code"},
		{"a test room in product code", "cmd/x/main.go", "m/mid", "m/fake", "product code imports the test room fake"},
		{"a level that is none", archtest.Page, "| 0 | `side`", "| x | `side`", `level "x" is neither`},
		{"two rows", archtest.Page, table, table + "| 0 | `side` | a | b | |\n", "side has two rows"},
		{"a long file", "base/a.go", "package base\n", "package base\n" + long, "base/a.go: 461 lines, more than 450"},
		{"a long test file", "mid/a_test.go", "package mid_test\n", "package mid_test\n" + long, "mid/a_test.go: 4"},
		{"a long function", "base/a.go", "package base\n", "package base\n\nfunc f() {\n" + long[:44] + "}\n", "base/a.go: f: more than 45 lines"},
		{"an exception that is not needed", archtest.Page, exceptions, exceptions + "| `base/a.go` | history |\n", "the exception for base/a.go is not needed"},
		{"a registry's host", "docs/x.md", "", "see https://Registry.npm" + "js.org/x\n", "docs/x.md:1: names the host of a package registry"},
		{"a machine's path", "Makefile", "", "all:\n\tcp /wor" + "k/x .\n", "Makefile:2: names a path of one machine"},
		{"a module that nobody argued for", archtest.Dependencies, ", `x.org/b/v2`", "", "requires x.org/b/v2, for which docs/dependencies.md does not argue"},
		{"an argument for a module that is gone", archtest.Dependencies, "`x.org/a`", "`x.org/a`, `x.org/c`", "argues for x.org/c"},
		{"download addresses", "t/package-lock.json", "", `{"resolved": "x"}`, "holds download addresses"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := maps.Clone(sound())
			if !strings.Contains(files[c.file], c.old) {
				t.Fatalf("%s does not hold %q", c.file, c.old)
			}
			files[c.file] = strings.Replace(files[c.file], c.old, c.new, 1)
			findings := archtest.Check(tree(files), "m")
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
		files["side/"+name+"_test.go"] = "package side\n" + strings.Repeat("\n", 400) // tests do not count
	}
	findings := archtest.Check(tree(files), "m")
	if len(findings) != 1 || !strings.HasPrefix(findings[0], "base: 1605 lines of product code") {
		t.Errorf("findings %q", findings)
	}
	files[archtest.Page] += "| `base` | one grammar, one room |\n"
	if findings := archtest.Check(tree(files), "m"); len(findings) > 0 {
		t.Errorf("the reason is not accepted: %q", findings)
	}
	files[archtest.Page] = strings.Replace(files[archtest.Page], "one grammar, one room", "", 1)
	if findings := archtest.Check(tree(files), "m"); len(findings) != 1 || !strings.Contains(findings[0], "gives no reason") {
		t.Errorf("an empty reason: %q", findings)
	}
}

func TestNoPage(t *testing.T) {
	files := sound()
	files[archtest.Page] = "nothing\n"
	if findings := strings.Join(archtest.Check(tree(files), "m"), "\n"); !strings.Contains(findings, "no table of rooms") {
		t.Errorf("findings %q", findings)
	}
}
