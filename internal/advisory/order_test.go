package advisory

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
)

// A version of any length is not looked at: reading one costs time.
func TestLongTextIsNoVersion(t *testing.T) {
	for _, e := range ecosystemtest.All() {
		if v, err := (&compiled{ecosystem: e}).parse(strings.Repeat("1", 300)); err == nil {
			t.Errorf("%s: %v", e.Name, v)
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
		of, versions := ecosystemtest.Named(ecosystem), pool[ecosystem]
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
		c, err := compilePackage(of, facts)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range versions {
			v, _ := of.ParseVersion(text)
			affected, fixes := false, false
			for _, w := range windows {
				from, _ := of.ParseVersion(w.from)
				to, _ := of.ParseVersion(w.to)
				// An introduction after the fix stays open: the fix was for what came before it.
				affected = affected || v.Compare(from) >= 0 && (v.Compare(to) < 0 || to.Compare(from) < 0)
				fixes = fixes || v.Compare(to) == 0
			}
			got := c.lookup(text)
			if affected != (len(got) > 0 && got[0].Affects) || fixes != (len(got) > 0 && got[0].Fixes) {
				t.Fatalf("%s in %v: %+v, want affected=%v fixes=%v", text, windows, got, affected, fixes)
			}
		}
	})
}
