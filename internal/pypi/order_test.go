package pypi

import (
	"cmp"
	"strings"
	"testing"

	pep440 "github.com/aquasecurity/go-pep440-version"
	"pgregory.net/rapid"
)

// The order of PEP 440, through every segment, from the lowest to the highest.
func TestPEP440Order(t *testing.T) {
	rising(t, "1.0.dev456 1.0a1 1.0a2.dev456 1.0a12.dev456 1.0a12 1.0b1.dev456 1.0b2 1.0b2.post345.dev456 1.0b2.post345 1.0rc1.dev456 "+
		"1.0rc1 1.0 1.0+abc.5 1.0+abc.7 1.0+5 1.0.post456.dev34 1.0.post456 1.0.1.dev1 1.0.1 1.0.15 1.1.dev1 1.1 1.1.0.1 1.10 2 2.0.1 1!0.1")
	same(t, "1.0 1", "1.0.0 1.0", "v1.0 1.0", "1.0a1 1.0.alpha-1", "1.0-1 1.0.post1", "1.0+a-b 1.0+a.b", "1.0+A_b 1.0+a.B", "1.0c1 1.0rc1", "0!1 1")
}

// Plain releases are compared here, as the library would.
func TestPlainReleasesAgreeWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string {
			var parts []string
			for range rapid.IntRange(1, 4).Draw(t, label) {
				parts = append(parts, rapid.SampledFrom([]string{"0", "1", "2", "10", "007", "18446744073709551615"}).Draw(t, "part"))
			}
			return strings.Join(parts, ".")
		}
		a, b := draw("a"), draw("b")
		x, errX := parsePEP440(a)
		y, errY := parsePEP440(b)
		if errX != nil || errY != nil || x.(*pep440Version).release == nil {
			t.Fatalf("%s, %s: %v, %v", a, b, errX, errY)
		}
		if got, want := x.Compare(y), pep440.MustParse(a).Compare(pep440.MustParse(b)); got != want {
			t.Fatalf("%s against %s: %d, the library says %d", a, b, got, want)
		}
	})
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
	x, err := parsePEP440(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := parsePEP440(b)
	if err != nil {
		t.Fatal(err)
	}
	return x.Compare(y)
}

func TestTextsWithoutOrder(t *testing.T) {
	for _, text := range []string{"", "latest", "2004d", "1.0-", "1.0+", "1..2", "+1", "1.+2", "-1", "1_0", "0x1", ".", "1.", "1.99999999999999999999"} {
		if v, err := parsePEP440(text); err == nil {
			t.Errorf("%.40q is a version: %v", text, v)
		}
	}
}
