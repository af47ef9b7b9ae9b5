package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/ecosystem"
)

// namesNone stands in the column "never in here" of rooms that are handed their ecosystems.
const namesNone = "an ecosystem's name"

// ecosystems matches what the ecosystems are called, in any spelling and inside of longer names.
var ecosystems = func() *regexp.Regexp {
	var names []string
	for _, e := range ecosystem.All() {
		names = append(names, regexp.QuoteMeta(e.Name), regexp.QuoteMeta(e.OSVName))
	}
	return regexp.MustCompile("(?i)" + strings.Join(names, "|"))
}()

// ecosystemsNamed lists the texts and identifiers of a file that name an ecosystem. Comments may,
// and imports are the table's.
func ecosystemsNamed(files *token.FileSet, f *ast.File) (named []string) {
	find := func(at token.Pos, text string) {
		if ecosystems.MatchString(text) {
			named = append(named, fmt.Sprintf("line %d: %s", files.Position(at).Line, text))
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Ident:
			find(n.Pos(), n.Name)
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				find(n.Pos(), text)
			}
		}
		return true
	})
	return named
}

// checkEcosystems reports rooms that name an ecosystem although their row says that they do not.
func checkEcosystems(r row, f source) (findings []string) {
	if !r.namesNone {
		return nil
	}
	for _, what := range f.named {
		findings = append(findings, fmt.Sprintf("%s: names an ecosystem, which the row of %s forbids: %s", f.name, r.room, what))
	}
	return findings
}
