package npmserving

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Findings in the two forms in which clients read them.
func TestAuditForms(t *testing.T) {
	found := map[string][]registry.Finding{
		"a": {{
			Advisory: registry.Advisory{ID: "GHSA-1", Aliases: []string{"CVE-1"}, Scored: true, Score: 7.5, FixedIn: "1.2.0"},
			Affected: []registry.Interval{{High: "1.2.0"}, {Low: "2.0.0", WithLow: true, High: "2.1.0", WithHigh: true}, {Low: "3.0.0", WithLow: true, High: "3.0.0", WithHigh: true}},
		}},
		"@s/b": {{Advisory: registry.Advisory{ID: "MAL-2", Malware: true}, Affected: []registry.Interval{{}}}},
	}
	q, err := bulk([]byte(`{"a":["1.0.0"],"@s/b":["1.0.0"],"not a name":["1.0.0"]}`))
	if err != nil || len(q.Versions) != 2 || fmt.Sprint(q.Versions["a"]) != "[1.0.0]" {
		t.Fatalf("%v %v", q.Versions, err)
	}
	var answer map[string][]map[string]any
	if err := json.Unmarshal(q.Own(found), &answer); err != nil {
		t.Fatal(err)
	}
	a, b := answer["a"][0], answer["@s/b"][0]
	if a["vulnerable_versions"] != "<1.2.0 || >=2.0.0 <=2.1.0 || 3.0.0" || a["severity"] != "high" || a["url"] != "https://osv.dev/vulnerability/GHSA-1" ||
		a["title"] != "GHSA-1, CVE-1" || a["id"].(float64) <= 0 || a["cvss"].(map[string]any)["score"] != 7.5 {
		t.Errorf("%v", a)
	}
	if b["vulnerable_versions"] != "*" || b["severity"] != "critical" || !strings.Contains(b["title"].(string), "malware") {
		t.Errorf("%v", b)
	}
	if none := string(q.Own(nil)); none != "{}" {
		t.Errorf("nothing found: %s", none)
	}

	q, err = tree([]byte(`{"name":"x","requires":{"a":"^1"},"dependencies":{"a":{"version":"1.0.0","dependencies":{"@s/b":{"version":"1.0.0"}}},
		"c":{"version":"1.0.0","dependencies":{"a":{"version":"1.5.0"}}},"d":{"version":"file:../d"},".e":{"version":"1.0.0"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(q.Versions["a"])
	if len(q.Versions) != 3 || fmt.Sprint(q.Versions["a"]) != "[1.0.0 1.5.0]" {
		t.Errorf("%v", q.Versions)
	}
	relayed, err := q.Relayed([]byte(`{"a":[{"id":7,"title":"bad","severity":"moderate","vulnerable_versions":">= 1.0.0, < 1.2.0"}],"c":[{"id":8,"severity":"low","vulnerable_versions":"<1.0.0"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		string(q.Own(found)): `[{1.0.0 [a]}] high 1 critical 1 moderate 0 count 4 patched >=1.2.0`,
		string(relayed):      `[{1.0.0 [a]}] high 0 critical 0 moderate 1 count 4 patched <0.0.0`,
	} {
		var report struct {
			Advisories map[string]detail
			Actions    []action
			Metadata   struct {
				Vulnerabilities   map[string]int
				TotalDependencies int
			}
		}
		if err := json.Unmarshal([]byte(body), &report); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, d := range report.Advisories {
			if d.Module == "a" {
				v := report.Metadata.Vulnerabilities
				got = fmt.Sprintf("%v high %d critical %d moderate %d count %d patched %s", d.Findings, v["high"], v["critical"], v["moderate"],
					report.Metadata.TotalDependencies, d.Patched)
			}
		}
		if got != want || len(report.Actions) != len(report.Advisories) {
			t.Errorf("%s\nwant %s; %s", got, want, body)
		}
	}
	for name, body := range map[string]string{"no object": `[]`, "no JSON": `{`, "deep": strings.Repeat(`{"dependencies":{"a":`, 300) + `{}` + strings.Repeat(`}}`, 300)} {
		if _, err := tree([]byte(body)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := bulk([]byte(`{"a":"1.0.0"}`)); err == nil {
		t.Error("a version that is no list: no error")
	}
	if _, err := q.Relayed([]byte(`[]`)); err == nil {
		t.Error("an answer that is no object: no error")
	}
}

func TestSeverity(t *testing.T) {
	for want, all := range map[string][]registry.Advisory{
		"critical": {{Malware: true}, {Scored: true, Score: 9}},
		"high":     {{}, {Scored: true, Score: 7}, {Scored: true, Score: 8.9}},
		"moderate": {{Scored: true, Score: 4}, {Scored: true, Score: 6.9}},
		"low":      {{Scored: true, Score: 3.9}, {Scored: true}},
	} {
		for _, a := range all {
			if got := severity(&registry.Finding{Advisory: a}); got != want {
				t.Errorf("%+v: %s, want %s", a, got, want)
			}
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		version, ranges string
		want            bool
	}{
		{"1.0.0", "<1.0.0", false},
		{"1.0.0", "<=1.0.0", true},
		{"1.0.0", ">1.0.0", false},
		{"1.0.0", ">=1.0.0", true},
		{"1.0.0", "1.0.0", true},
		{"1.0.0", "= 1.0.0", true},
		{"1.0.1", "=1.0.0", false},
		{"1.5.0", ">=1.0.0 <1.2.0 || >=1.4.0 <2.0.0", true},
		{"1.3.0", ">= 1.0.0, < 1.2.0 || >=1.4.0 <2.0.0", false},
		{"1.3.0", "*", true},
		{"odd", "<1.0.0", true},
	} {
		if got := within(c.version, c.ranges); got != c.want {
			t.Errorf("%s in %q: %v", c.version, c.ranges, got)
		}
	}
}

// R106: every name that the words of a search may mean is known before they leave.
func TestMeant(t *testing.T) {
	for text, want := range map[string]string{
		"left pad": "left pad", "@acme/core": "@acme/core", "@acme": "@acme/any", "@acme/": "@acme/any", "scope:acme": "@acme/any", "scope:@acme": "@acme/any",
		"name:@acme/core": "@acme/core", "acme-tool@1.0.0": "acme-tool", "@acme/core@^1": "@acme/core", "x,acme-tool;y": "x acme-tool y", `"acme-tool"`: "acme-tool",
		"-acme-tool": "acme-tool", "ACME-Tool": "ACME-Tool acme-tool", "": "", "not:deprecated": "deprecated",
	} {
		if got := strings.Join(slices.Compact(meant(text)), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	s := search(url.Values{"text": {"a b"}, "size": {"20"}, "token": {"secret"}})
	if s.Path != "/-/v1/search?size=20&text=a+b" {
		t.Error(s.Path)
	}
}

// Packages that may not be shown are out of the list and of its count; the rest is as it came.
func TestFilter(t *testing.T) {
	const answer = `{"objects":[{"package":{"name":"a","version":"1.0.0","license":"MIT","date":"2020-01-02T03:04:05.000Z"},"score":{"x":1.50}},
		{"package":{"name":"b","version":"2.0.0"}},{"package":{"name":"../c"}},{"package":7}],"total":100,"time":"now"}`
	var asked []string
	out, err := filter([]byte(answer), func(name string, v registry.Version) bool {
		asked = append(asked, fmt.Sprint(name, v.Version, v.License, v.Published.Format(time.DateOnly)))
		return name != "b"
	})
	if err != nil || string(out) != `{"objects":[{"package":{"name":"a","version":"1.0.0","license":"MIT","date":"2020-01-02T03:04:05.000Z"},"score":{"x":1.50}}],"time":"now","total":97}` {
		t.Errorf("%s %v", out, err)
	}
	if fmt.Sprint(asked) != "[a1.0.0MIT2020-01-02 b2.0.00001-01-01]" {
		t.Error(asked)
	}
	for _, bad := range []string{`[]`, `{}`, `{"objects":{}}`} {
		if _, err := filter([]byte(bad), nil); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
