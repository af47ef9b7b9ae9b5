package advisory

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// The fixtures: malware, several ranges, last_affected, listed versions, aliases, withdrawn, two
// ecosystems.
func TestFixtures(t *testing.T) {
	d := open(t, fixtures).Data()
	for _, c := range []struct{ ecosystem, name, version, want string }{
		// Malware: the whole package, and two versions of a sound one.
		{"npm", "colour-stream", "0.0.1", "MAL-2026-1001"},
		{"npm", "colour-stream", "99.0.0-rc.1", "MAL-2026-1001"},
		{"npm", "colour-stream", "not a version", "MAL-2026-1001"},
		{"npm", "@acme/tool", "4.2.0", ""},
		{"npm", "@acme/tool", "4.2.1", "MAL-2026-1002"},
		{"npm", "@acme/tool", "4.2.1+build.7", "MAL-2026-1002"},
		{"npm", "@acme/tool", "4.2.2", "MAL-2026-1002"},
		{"npm", "@acme/tool", "4.2.3", ""},
		{"npm", "Colour-Stream", "0.0.1", ""}, // npm's names are compared as they are
		// Several ranges, in one entry and in two.
		{"npm", "left-pad", "0.0.0-alpha", "GHSA-aaaa-0001-aaaa<1.3.1"},
		{"npm", "left-pad", "1.3.0", "GHSA-aaaa-0001-aaaa<1.3.1"},
		// a pre-release is lower than its release
		{"npm", "left-pad", "1.3.1-0", "GHSA-aaaa-0001-aaaa<1.3.1"},
		{"npm", "left-pad", "1.3.1", "GHSA-aaaa-0001-aaaa fix"},
		{"npm", "left-pad", "1.3.2", ""},
		{"npm", "left-pad", "2.0.0-rc.1", ""},
		{"npm", "left-pad", "2.0.0", "GHSA-aaaa-0001-aaaa<2.4.0"},
		{"npm", "left-pad", "2.4.0", "GHSA-aaaa-0001-aaaa fix"},
		{"npm", "left-pad", "3.0.0-beta.0", ""},
		{"npm", "left-pad", "3.0.0-beta.1", "GHSA-aaaa-0001-aaaa<3.0.0"},
		{"npm", "left-pad", "3.0.0-beta.11", "GHSA-aaaa-0001-aaaa<3.0.0"},
		{"npm", "left-pad", "3.0.0", "GHSA-aaaa-0001-aaaa fix"},
		// last_affected is affected itself, and names no fix.
		{"npm", "right-pad", "0.9.9", ""},
		{"npm", "right-pad", "1.0.0", "GHSA-aaaa-0002-aaaa"},
		{"npm", "right-pad", "1.9.9", "GHSA-aaaa-0002-aaaa"},
		{"npm", "right-pad", "1.9.10", ""},
		{"npm", "right-pad", "2.0.0", ""},
		// Withdrawn.
		{"npm", "innocent", "1.0.0", ""},
		// Two ecosystems in one record, each in its own order and spelling.
		{"npm", "twin", "0.9.0", "GHSA-aaaa-0006-aaaa<1.0.0"},
		{"npm", "twin", "1.0.0", "GHSA-aaaa-0006-aaaa fix"},
		{"pypi", "twin-lib", "1.0.0", "GHSA-aaaa-0006-aaaa<2.0"},
		{"pypi", "twin-lib", "2.0rc1", "GHSA-aaaa-0006-aaaa<2.0"},
		{"pypi", "twin-lib", "2.0.0", "GHSA-aaaa-0006-aaaa fix"},
		{"pypi", "twin-lib", "2.0.post1", ""},
		{"pypi", "twin", "0.9.0", ""},
		// Aliases: one finding, though its records disagree about the fix.
		{"pypi", "requestor", "2.0.dev0", "GHSA-bbbb-0007-bbbb<2.31.0"},
		{"pypi", "requestor", "2.0", "GHSA-bbbb-0007-bbbb<2.31.1"},
		{"pypi", "requestor", "2.31.0", "GHSA-bbbb-0007-bbbb<2.31.1 fix"},
		{"pypi", "requestor", "2.31.1", "GHSA-bbbb-0007-bbbb fix"},
		{"pypi", "requestor", "2.31.1+local", ""},
		{"pypi", "requestor", "1.9", ""},
		// Commits are no versions; what is listed counts, also when it has no order.
		{"pypi", "zoneinfo-data", "2004d", "PYSEC-2026-8"},
		{"pypi", "zoneinfo-data", "2024.1.0", "PYSEC-2026-8"},
		{"pypi", "zoneinfo-data", "2024.2", ""},
		{"pypi", "zoneinfo-data", "2004e", "PYSEC-2026-8"}, // no order: it may be any
		{"pypi", "unknown", "1.0", ""},
		{"gem", "left-pad", "1.3.0", ""},
	} {
		for range 2 { // the second answer comes from memory
			if got := say(t, d, c.ecosystem, c.name, c.version); got != c.want {
				t.Errorf("%s:%s@%s: %q, want %q", c.ecosystem, c.name, c.version, got, c.want)
			}
		}
	}
}

// What a finding says of itself: the score of an alias counts for all, malware is told, a severity
// that cannot be read is the highest.
func TestFindings(t *testing.T) {
	d := open(t, fixtures).Data()
	for _, c := range []struct {
		ecosystem, name, version string
		want                     registry.Advisory
	}{
		{"npm", "colour-stream", "1.0.0", registry.Advisory{ID: "MAL-2026-1001", Malware: true, Affects: true}},
		{"npm", "left-pad", "1.0.0", registry.Advisory{ID: "GHSA-aaaa-0001-aaaa", Aliases: []string{"CVE-2026-0001"}, Scored: true, Score: 9.8, Affects: true, FixedIn: "1.3.1"}},
		{"npm", "right-pad", "1.0.0", registry.Advisory{ID: "GHSA-aaaa-0002-aaaa", Scored: true, Score: 9.3, Affects: true}},
		{"npm", "mid-pad", "1.0.0", registry.Advisory{ID: "GHSA-aaaa-0003-aaaa", Scored: true, Score: 4, Affects: true}},
		{"npm", "no-score", "1.0.0", registry.Advisory{ID: "GHSA-aaaa-0004-aaaa", Affects: true, FixedIn: "5.0.0"}},
		{"pypi", "requestor", "2.0", registry.Advisory{ID: "GHSA-bbbb-0007-bbbb", Aliases: []string{"CVE-2026-0007", "PYSEC-2026-7"}, Scored: true, Score: 6.5, Affects: true, FixedIn: "2.31.1"}},
		{"pypi", "zoneinfo-data", "2024.1", registry.Advisory{ID: "PYSEC-2026-8", Scored: true, Score: 10, Affects: true}},
		{"pypi", "req-uests", "3.0", registry.Advisory{ID: "MAL-2026-2001", Aliases: []string{"GHSA-bbbb-0009-bbbb"}, Malware: true, Affects: true}},
	} {
		got, err := d.Lookup(registry.Package{Ecosystem: c.ecosystem, Name: c.name}, c.version)
		if err != nil || len(got) != 1 || !equal(got[0], c.want) {
			t.Errorf("%s@%s: %+v, %v, want %+v", c.name, c.version, got, err, c.want)
		}
	}
}

func equal(a, b registry.Advisory) bool {
	return a.ID == b.ID && slices.Equal(a.Aliases, b.Aliases) && a.Malware == b.Malware && a.Scored == b.Scored && a.Score == b.Score &&
		a.Affects == b.Affects && a.Fixes == b.Fixes && a.FixedIn == b.FixedIn
}

// Ranges as they really come: events in any order, odd bounds, limits, nothing at all. A doubt is
// never in favour of the version.
func TestRanges(t *testing.T) {
	for _, c := range []struct {
		name, affected string
		hit, miss      []string
	}{
		{"events in any order", `"ranges":[{"type":"SEMVER","events":[{"fixed":"3.0.0"},{"introduced":"2.0.0"},{"fixed":"1.0.0"},{"introduced":"0"}]}]`, []string{"0.1.0", "2.0.0", "2.9.9"}, []string{"1.0.0", "1.5.0", "3.0.0"}},
		{"several events in one object", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0","fixed":"2.0.0"}]}]`, []string{"1.0.0"}, []string{"0.9.0", "2.0.0"}},
		{"introduced twice", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"introduced":"2.0.0"},{"fixed":"3.0.0"}]}]`, []string{"1.0.0", "1.5.0", "2.0.0"}, []string{"3.0.0"}},
		{"fixed where it was introduced", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"fixed":"1.0.0"}]}]`, nil, []string{"0.9.0", "1.0.0", "1.1.0"}},
		{"last affected where it was introduced", `"ranges":[{"type":"SEMVER","events":[{"last_affected":"1.0.0"},{"introduced":"1.0.0"}]}]`, []string{"1.0.0"}, []string{"0.9.9", "1.0.1"}},
		{"never introduced", `"ranges":[{"type":"SEMVER","events":[{"fixed":"2.0.0"}]}]`, []string{"0.0.1", "1.9.9"}, []string{"2.0.0"}},
		{"never fixed", `"ranges":[{"type":"SEMVER","events":[{"introduced":"2.0.0"}]}]`, []string{"2.0.0", "99.0.0"}, []string{"1.9.9"}},
		{"a limit", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"limit":"2.0.0"}]}]`, []string{"1.9.9"}, []string{"2.0.0", "3.0.0"}},
		{"two limits", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"limit":"2.0.0"},{"limit":"3.0.0"}]}]`, []string{"2.9.9"}, []string{"3.0.0"}},
		{"no limit", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"limit":"*"},{"limit":"2.0.0"}]}]`, []string{"9.0.0"}, []string{"0.9.0"}},
		{"an end that is no version", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"fixed":"next week"}]}]`, []string{"1.0.0", "99.0.0"}, []string{"0.9.0"}},
		{"a beginning that is no version", `"ranges":[{"type":"SEMVER","events":[{"introduced":"long ago"},{"fixed":"2.0.0"}]}]`, []string{"0.0.1", "1.9.0"}, []string{"2.0.0"}},
		{"a limit that is no version", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"limit":"soon"}]}]`, []string{"9.0.0"}, nil},
		{"a short bound", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1"},{"fixed":"v2.1"}]}]`, []string{"1.0.0", "2.0.9"}, []string{"2.1.0"}},
		{"no events", `"ranges":[{"type":"SEMVER","events":[]}]`, []string{"1.0.0", "99.0.0"}, nil},
		{"nothing at all", `"database_specific":{}`, []string{"1.0.0", "99.0.0"}, nil},
		{"commits only", `"ranges":[{"type":"GIT","events":[{"introduced":"0"},{"fixed":"abc"}]}]`, []string{"1.0.0"}, nil},
		{"commits and a list", `"ranges":[{"type":"GIT","events":[{"introduced":"0"}]}],"versions":["1.0.0"]`, []string{"1.0.0"}, []string{"1.0.1"}},
		{"a list and a range", `"ranges":[{"type":"SEMVER","events":[{"introduced":"2.0.0"},{"fixed":"2.1.0"}]}],"versions":["1.0.0"]`, []string{"1.0.0", "2.0.5"}, []string{"1.0.1", "2.1.0"}},
		{"large numbers", `"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"},{"fixed":"1.0.9007199254740993"}]}]`, []string{"1.0.9007199254740992"}, []string{"1.0.9007199254740993"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, zipOf(t, oneRecord("GHSA-x", "x", c.affected), `{"id":"PY","affected":[{"package":{"ecosystem":"PyPI","name":"p"},"versions":["1"]}]}`)).Data()
			for _, v := range c.hit {
				if got, err := d.Lookup(registry.Package{Ecosystem: "npm", Name: "x"}, v); err != nil || len(got) != 1 || !got[0].Affects {
					t.Errorf("%s is not affected: %+v, %v", v, got, err)
				}
			}
			for _, v := range c.miss {
				if got, err := d.Lookup(registry.Package{Ecosystem: "npm", Name: "x"}, v); err != nil || len(got) == 1 && got[0].Affects {
					t.Errorf("%s is affected: %+v, %v", v, got, err)
				}
			}
		})
	}
}

// Aliases chain: A names B, C names B, so all three are one, whatever the order in which they come.
func TestAliasesChain(t *testing.T) {
	a := `{"id":"A","aliases":["B"],"affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["1.0.0"]}]}`
	b := `{"id":"B","affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["1.0.0"]}],"severity":[{"type":"CVSS_V3","score":"5.0"}]}`
	c := `{"id":"C","aliases":["B","MAL-1"],"affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["2.0.0"]}]}`
	other := `{"id":"D","affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["2.0.0"]}]}`
	py := `{"id":"PY","affected":[{"package":{"ecosystem":"PyPI","name":"p"},"versions":["1"]}]}`
	for _, order := range [][]string{{a, b, c, other, py}, {c, a, other, b, py}, {other, c, b, a, py}} {
		d := open(t, zipOf(t, order...)).Data()
		if got := say(t, d, "npm", "x", "2.0.0"); got != "B, D" {
			t.Errorf("%q", got)
		}
		found, _ := d.Lookup(registry.Package{Ecosystem: "npm", Name: "x"}, "1.0.0")
		if len(found) != 1 || !found[0].Malware || found[0].Score != 5 || !slices.Equal(found[0].Aliases, []string{"A", "C", "MAL-1"}) {
			t.Errorf("%+v", found)
		}
	}
}

func TestNoDataIsNotLoaded(t *testing.T) {
	for _, d := range []*Data{nil, {}, {indexes: map[string]*index{}}} {
		if d.Loaded("npm") {
			t.Error("loaded")
		}
		if got, err := d.Lookup(registry.Package{Ecosystem: "npm", Name: "x"}, "1.0.0"); got != nil || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// Stored text that cannot be read is an error at each look-up, never an empty answer.
func TestBrokenFactIsAnError(t *testing.T) {
	for name, f := range map[string]fact{
		"extent":  {&storedAdvisory{id: "A", aliases: "[]"}, "{"},
		"aliases": {&storedAdvisory{id: "A", aliases: "?"}, "{}"},
	} {
		x := &index{ecosystem: npmOnly[0], packages: map[string]*entry{"x": {facts: []fact{f}}}}
		d := &Data{indexes: map[string]*index{"npm": x}}
		for range 2 {
			if got, err := d.Lookup(registry.Package{Ecosystem: "npm", Name: "x"}, "1.0.0"); err == nil || got != nil {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
}

// The answers that are kept for one package are bounded, and right beyond the bound.
func TestMemoIsBounded(t *testing.T) {
	d := open(t, fixtures).Data()
	for i := range 2 * maxMemo {
		version := "1.3." + string(rune('1'+i%9)) + "-x." + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		say(t, d, "npm", "left-pad", version)
	}
	if n := len(d.indexes["npm"].packages["left-pad"].compiled.memo); n != maxMemo {
		t.Errorf("%d answers are kept", n)
	}
	if got := say(t, d, "npm", "left-pad", "1.3.1"); got != "GHSA-aaaa-0001-aaaa fix" {
		t.Errorf("beyond the bound: %q", got)
	}
	// versions are parts of documents, which they must not hold in memory
	document := strings.Repeat("1.0.0", 1000)
	d = open(t, fixtures).Data()
	say(t, d, "npm", "left-pad", document[:5])
	for version := range d.indexes["npm"].packages["left-pad"].compiled.memo {
		if unsafe.StringData(version) == unsafe.StringData(document) {
			t.Error("a document is kept for its version's sake")
		}
	}
}
