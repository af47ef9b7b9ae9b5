package policy

import (
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// DenyIfAdvisory: a minimum score, malware above every threshold, and denial wherever it cannot
// know.
func TestDenyIfAdvisory(t *testing.T) {
	malware := registry.Advisory{ID: "MAL-2026-1", Affects: true, Malware: true}
	scoredMalware := registry.Advisory{ID: "MAL-2026-2", Affects: true, Malware: true, Scored: true, Score: 2}
	known := data{
		"npm":             nil,
		"npm:high@1":      {affects("GHSA-low", 3.1), {ID: "GHSA-high", Affects: true, Scored: true, Score: 7, FixedIn: "1.2.0"}},
		"npm:low@1":       {affects("GHSA-low", 6.9)},
		"npm:unscored@1":  {affects("GHSA-unscored", 0)},
		"npm:malware@1":   {affects("GHSA-ten", 10), malware},
		"npm:malware2@1":  {scoredMalware},
		"npm:fixed@1":     {{ID: "GHSA-fixed", Fixes: true, Scored: true, Score: 9}},
		"npm:malfixed@1":  {{ID: "MAL-2026-3", Fixes: true, Malware: true}},
		"pypi:elsewhere@": {malware},
	}
	for _, c := range []struct {
		name, pkg string
		data      Advisories
		min       float64
		unavail   string
		admit     bool
		reason    string
		temporary bool
	}{
		{"nothing known", "clean", known, 0, "", true, "", false},
		{"any advisory", "low", known, 0, "", false, "affected by GHSA-low (CVSS 6.9)", false},
		{"the worst is named", "high", known, 0, "", false, "GHSA-high (CVSS 7.0), the worst of 2, fixed in 1.2.0", false},
		{"exactly the minimum", "high", known, 7, "", false, "advisories with CVSS 7.0 or higher", false},
		{"below the minimum", "low", known, 7, "", true, "", false},
		{"above the minimum", "high", known, 7.1, "", true, "", false},
		{"unscored, no minimum", "unscored", known, 0, "", false, "affected by GHSA-unscored", false},
		{"unscored, some minimum", "unscored", known, 0.1, "", true, "", false},
		{"unscored malware, the highest minimum", "malware", known, 10, "", false, "MAL-2026-1 reports it as malware, the worst of 2", false},
		{"malware of a low score", "malware2", known, 10, "", false, "MAL-2026-2 reports it as malware (CVSS 2.0)", false},
		{"the fix of an advisory", "fixed", known, 0, "", true, "", false},
		{"the fix of malware", "malfixed", known, 0, "", true, "", false},
		{"no data", "clean", nil, 0, "", false, "not loaded", true},
		{"no data, said aloud", "clean", nil, 0, Deny, false, "not loaded", true},
		{"no data, skipped", "clean", nil, 0, Skip, true, "", false},
		{"another ecosystem's data", "clean", data{"pypi": nil}, 0, "", false, "not loaded", true},
		{"another ecosystem's data, skipped", "clean", data{"pypi": nil}, 0, Skip, true, "", false},
		{"broken data", "broken", known, 0, "", false, "unreadable", true},
		{"broken data is never skipped", "broken", known, 0, Skip, false, "unreadable", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := mustSet(t, week, Spec{Name: "advisories", Type: DenyIfAdvisory, MinCVSS: c.min, OnUnavailable: c.unavail}).WithAdvisories(c.data)
			v := set.Evaluate(now, subject(c.pkg, "1", old))
			rule := map[bool]string{true: "min-age", false: "advisories"}[c.admit]
			if v.Admit != c.admit || v.Rule != rule || !strings.Contains(v.Reason, c.reason) || v.Temporary != c.temporary {
				t.Errorf("verdict = %+v", v)
			}
		})
	}
}

// An allow-list beats an advisory, the trust in a scope does not.
func TestAdvisoryAndAllowLists(t *testing.T) {
	set := mustSet(t, week, Spec{Name: "advisories", Type: DenyIfAdvisory}, Spec{Name: "ours", Type: AllowScope, Scopes: []string{"@acme"}},
		Spec{Name: "glass", Type: AllowByIdentity, Packages: []string{"@acme/b@1"}}).
		WithAdvisories(data{"npm": nil, "npm:@acme/a@1": {affects("GHSA-1", 9)}, "npm:@acme/b@1": {affects("GHSA-1", 9)}})
	if v := set.Evaluate(now, subject("@acme/a", "1", old)); v.Admit || v.Rule != "advisories" {
		t.Errorf("verdict = %+v", v)
	}
	if v := set.Evaluate(now, subject("@acme/b", "1", young)); !v.Admit || v.Rule != "glass" {
		t.Errorf("verdict = %+v", v)
	}
}

// AllowIfRemediates: only the exact fix, only when nothing affects it, and never without data.
func TestAllowIfRemediates(t *testing.T) {
	fix := registry.Advisory{ID: "GHSA-fix", Fixes: true}
	known := data{
		"npm":         nil,
		"npm:fix@1":   {fix},
		"npm:fixes@1": {fix, {ID: "MAL-2026-9", Fixes: true, Malware: true}},
		"npm:half@1":  {fix, affects("GHSA-other", 0.1)},
		"npm:both@1":  {{ID: "GHSA-both", Fixes: true, Affects: true}},
		"npm:hit@1":   {affects("GHSA-hit", 5)},
	}
	for _, c := range []struct {
		name, pkg string
		data      Advisories
		admit     bool
		reason    string
	}{
		{"the exact fix", "fix", known, true, "the fix of GHSA-fix, and no advisory affects it"},
		{"two fixes", "fixes", known, true, "GHSA-fix, MAL-2026-9"},
		{"a fix that another advisory affects", "half", known, false, "7 days"},
		{"a fix by one record and affected by its alias", "both", known, false, "7 days"},
		{"affected", "hit", known, false, "7 days"},
		{"nothing known", "clean", known, false, "7 days"},
		{"no data", "fix", nil, false, "7 days"},
		{"broken data", "broken", known, false, "7 days"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := mustSet(t, week, Spec{Name: "fixes", Type: AllowIfRemediates}).WithAdvisories(c.data).Evaluate(now, subject(c.pkg, "1", young))
			if v.Admit != c.admit || !strings.Contains(v.Reason, c.reason) || !c.admit && !v.AdmittedAt.Equal(young.Add(week.Age)) {
				t.Errorf("verdict = %+v", v)
			}
		})
	}
}

// A set is a snapshot: other data makes another set, and the old one goes on as it was.
func TestWithAdvisoriesIsACopy(t *testing.T) {
	plain := mustSet(t, week, Spec{Name: "advisories", Type: DenyIfAdvisory})
	with := plain.WithAdvisories(data{"npm": nil})
	if v := plain.Evaluate(now, subject("x", "1", old)); v.Admit || !v.Temporary {
		t.Errorf("the set without data: %+v", v)
	}
	if v := with.Evaluate(now, subject("x", "1", old)); !v.Admit {
		t.Errorf("the set with data: %+v", v)
	}
	if !plain.UsesAdvisories() || mustSet(t, week).UsesAdvisories() || !mustSet(t, Spec{Name: "a", Type: AllowIfRemediates}).UsesAdvisories() {
		t.Error("UsesAdvisories")
	}
}
