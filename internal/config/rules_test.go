package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/policy"
)

func TestRules(t *testing.T) {
	minAge := policy.Spec{Name: "min-age", Type: policy.AllowIfOlderThan, Age: 168 * time.Hour}
	for _, c := range []struct {
		name, file string
		want       []policy.Spec
		problem    string
	}{
		{"merged over the default", "rules: {min-age: {age: 3d}}", []policy.Spec{{Name: "min-age", Type: policy.AllowIfOlderThan, Age: 72 * time.Hour}}, ""},
		{"switched off", "rules: {min-age: {enabled: false}, a: {type: AllowByIdentity, packages: ['npm:foo@1.2.3']}}", []policy.Spec{{Name: "a", Type: policy.AllowByIdentity, Packages: []string{"npm:foo@1.2.3"}}}, ""},
		{"another type starts anew", "rules: {min-age: {type: AllowByIdentity, packages: [a]}}", []policy.Spec{{Name: "min-age", Type: policy.AllowByIdentity, Packages: []string{"a"}}}, ""},
		{
			"added", "rules: {bad: {type: DenyByIdentity, packages: [left-pad, '@evil/*'], precedence: 900, ecosystems: [npm]}}",
			[]policy.Spec{{Name: "bad", Type: policy.DenyByIdentity, Packages: []string{"left-pad", "@evil/*"}, Precedence: 900, Ecosystems: []string{"npm"}}, minAge},
			"",
		},
		{"scopes", "rules: {ours: {type: AllowScope, scopes: ['@acme']}}", []policy.Spec{minAge, {Name: "ours", Type: policy.AllowScope, Scopes: []string{"@acme"}}}, ""},
		{
			"a freeze until the end of a day", "rules: {freeze: {type: NotAfter, date: 2026-11-01}}",
			[]policy.Spec{{Name: "freeze", Type: policy.NotAfter, Date: time.Date(2026, 11, 1, 23, 59, 59, 0, time.UTC)}, minAge},
			"",
		},
		{
			"licences", "rules: {lic: {type: LicenseDeny, licenses: [AGPL-3.0-only], onUnknown: skip}}",
			[]policy.Spec{{Name: "lic", Type: policy.LicenseDeny, Licenses: []string{"AGPL-3.0-only"}, OnUnknown: policy.Skip}, minAge},
			"",
		},
		{
			"install scripts", "rules: {scripts: {type: DenyInstallTimeExecution, except: [esbuild]}}",
			[]policy.Spec{minAge, {Name: "scripts", Type: policy.DenyInstallTimeExecution, Except: []string{"esbuild"}}},
			"",
		},
		{"date", "rules: {freeze: {type: NotAfter, date: tomorrow}}", nil, "is not a date like"},
		{"advisories without a source", "rules: {adv: {type: DenyIfAdvisory, minCVSS: 7.5}}", nil, "advisories.source is not set"},
		{
			"advisories", "advisories: {source: ./osv}\nrules: {adv: {type: DenyIfAdvisory, minCVSS: 7.5, onUnavailable: skip}, fixes: {type: AllowIfRemediates}}",
			[]policy.Spec{{Name: "adv", Type: policy.DenyIfAdvisory, MinCVSS: 7.5, OnUnavailable: policy.Skip}, {Name: "fixes", Type: policy.AllowIfRemediates}, minAge},
			"",
		},
		{"score", "rules: {adv: {type: DenyIfAdvisory, minCVSS: high}}", nil, "not a score"},
		{"an unknown word", "rules: {lic: {type: LicenseDeny, licenses: [MIT], onUnknown: maybe}}", nil, "maybe"},
		{"no type", "rules: {x: {age: 1h}}", nil, "has no type"},
		{"no age", "rules: {x: {type: AllowIfOlderThan}}", nil, "needs an age"},
		{"no packages", "rules: {x: {type: DenyByIdentity}}", nil, "needs packages"},
		{"key of another type", "rules: {x: {type: DenyByIdentity, packages: [a], age: 1h}}", nil, "no such key"},
		{"pattern", "rules: {x: {type: DenyByIdentity, packages: ['a b']}}", nil, "write name, @scope/name"},
		{"enabled", "rules: {min-age: {enabled: 0}}", nil, "true or false"},
		{"precedence", "rules: {min-age: {precedence: 0}}", nil, "at least 1"},
		{"ecosystem", "rules: {min-age: {ecosystems: [cargo]}}", nil, "unknown ecosystem"},
		{"name", "rules: {Min Age: {type: DenyByIdentity, packages: [a]}}", nil, "a rule's name"},
		{"not a group", "rules: {min-age: off}", nil, "a group of settings"},
		{"switched off and wrong all the same", "rules: {x: {type: DenyByIdentity, enabled: false}}", nil, "needs packages"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.problem != "" {
				_, err := config.Load(t.Context(), with(c.file))
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("want %q, got %v", c.problem, err)
				}
				return
			}
			if diff := cmp.Diff(c.want, load(t, with(c.file)).Rules); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The former name of a type means the same, in each layer, and says what to write instead.
func TestFormerTypeName(t *testing.T) {
	const file = "rules:\n  lic:\n    type: LicenseAllow\n    licenses: [MIT]\n"
	c := load(t, with(file, "ECLUSE_RULES__LIC__TYPE=DenyUnlessLicense", "ECLUSE_RULES__LIC__ONUNKNOWN=skip"))
	want := policy.Spec{Name: "lic", Type: policy.DenyUnlessLicense, Licenses: []string{"MIT"}, OnUnknown: policy.Skip}
	if diff := cmp.Diff(want, c.Rules[0]); diff != "" {
		t.Error(diff)
	}
	if w := c.Warnings; len(w) != 1 || !strings.HasSuffix(w[0], ":3: rules.lic.type: LicenseAllow is deprecated: write DenyUnlessLicense, which means the same") {
		t.Errorf("warnings %q", w)
	}
	c = load(t, with("rules: {lic: {licenses: [MIT]}}", "ECLUSE_RULES__LIC__TYPE=LicenseAllow", "ECLUSE_RULES__LIC__LICENSES=MIT"))
	if len(c.Rules) != 2 || c.Rules[0].Type != policy.DenyUnlessLicense || len(c.Warnings) != 1 ||
		!strings.HasPrefix(c.Warnings[0], "ECLUSE_RULES__LIC__TYPE: rules.lic.type: LicenseAllow is deprecated") {
		t.Errorf("%+v, warnings %q", c.Rules, c.Warnings)
	}
}
