package policy

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docs/rules.md names every type, with its precedence and its keys, in their order, and nothing
// else.
func TestRulesPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, typ := range Types() {
		p, _ := DefaultPrecedence(typ)
		want = append(want, typ+" "+strconv.Itoa(p)+" "+strings.Join(Fields(typ), " "))
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\d+) \\| (.*?) ?\\| ").FindAllStringSubmatch(string(text), -1) {
		got = append(got, m[1]+" "+m[2]+" "+strings.ReplaceAll(strings.ReplaceAll(m[3], "`", ""), ",", ""))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the page says\n%s\nthe code\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
