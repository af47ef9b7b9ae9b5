package npm

import (
	"cmp"
	"strings"
	"testing"
)

// The order of semantic versions as OSV has it: a pre-release is lower than its release and never a
// class of its own, build metadata does not count.
func TestSemverOrder(t *testing.T) {
	rising(t, "0.0.0-0 0.0.0 0.0.1 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1-0 "+
		"1.0.1 1.9.0 1.10.0 2.0.0-x 2.0.0 1000000.0.0")
	same(t, "1.0.0+a 1.0.0+b", "1.0.0+a 1.0.0", "1.0 1.0.0", "v1.0.0 1.0.0", "1 1.0.0")
}

func rising(t *testing.T, versions string) {
	t.Helper()
	words := strings.Fields(versions)
	for i, a := range words {
		for j, b := range words {
			if got := compareTexts(t, a, b); got != cmp.Compare(i, j) {
				t.Errorf("%s against %s: %d", a, b, got)
			}
		}
	}
}

func same(t *testing.T, pairs ...string) {
	t.Helper()
	for _, p := range pairs {
		a, b, _ := strings.Cut(p, " ")
		if compareTexts(t, a, b) != 0 {
			t.Errorf("%s is not %s", a, b)
		}
	}
}

func compareTexts(t *testing.T, a, b string) int {
	t.Helper()
	x, err := parseOrdered(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := parseOrdered(b)
	if err != nil {
		t.Fatal(err)
	}
	return x.Compare(y)
}

func TestTextsWithoutOrder(t *testing.T) {
	for _, text := range []string{"", "latest", "1.2.3.4", "1.2.3-01", "1..2", "99999999999999999999.0.0"} {
		if v, err := parseOrdered(text); err == nil {
			t.Errorf("%.40q is a version: %v", text, v)
		}
	}
}

// Names are compared as they are.
func TestCanonicalNames(t *testing.T) {
	for _, name := range []string{"JSONStream", "@acme/a_b.c"} {
		if got := Definition().Canonical(name); got != name {
			t.Errorf("%s is %q", name, got)
		}
	}
}
