package osv

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// What a record comes to for one ecosystem, and what of it is never read.
func TestRead(t *testing.T) {
	text := `{"schema_version":"1.6.0","id":"GHSA-1","modified":"2026-11-01T00:00:00Z","aliases":["CVE-2","CVE-1","CVE-2","GHSA-1",""],
		"details":"\u0000 anything","severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
		"affected":[
		 {"package":{"ecosystem":"npm","name":"a"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"1.0.0"}]},{"type":"GIT","events":[{"introduced":"0"}]}]},
		 {"package":{"ecosystem":"npm","name":"a"},"versions":["2.0.0",""]},
		 {"package":{"ecosystem":"PyPI","name":"A_b"},"ranges":[{"type":"ECOSYSTEM","events":[{"last_affected":"3"}]}]},
		 {"package":{"ecosystem":"Debian:12","name":"a"},"versions":["9"]},
		 {"package":{"ecosystem":"npm-like","name":"a"},"versions":["9"]}]}`
	want := &Record{
		ID: "GHSA-1", Aliases: []string{"CVE-1", "CVE-2"}, Modified: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Scored: true, Score: 9.8,
		Packages: map[string][]Extent{"a": {{Ranges: [][]Event{{{Introduced, "0"}, {Fixed, "1.0.0"}}}}, {Versions: []string{"2.0.0"}}}},
	}
	got, err := Read([]byte(text), "npm", now)
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v %s", err, cmp.Diff(want, got))
	}
	want.Packages = map[string][]Extent{"A_b": {{Ranges: [][]Event{{{Introduced, "0"}, {LastAffected, "3"}}}}}}
	got, err = Read([]byte(text), "PyPI", now)
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v %s", err, cmp.Diff(want, got))
	}
	if _, err := Read([]byte(text), "Go", now); !errors.Is(err, ErrElsewhere) {
		t.Errorf("elsewhere: %v", err)
	}
}

func affecting(members string) []byte {
	return []byte(`{"id":"X","affected":[{"package":{"ecosystem":"npm","name":"a"},"versions":["1"]}]` + members + `}`)
}

// A withdrawn record is out from the time of its withdrawal on; a time that cannot be read
// withdraws nothing.
func TestWithdrawn(t *testing.T) {
	for members, out := range map[string]bool{
		``:                                      false,
		`,"withdrawn":""`:                       false,
		`,"withdrawn":null`:                     false,
		`,"withdrawn":"2026-11-30T23:59:59Z"`:   true,
		`,"withdrawn":"2026-12-01T00:00:00Z"`:   true,
		`,"withdrawn":"2026-12-01T00:00:01Z"`:   false,
		`,"withdrawn":"yes"`:                    false,
		`,"withdrawn":"2020-01-01T00:00:00.1Z"`: true,
	} {
		if _, err := Read(affecting(members), "npm", now); errors.Is(err, ErrWithdrawn) != out {
			t.Errorf("%s: %v", members, err)
		}
	}
}

func TestMalware(t *testing.T) {
	for members, malware := range map[string]bool{
		``: false, `,"aliases":["MAL-2026-1"]`: true, `,"aliases":["XMAL-1"]`: false, `,"id":"MAL-2026-2"`: true, `,"id":"mal-1"`: false,
	} {
		if r, err := Read(affecting(members), "npm", now); err != nil || r.Malware != malware {
			t.Errorf("%s: %+v, %v", members, r, err)
		}
	}
}

func TestBrokenRecords(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":              ``,
		"not JSON":             `{`,
		"a list":               `[]`,
		"no id":                `{"affected":[]}`,
		"an endless id":        `{"id":"` + strings.Repeat("x", MaxText+1) + `"}`,
		"id of another type":   `{"id":7}`,
		"package without name": `{"id":"X","affected":[{"package":{"ecosystem":"npm"}}]}`,
		"endless name":         `{"id":"X","affected":[{"package":{"ecosystem":"npm","name":"` + strings.Repeat("x", MaxText+1) + `"}}]}`,
		"affected of another":  `{"id":"X","affected":{}}`,
		"two records":          `{"id":"X"}{"id":"Y"}`,
	} {
		if r, err := Read([]byte(text), "npm", now); err == nil || errors.Is(err, ErrElsewhere) || errors.Is(err, ErrWithdrawn) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := Read(affecting(`,"database_specific":7`), "npm", now); err != nil {
		t.Errorf("what a database adds is its own affair: %v", err)
	}
	r, err := Read(affecting(`,"aliases":[`+strings.Repeat(`"A",`, 1000)+`"`+strings.Repeat("x", MaxText+1)+`"]`), "npm", now)
	if err != nil || len(r.Aliases) != 1 {
		t.Errorf("aliases: %+v, %v", r, err)
	}
}

// The score: the highest that can be read, else the label's, else the highest there is if one was
// given and cannot be read.
func TestScore(t *testing.T) {
	const (
		v2      = `AV:N/AC:L/Au:N/C:C/I:C/A:C`
		v30     = `CVSS:3.0/AV:L/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N`
		v31     = `CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:U/C:N/I:N/A:H`
		v4      = `CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N`
		garbled = `CVSS:3.1/AV:X`
	)
	for _, c := range []struct {
		name, label string
		given       []severity
		score       float64
		scored      bool
	}{
		{"nothing", "", nil, 0, false},
		{"v2", "", []severity{{"CVSS_V2", v2}}, 10, true},
		{"v2 in brackets", "", []severity{{"CVSS_V2", "(" + v2 + ")"}}, 10, true},
		{"v3.0", "", []severity{{"CVSS_V3", v30}}, 1.8, true},
		{"v3.1", "", []severity{{"CVSS_V3", v31}}, 6.5, true},
		{"v4", "", []severity{{"CVSS_V4", v4}}, 9.3, true},
		{"the highest of several", "", []severity{{"CVSS_V3", v31}, {"CVSS_V4", v4}, {"CVSS_V3", v30}}, 9.3, true},
		{"a number", "", []severity{{"CVSS_V3", "7.5"}}, 7.5, true},
		{"a number that is no score", "", []severity{{"CVSS_V3", "11"}}, 10, true},
		{"not a number", "", []severity{{"CVSS_V3", "NaN"}}, 10, true},
		{"garbled", "", []severity{{"CVSS_V3", garbled}}, 10, true},
		{"garbled beside a good one", "", []severity{{"CVSS_V3", garbled}, {"CVSS_V3", v31}}, 6.5, true},
		{"garbled with a label", "HIGH", []severity{{"CVSS_V3", garbled}}, 7, true},
		{"another scale", "", []severity{{"Ubuntu", "high"}}, 10, false},
		{"label low", "LOW", nil, 0.1, true},
		{"label moderate", "MODERATE", nil, 4, true},
		{"label medium", "Medium", nil, 4, true},
		{"label critical", "critical", nil, 9, true},
		{"label unknown", "UNKNOWN", nil, 0, false},
		{"the vector beats the label", "LOW", []severity{{"CVSS_V3", v31}}, 6.5, true},
	} {
		got, scored := score(c.given, c.label)
		if scored != c.scored || scored && got != c.score {
			t.Errorf("%s: %v, %v, want %v, %v", c.name, got, scored, c.score, c.scored)
		}
	}
}

// Whatever a source sends: no panic, and what is read can be written and read again.
func FuzzRead(f *testing.F) {
	f.Add(affecting(``))
	f.Add([]byte(`{"id":"X","severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N"}],"affected":[{"package":{"ecosystem":"npm","name":"a"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"limit":"*"}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(data, "npm", now)
		if err != nil {
			return
		}
		if r.ID == "" || len(r.Packages) == 0 || r.Score < 0 || r.Score > 10 {
			t.Errorf("%+v", r)
		}
		for _, extents := range r.Packages {
			for _, e := range extents {
				if !e.All && len(e.Ranges) == 0 && len(e.Versions) == 0 {
					t.Errorf("an extent of nothing: %+v", e)
				}
				text, err := json.Marshal(e)
				var again Extent
				if err != nil || json.Unmarshal(text, &again) != nil || cmp.Diff(e, again) != "" {
					t.Errorf("%s: %v %s", text, err, cmp.Diff(e, again))
				}
			}
		}
	})
}
