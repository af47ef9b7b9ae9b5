package packument

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// plainVersions makes "versions" of a list; "!" behind a version deprecates it.
func plainVersions(list string) string {
	var members []string
	for v := range strings.FieldsSeq(list) {
		if version, deprecated := strings.CutSuffix(v, "!"); deprecated {
			members = append(members, versionOf("x", version, `"deprecated":"use another"`))
		} else {
			members = append(members, versionOf("x", v))
		}
	}
	return strings.Join(members, ",")
}

func tagsOf(t *testing.T, parts ...registry.Part) object {
	t.Helper()
	full := decoded(t, rendered(t, "x", npm.FormFull, parts...).Body)["dist-tags"]
	short := decoded(t, rendered(t, "x", npm.FormAbbreviated, parts...).Body)["dist-tags"]
	if fmt.Sprint(full) != fmt.Sprint(short) {
		t.Errorf("the forms disagree about dist-tags: %v, %v", full, short)
	}
	for name, version := range full.(object) {
		part, i, ok := ResolveTag(registry.View{Package: pkg("x"), Parts: parts}, name)
		if !ok || parts[part].Document.Versions()[i].Version != version {
			t.Errorf("ResolveTag(%q) = %d, %d, %v, but the listing says %v", name, part, i, ok, version)
		}
	}
	return full.(object)
}

// R43 (npm): latest is computed over the versions that are served, and never points to one that is
// not.
func TestLatestFallsBack(t *testing.T) {
	for _, c := range []struct{ versions, latest, withheld, want string }{
		{"1.0.0 2.0.0", "2.0.0", "", "2.0.0"},
		{"1.0.0 2.0.0", "1.0.0", "", "1.0.0"}, // the upstream's choice stands
		{"1.0.0 2.0.0 2.0.1", "2.0.1", "2.0.1", "2.0.0"},
		// by precedence, not by order or spelling
		{"2.0.0 1.0.0 10.0.0 9.9.9", "10.0.0", "10.0.0", "9.9.9"},
		{"1.0.0 2.0.0-rc.1 2.0.0", "2.0.0", "2.0.0", "1.0.0"}, // stable before prerelease
		{"1.0.0 1.1.0! 2.0.0", "2.0.0", "2.0.0", "1.0.0"},     // live before deprecated
		// never newer than the upstream's latest
		{"1.0.0 2.0.0 3.0.0", "2.0.0", "2.0.0", "1.0.0"},
		{"2.0.0 3.0.0 4.0.0", "2.0.0", "2.0.0", "4.0.0"},       // unless there is nothing else
		{"1.0.0-a 1.0.0-b 1.0.0", "1.0.0", "1.0.0", "1.0.0-b"}, // only prereleases are left
		{"1.0.0-rc.9 1.0.0-rc.10 1.0.0-rc.11", "1.0.0-rc.11", "1.0.0-rc.11", "1.0.0-rc.10"},
		{"1.0.0! 2.0.0", "2.0.0", "2.0.0", "1.0.0"},            // deprecated is better than none
		{"1.0.0! 1.5.0-rc.1 2.0.0", "2.0.0", "2.0.0", "1.0.0"}, // and stable
		{"1.0.0 2.0.0", "9.9.9", "", "2.0.0"},                  // it pointed to nothing
		// rw-024: there was none
		{"1.0.0 2.0.0", "", "", ""},
		// rw-023
		{"6.0.2 6.0.3 6.1.0-dev.1 6.1.0-dev.2", "6.0.3", "6.0.3", "6.0.2"},
		{"1.0.0 2.0.0", "nonsense", "", "2.0.0"},
		{"1.0.0-rc.1 1.0.0-rc.2 1.0.0", "1.0.0-rc.2", "1.0.0-rc.2", "1.0.0-rc.1"}, // 1.0.0 is newer
		// what is not semver comes last
		{"1.0beta 0.0.1 2.0.0", "2.0.0", "2.0.0", "0.0.1"},
		{"1.0beta 2.0.0", "2.0.0", "2.0.0", "1.0beta"},
		{"1.0.0 2.0.0", "2.0.0", "1.0.0 2.0.0", ""},
		{"", "", "", ""},
	} {
		tags := `"dist-tags":{}`
		if c.latest != "" {
			tags = `"dist-tags":{"latest":"` + c.latest + `"}`
		}
		doc := scanned(t, "x", listingOf("x", plainVersions(c.versions), tags))
		got := tagsOf(t, keeping(doc, but(strings.Fields(c.withheld)...)))
		if c.want == "" && len(got) != 0 || c.want != "" && got["latest"] != c.want {
			t.Errorf("%q of %q without %q: %v, want %q", c.latest, c.versions, c.withheld, got, c.want)
		}
	}
}

// Other dist-tags whose version is withheld move down their line; those that point to nothing are
// dropped; of one given twice the last counts.
func TestTagsAreRepaired(t *testing.T) {
	doc := scanned(t, "x", listingOf("x", plainVersions("1.0.0 2.0.0 3.0.0"),
		`"dist-tags":{"latest":"3.0.0","next":"3.0.0","old":"1.0.0","gone":"0.0.1","odd \u00e9":"2.0.0","twice":"3.0.0","twice":"1.0.0","number":7}`))
	if got := fmt.Sprint(tagsOf(t, keeping(doc, but("3.0.0")))); got != "map[latest:2.0.0 next:2.0.0 odd é:2.0.0 old:1.0.0 twice:1.0.0]" {
		t.Error(got)
	}
	if got := fmt.Sprint(tagsOf(t, keeping(scanned(t, "x", listingOf("x", plainVersions("1.0.0"), `"dist-tags":[]`)), all))); got != "map[]" {
		t.Error(got)
	}
}

// A tag moves as the clients' own age rules move it: to the newest served version of its line that
// is not above it. None is made up (rw-023, rw-024).
func TestTagsFallBack(t *testing.T) {
	for _, c := range []struct{ versions, tag, withheld, want string }{
		{"1.0.0 1.1.0 2.0.0", "2.0.0", "2.0.0", "1.1.0"},
		{"1.0.0 2.0.0 3.0.0", "2.0.0", "2.0.0", "1.0.0"}, // never up
		{"1.0.0 2.0.0-beta.1 2.0.0-beta.2", "2.0.0-beta.2", "2.0.0-beta.2", "2.0.0-beta.1"},
		// another line, and a stable one
		{"1.0.0 2.0.0-rc.1 2.0.0-beta.2", "2.0.0-beta.2", "2.0.0-beta.2", ""},
		{"1.0.0-beta.9 2.0.0-beta.10 2.0.0-beta.2", "2.0.0-beta.10", "2.0.0-beta.10", "2.0.0-beta.2"},
		{"0.0.0-canary-aa-20250101 0.0.0-canary-bb-20250102", "0.0.0-canary-bb-20250102", "0.0.0-canary-bb-20250102", "0.0.0-canary-aa-20250101"},
		{"1.0.0-20250101 1.0.0-20250102", "1.0.0-20250102", "1.0.0-20250102", "1.0.0-20250101"},
		{"1.0.0 1.1.0! 2.0.0", "2.0.0", "2.0.0", "1.0.0"}, // live before deprecated
		{"1.0.0! 2.0.0", "2.0.0", "2.0.0", "1.0.0"},
		{"1.0.0 2.0.0", "9.9.9", "", ""}, // it points to nothing
		{"1.0.0 1.0beta", "1.0beta", "1.0beta", ""},
		{"1.0.0+b 2.0.0+a", "2.0.0+a", "2.0.0+a", "1.0.0+b"},
	} {
		doc := scanned(t, "x", listingOf("x", plainVersions(c.versions), `"dist-tags":{"next":"`+c.tag+`"}`))
		got := tagsOf(t, keeping(doc, but(strings.Fields(c.withheld)...)))
		want := "map[]"
		if c.want != "" {
			want = "map[next:" + c.want + "]"
		}
		if fmt.Sprint(got) != want {
			t.Errorf("next %q of %q without %q: %v, want %s", c.tag, c.versions, c.withheld, got, want)
		}
	}
}

// The mirror's own tag is not its publishers': clients do not see it, and where it is all there is,
// latest is computed.
func TestMirrorTag(t *testing.T) {
	private := scanned(t, "x", listingOf("x", plainVersions("1.0.0 2.0.0"), `"dist-tags":{"ecluse-mirror":"1.0.0"}`))
	if got := fmt.Sprint(tagsOf(t, keeping(private, all))); got != "map[latest:2.0.0]" {
		t.Error(got)
	}
	public := scanned(t, "x", listingOf("x", plainVersions("1.0.0 2.0.0"), `"dist-tags":{"beta":"2.0.0"}`))
	if got := fmt.Sprint(tagsOf(t, keeping(private, all), keeping(public, all))); got != "map[beta:2.0.0]" {
		t.Error(got)
	}
}

// Private first: a version that two documents hold is the earlier one's in everything, and one that
// the earlier one holds but may not serve is not taken from the later one.
func TestMerge(t *testing.T) {
	private := listingOf("x", versionOf("x", "1.0.0", `"from":"private"`)+","+versionOf("x", "1.5.0", `"from":"private"`)+","+versionOf("x", "3.0.0", `"from":"private"`),
		`"dist-tags":{"latest":"1.0.0","inner":"1.5.0","gone":"3.0.0"}`, `"description":"private"`,
		`"time":{"created":"2019-01-01T00:00:00Z","modified":"2019-06-01T00:00:00Z","1.0.0":"2019-01-01T00:00:00Z"}`)
	public := listingOf("x", versionOf("x", "1.0.0", `"from":"public"`)+","+versionOf("x", "2.0.0", `"from":"public"`)+","+versionOf("x", "3.0.0", `"from":"public"`),
		`"dist-tags":{"latest":"2.0.0","next":"2.0.0","gone":"2.0.0","inner":"2.0.0"}`, `"description":"public"`,
		`"time":{"created":"2001-01-01T00:00:00Z","modified":"2021-06-01T00:00:00Z","1.0.0":"2020-01-01T00:00:00Z","2.0.0":"2021-01-01T00:00:00Z"}`)
	parts := []registry.Part{keeping(scanned(t, "x", private), but("3.0.0")), keeping(scanned(t, "x", public), all)}
	r := rendered(t, "x", npm.FormFull, parts...)
	got := decoded(t, r.Body)
	versions := got["versions"].(object)
	if r.Versions != 3 || len(versions) != 3 || versions["1.0.0"].(object)["from"] != "private" || versions["1.5.0"] == nil || versions["2.0.0"].(object)["from"] != "public" {
		t.Errorf("%v", versions)
	}
	if got["description"] != "private" {
		t.Errorf("description %v", got["description"])
	}
	if tags := fmt.Sprint(tagsOf(t, parts...)); tags != "map[gone:2.0.0 inner:1.5.0 latest:1.0.0 next:2.0.0]" {
		t.Errorf("dist-tags %v", tags)
	}
	// modified must not say that nothing is younger than 2019: the public version is.
	if times := fmt.Sprint(got["time"]); times != "map[1.0.0:2019-01-01T00:00:00Z 2.0.0:2021-01-01T00:00:00Z created:2019-01-01T00:00:00Z modified:2021-06-01T00:00:00Z]" {
		t.Errorf("time %v", times)
	}
	short := decoded(t, rendered(t, "x", npm.FormAbbreviated, parts...).Body)
	if len(short["versions"].(object)) != 3 || short["modified"] != "2021-06-01T00:00:00Z" {
		t.Errorf("%v", short)
	}
}

// When the private latest may not be served, the next document's counts before the fallback.
func TestMergedLatest(t *testing.T) {
	private := scanned(t, "x", listingOf("x", plainVersions("1.0.0 5.0.0"), `"dist-tags":{"latest":"5.0.0"}`))
	public := scanned(t, "x", listingOf("x", plainVersions("2.0.0 3.0.0"), `"dist-tags":{"latest":"3.0.0"}`))
	if got := tagsOf(t, keeping(private, but("5.0.0")), keeping(public, all))["latest"]; got != "3.0.0" {
		t.Errorf("latest = %v", got)
	}
	if got := tagsOf(t, keeping(private, but("5.0.0")), keeping(public, but("3.0.0")))["latest"]; got != "2.0.0" {
		t.Errorf("latest = %v", got)
	}
}

func TestDivergence(t *testing.T) {
	const (
		a = "sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
		b = "sha512-BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA=="
		c = "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA="
		d = "sha1-BBBBBBBBBBBBBBBBBBBBBBBBBBA="
	)
	for _, test := range []struct {
		private, public string
		want            int
	}{
		{a, a, 0},
		{a, b, 1},
		{a, c, 0}, // not comparable
		{"", a, 0},
		{a + " " + c, a + " " + d, 0}, // the strongest decides
		{a + " " + c, b + " " + c, 1},
		{a + " " + b, b, 0}, // one of several is enough
		{c, d, 1},
	} {
		of := func(integrity string) registry.Part {
			return keeping(scanned(t, "x", listingOf("x", `"1.0.0":{"dist":{"tarball":"t","integrity":"`+integrity+`"}}`)), all)
		}
		if r := rendered(t, "x", npm.FormFull, of(test.private), of(test.public)); r.Divergent != test.want || r.Versions != 1 {
			t.Errorf("%.12s and %.12s: %d divergent of %d", test.private, test.public, r.Divergent, r.Versions)
		}
	}
}

func TestReadCore(t *testing.T) {
	for version, want := range map[string]core{
		"1.2.3": {true, 1, 2, 3, false}, "0.0.0": {known: true}, "10.20.30-rc.1": {true, 10, 20, 30, true}, "1.2.3+b-1": {true, 1, 2, 3, false},
		"1.2.3-a+b": {true, 1, 2, 3, true}, "9007199254740991.0.1": {true, 1<<53 - 1, 0, 1, false}, "9007199254740992.0.1": {}, "99999999999999999999.0.0": {},
		"": {}, "1": {}, "1.": {}, "1.2": {}, "1.2.": {}, "1.2.x": {}, "01.2.3": {}, "1.02.3": {}, "1.2.03": {}, "1.2.3.4": {}, "v1.2.3": {}, " 1.2.3": {}, "-1.2.3": {}, "1..3": {}, "1.2.3 ": {},
	} {
		if got := readCore(version); got != want {
			t.Errorf("%q: %+v instead of %+v", version, got, want)
		}
	}
}
