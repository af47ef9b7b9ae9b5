package archtest

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// forbidden are the words that no file may hold, with the reason. They are put together from parts, or this file
// would hold them.
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
