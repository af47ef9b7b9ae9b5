package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// forbidden are the words that no file may hold, with the reason. They are put together from parts,
// or this file would hold them.
func forbidden() map[string]*regexp.Regexp {
	host := func(labels ...string) string { return regexp.QuoteMeta(strings.Join(labels, ".")) }
	return map[string]*regexp.Regexp{
		"the host of a package registry; the clients' own configuration names it": regexp.MustCompile("(?i)" + strings.Join([]string{
			host("registry", "npm"+"js", ""), host("registry", "yarn"+"pkg", ""), host("proxy", "golang", ""), host("sum", "golang", ""),
			host("deb", "debian", ""), host("security", "debian", ""),
		}, "|")),
		"a path of one machine": regexp.MustCompile(strings.Join([]string{"/wor" + "k/", "/far" + "m/", `\.lib` + "rary", "/ro" + "ot/", "/ho" + `me/[a-z]`}, "|")),
	}
}

// checkText looks for forbidden words in one file that is text.
func checkText(name string, text []byte) (findings []string) {
	if path.Base(name) == "go.sum" || bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	for reason, pattern := range forbidden() {
		if at := pattern.FindIndex(text); at != nil {
			line := 1 + bytes.Count(text[:at[0]], []byte("\n"))
			findings = append(findings, fmt.Sprintf("%s:%d: names %s", name, line, reason))
		}
	}
	if path.Base(name) == "package-lock.json" {
		if bytes.Contains(text, []byte(`"resolved"`)) {
			findings = append(findings, name+`: holds download addresses ("resolved")`)
		}
	}
	return findings
}

// Dependencies is the page that argues for each module.
const Dependencies = "docs/dependencies.md"

var (
	// without "// indirect"
	requirement = regexp.MustCompile(`(?m)^\s*(?:require )?([a-z0-9.-]+\.[a-z]+/\S+) v\S+$`)
	argued      = regexp.MustCompile("`([a-z0-9.-]+\\.[a-z]+/[^`]+)`")
)

// checkDependencies compares the modules that go.mod requires directly with the first columns of
// the page.
func checkDependencies(tree fs.FS) (findings []string) {
	mod, err := fs.ReadFile(tree, "go.mod")
	if err != nil {
		return []string{err.Error()}
	}
	page, err := fs.ReadFile(tree, Dependencies)
	if err != nil {
		return []string{err.Error()}
	}
	required, named := map[string]bool{}, map[string]bool{}
	for _, m := range requirement.FindAllStringSubmatch(string(mod), -1) {
		required[m[1]] = true
	}
	for line := range strings.Lines(string(page)) {
		if cells := cellsOf(line); len(cells) > 1 {
			for _, m := range argued.FindAllStringSubmatch(cells[0], -1) {
				named[m[1]] = true
			}
		}
	}
	for module := range required {
		if !named[module] {
			findings = append(findings, fmt.Sprintf("go.mod: requires %s, for which %s does not argue", module, Dependencies))
		}
	}
	for module := range named {
		if !required[module] {
			findings = append(findings, fmt.Sprintf("%s: argues for %s, which go.mod does not require", Dependencies, module))
		}
	}
	return findings
}
