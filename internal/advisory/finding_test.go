package advisory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// What affects some of the versions asked about is told with all that
// it affects, each finding once, in intervals that say the same as Lookup does.
func TestFindingsOfVersions(t *testing.T) {
	d := open(t, fixtures).Data()
	for _, c := range []struct{ name, versions, want string }{
		{"colour-stream", "0.0.1 99.0.0", "MAL-2026-1001 ()"},
		{"@acme/tool", "4.2.0 4.2.3", ""},
		{"@acme/tool", "4.2.0 4.2.2", "MAL-2026-1002 [4.2.1,4.2.1] [4.2.2,4.2.2]"},
		{"left-pad", "1.3.1 1.3.2", ""}, // a fix is no finding
		{"left-pad", "1.3.0 2.0.0 1.3.2", "GHSA-aaaa-0001-aaaa (,1.3.1) [2.0.0,2.4.0) [3.0.0-beta.1,3.0.0)"},
		{"right-pad", "1.0.0", "GHSA-aaaa-0002-aaaa [1.0.0,1.9.9]"},
		{"unknown", "1.0.0", ""},
	} {
		found, err := d.Findings(registry.Package{Ecosystem: "npm", Name: c.name}, strings.Fields(c.versions))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.ID)
			for _, i := range f.Affected {
				got = append(got, spell(i))
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s %s: %q, want %q", c.name, c.versions, text, c.want)
		}
	}
	if found, err := d.Findings(registry.Package{Ecosystem: "none", Name: "left-pad"}, []string{"1.3.0"}); found != nil || err != nil {
		t.Errorf("without data: %v, %v", found, err)
	}
}

// An end between two bounds is open, and what has no order stands for itself.
func TestIntervals(t *testing.T) {
	c := &compiled{
		texts: []string{"1", "2"}, findings: []registry.Advisory{{ID: "X"}}, literal: map[string][]int32{"odd": {0}, "even": {0}, "other": {1}},
		spans: []span{{0, 2, 2, -1}, {0, 4, last, -1}, {0, first, 0, -1}, {1, 1, 3, -1}},
	}
	var got []string
	for _, i := range c.affected("X") {
		got = append(got, spell(i))
	}
	if text := strings.Join(got, " "); text != "(1,2) (2,) (,1) [even,even] [odd,odd]" {
		t.Error(text)
	}
}

func spell(i registry.Interval) string {
	if i == (registry.Interval{}) {
		return "()"
	}
	ends := map[bool]string{false: "()", true: "[]"}
	return fmt.Sprintf("%c%s,%s%c", ends[i.WithLow][0], i.Low, i.High, ends[i.WithHigh][1])
}
