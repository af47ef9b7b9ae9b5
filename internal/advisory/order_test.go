package advisory

import (
	"cmp"
	"strings"
	"testing"

	pep440 "github.com/aquasecurity/go-pep440-version"
	"pgregory.net/rapid"
)

// The order of PEP 440, through every segment, from the lowest to the highest.
func TestPEP440Order(t *testing.T) {
	rising(t, "pypi", "1.0.dev456 1.0a1 1.0a2.dev456 1.0a12.dev456 1.0a12 1.0b1.dev456 1.0b2 1.0b2.post345.dev456 1.0b2.post345 1.0rc1.dev456 "+
		"1.0rc1 1.0 1.0+abc.5 1.0+abc.7 1.0+5 1.0.post456.dev34 1.0.post456 1.0.1.dev1 1.0.1 1.0.15 1.1.dev1 1.1 1.1.0.1 1.10 2 2.0.1 1!0.1")
	same(t, "pypi", "1.0 1", "1.0.0 1.0", "v1.0 1.0", "1.0a1 1.0.alpha-1", "1.0-1 1.0.post1", "1.0+a-b 1.0+a.b", "1.0+A_b 1.0+a.B", "1.0c1 1.0rc1", "0!1 1")
}

// The order of semantic versions as OSV has it: a pre-release is lower than its release and never a
// class of its own, build metadata does not count.
func TestSemverOrder(t *testing.T) {
	rising(t, "npm", "0.0.0-0 0.0.0 0.0.1 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1-0 "+
		"1.0.1 1.9.0 1.10.0 2.0.0-x 2.0.0 1000000.0.0")
	same(t, "npm", "1.0.0+a 1.0.0+b", "1.0.0+a 1.0.0", "1.0 1.0.0", "v1.0.0 1.0.0", "1 1.0.0")
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
		if got, want := x.compare(y), pep440.MustParse(a).Compare(pep440.MustParse(b)); got != want {
			t.Fatalf("%s against %s: %d, the library says %d", a, b, got, want)
		}
	})
}

func rising(t *testing.T, ecosystem, versions string) {
	t.Helper()
	words := strings.Fields(versions)
	for i, a := range words {
		for j, b := range words {
			if got := compareTexts(t, ecosystem, a, b); got != cmp.Compare(i, j) {
				t.Errorf("%s: %s against %s: %d", ecosystem, a, b, got)
			}
		}
	}
}

func same(t *testing.T, ecosystem string, pairs ...string) {
	t.Helper()
	for _, p := range pairs {
		a, b, _ := strings.Cut(p, " ")
		if compareTexts(t, ecosystem, a, b) != 0 {
			t.Errorf("%s: %s is not %s", ecosystem, a, b)
		}
	}
}

func compareTexts(t *testing.T, ecosystem, a, b string) int {
	t.Helper()
	x, err := parseVersion(ecosystem, a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := parseVersion(ecosystem, b)
	if err != nil {
		t.Fatal(err)
	}
	return x.compare(y)
}

func TestNoVersions(t *testing.T) {
	for ecosystem, texts := range map[string][]string{
		"npm":  {"", "latest", "1.2.3.4", "1.2.3-01", "1..2", strings.Repeat("1", 300), "99999999999999999999.0.0"},
		"pypi": {"", "latest", "2004d", "1.0-", "1.0+", "1..2", "+1", "1.+2", "-1", "1_0", "0x1", ".", "1.", strings.Repeat("1", 300), "1.99999999999999999999"},
	} {
		for _, text := range texts {
			if v, err := parseVersion(ecosystem, text); err == nil {
				t.Errorf("%s: %.40q is a version: %v", ecosystem, text, v)
			}
		}
	}
}

// Places among sorted bounds say the same as comparing with each bound: the look-up agrees with the
// plain reading of the schema.
func TestPlacesAgreeWithThePlainReading(t *testing.T) {
	pool := map[string][]string{
		"npm":  strings.Fields("0.1.0 1.0.0-a 1.0.0 1.0.1 1.1.0 2.0.0-rc.1 2.0.0 3.0.0"),
		"pypi": strings.Fields("0.1 1.0.dev1 1.0a1 1.0 1.0.post1 1.1 2.0rc1 2.0 1!0"),
	}
	rapid.Check(t, func(t *rapid.T) {
		ecosystem := rapid.SampledFrom([]string{"npm", "pypi"}).Draw(t, "ecosystem")
		versions := pool[ecosystem]
		type window struct{ from, to string }
		var windows []window
		var facts []fact
		var ranges []string
		for range rapid.IntRange(1, 4).Draw(t, "windows") {
			w := window{rapid.SampledFrom(versions).Draw(t, "from"), rapid.SampledFrom(versions).Draw(t, "to")}
			windows = append(windows, w)
			ranges = append(ranges, `[["introduced","`+w.from+`"],["fixed","`+w.to+`"]]`)
		}
		facts = append(facts, fact{&storedAdvisory{id: "A", aliases: "[]"}, `{"ranges":[` + strings.Join(ranges, ",") + `]}`})
		c, err := compilePackage(ecosystem, facts)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range versions {
			v, _ := parseVersion(ecosystem, text)
			affected, fixes := false, false
			for _, w := range windows {
				from, _ := parseVersion(ecosystem, w.from)
				to, _ := parseVersion(ecosystem, w.to)
				// An introduction after the fix stays open: the fix was for what came before it.
				affected = affected || v.compare(from) >= 0 && (v.compare(to) < 0 || to.compare(from) < 0)
				fixes = fixes || v.compare(to) == 0
			}
			got := c.lookup(text)
			if affected != (len(got) > 0 && got[0].Affects) || fixes != (len(got) > 0 && got[0].Fixes) {
				t.Fatalf("%s in %v: %+v, want affected=%v fixes=%v", text, windows, got, affected, fixes)
			}
		}
	})
}
