package source_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every code that this program can print stands in docs/source.md.
func TestCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/source.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?m)^\s*(?:const )?[cC]ode\w+ += "([a-z0-9-]+)"`)
	found := 0
	for _, file := range []string{"failure.go", "plan/request.go", "corpus/corpus.go", "review/resolve.go", "review/bundle.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range code.FindAllStringSubmatch(string(text), -1) {
			found++
			if !strings.Contains(string(page), "`"+m[1]+"`") {
				t.Errorf("%s of %s is not in docs/source.md", m[1], file)
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d codes found", found)
	}
}
