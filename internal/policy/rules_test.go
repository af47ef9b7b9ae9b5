package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
)

// C79: a freeze date and the age combine, the stricter wins; an exception for one version beats
// both; each denial carries the reason and the release time.
func TestC79FreezeDateAgeAndException(t *testing.T) {
	freeze := now.Add(-10 * 24 * time.Hour)
	set := mustSet(t, Spec{Name: "age", Type: AllowIfOlderThan, Age: 72 * time.Hour}, Spec{Name: "freeze", Type: NotAfter, Date: freeze},
		Spec{Name: "trusted-scope", Type: AllowScope, Scopes: []string{"@acme"}},
		Spec{Name: "glass", Type: AllowByIdentity, Packages: []string{"pkg@1.2.3"}})
	before := freeze.Add(-time.Hour)
	recent := now.Add(-time.Hour)
	for _, c := range []struct {
		name, version string
		published     time.Time
		at            time.Time
		admit         bool
		rule, reason  string
	}{
		{"pkg", "1.0.0", before, now, true, "age", "published 2026-11-21T11:00:00Z"},
		{"pkg", "1.0.0", freeze, now, true, "age", "published 2026-11-21T12:00:00Z"},
		{"pkg", "1.0.0", freeze.Add(1), now, false, "freeze", "published 2026-11-21T12:00:01Z; nothing newer than 2026-11-21T12:00:00Z"},
		// old enough, and too new
		{"pkg", "1.1.0", freeze.Add(48 * time.Hour), now, false, "freeze", "published 2026-11-23T12:00:00Z"},
		{"pkg", "1.1.0", recent, now, false, "freeze", "published 2026-12-01T11:00:00Z"},
		// early enough, and too young
		{"pkg", "1.1.0", freeze, freeze.Add(71 * time.Hour), false, "age", "here from 2026-11-24T12:00:00Z"},
		{"pkg", "1.2.3", recent, now, true, "glass", "pkg@1.2.3"},
		{"pkg", "1.2.3", time.Time{}, now, true, "glass", "pkg@1.2.3"},
		{"pkg", "1.2.4", recent, now, false, "freeze", "nothing newer"},
		{"@acme/x", "1.0.0", before, now, true, "trusted-scope", "@acme/*"},
		{"@acme/x", "1.0.0", recent, now, false, "freeze", "nothing newer"},
		{"pkg", "1.0.0", time.Time{}, now, false, "freeze", "gives no publish time"},
	} {
		v := set.Evaluate(c.at, subject(c.name, c.version, c.published))
		if v.Admit != c.admit || v.Rule != c.rule || !strings.Contains(v.Reason, c.reason) {
			t.Errorf("%s@%s of %v: %+v", c.name, c.version, c.published, v)
		}
		if wantAt := v.Rule == "age" && !c.admit; v.AdmittedAt.IsZero() == wantAt {
			t.Errorf("%s@%s of %v: admitted at %v", c.name, c.version, c.published, v.AdmittedAt)
		}
	}
}

// C75: the age counts from the publish time of the upstream, not from when the gate first saw the
// file; and a version of which the upstream gives no time is refused, not taken for new or old.
func TestC75AgeIsThePublishTime(t *testing.T) {
	set := mustSet(t, week)
	if v := set.Evaluate(now, subject("is-number", "7.0.0", time.Date(2018, 7, 4, 15, 8, 58, 0, time.UTC))); !v.Admit {
		t.Errorf("a package of 2018 on an empty mirror: %+v", v)
	}
	v := set.Evaluate(now, subject("is-number", "7.0.0", time.Time{}))
	if v.Admit || !v.AdmittedAt.IsZero() || !strings.Contains(v.Reason, "gives no publish time") {
		t.Errorf("unknown age: %+v", v)
	}
}

func TestAllowScope(t *testing.T) {
	set := mustSet(t, Spec{Name: "ours", Type: AllowScope, Scopes: []string{"@acme", "@acme-labs"}})
	for name, admit := range map[string]bool{
		"@acme/x": true, "@acme-labs/x": true, "@acmex/x": false, "@acm/x": false, "acme": false, "@acme": false, "@ACME/x": false,
	} {
		if v := set.Evaluate(now, subject(name, "1.0.0", time.Time{})); v.Admit != admit {
			t.Errorf("%s: %+v", name, v)
		}
	}
	s := subject("@acme/x", "1.0.0", old)
	s.Package.Ecosystem = "pypi"
	if v := set.Evaluate(now, s); v.Admit {
		t.Errorf("an npm scope admits on PyPI: %+v", v)
	}
}

// DenyInstallTimeExecution reads one neutral signal, for whichever ecosystem; its exceptions are
// the only way around it short of switching it off: an allow-list is none.
func TestDenyInstallTimeExecution(t *testing.T) {
	set := mustSet(t, week, Spec{Name: "no-scripts", Type: DenyInstallTimeExecution, Except: []string{"esbuild", "pypi:Left_Pad@1.0.0"}},
		Spec{Name: "allowed", Type: AllowByIdentity, Packages: []string{"husky", "esbuild"}})
	for _, c := range []struct {
		ecosystem, name, version string
		scripts, admit           bool
	}{
		{"npm", "plain", "1.0.0", false, true},
		{"npm", "plain", "1.0.0", true, false},
		{"npm", "husky", "1.0.0", false, true},
		{"npm", "husky", "1.0.0", true, false},
		{"npm", "esbuild", "9.9.9", true, true},
		{"pypi", "sdist", "1.0.0", true, false},
		{"pypi", "left-pad", "1.0.0", true, true},
		{"pypi", "left-pad", "1.0.1", true, false},
	} {
		s := subject(c.name, c.version, old)
		s.Package.Ecosystem, s.Version.InstallScripts = c.ecosystem, c.scripts
		v := set.Evaluate(now, s)
		if v.Admit != c.admit || !c.admit && (v.Rule != "no-scripts" || !strings.Contains(v.Reason, "runs code")) {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}

// Licences: an allow-list denies what it does not cover and admits nothing by itself; a deny-list
// denies what cannot be had without a listed one; an unknown licence is denied unless that is
// switched off.
func TestLicenses(t *testing.T) {
	for _, c := range []struct {
		typ, listed, onUnknown, license string
		admit                           bool
		reason                          string
	}{
		{DenyUnlessLicense, "MIT,Apache-2.0", "", "MIT", true, ""},
		{DenyUnlessLicense, "MIT,Apache-2.0", "", "mit", true, ""},
		{DenyUnlessLicense, "MIT,Apache-2.0", "", "ISC", false, `"ISC" is not covered by the allowed ones: MIT, Apache-2.0`},
		{DenyUnlessLicense, "MIT,Apache-2.0", "", "(MIT OR GPL-3.0-only)", true, ""},
		{DenyUnlessLicense, "MIT,Apache-2.0", "", "MIT AND GPL-3.0-only", false, "not covered"},
		{DenyUnlessLicense, "MIT,Apache-2.0", "", "MIT AND Apache-2.0", true, ""},
		{DenyUnlessLicense, "MIT", "", "", false, "gives no licence"},
		{DenyUnlessLicense, "MIT", Skip, "", true, ""},
		{DenyUnlessLicense, "MIT", "", "SEE LICENSE IN LICENSE.txt", false, "cannot be evaluated as an SPDX expression"},
		{DenyUnlessLicense, "MIT", Skip, "SEE LICENSE IN LICENSE.txt", true, ""},
		{DenyUnlessLicense, "MIT", Skip, "ISC", false, "not covered"},
		{DenyUnlessLicense, "MIT", "", "UNLICENSED", false, "cannot be evaluated as an SPDX expression"},
		{DenyUnlessLicense, "MIT,UNLICENSED", "", "UNLICENSED", true, ""},
		{DenyUnlessLicense, "UNLICENSED", "", "MIT", false, "not covered"},
		{DenyUnlessLicense, "MIT", "", strings.Repeat("MIT OR ", 8) + "MIT", false, "cannot be evaluated as an SPDX expression"},
		{DenyUnlessLicense, "MIT", "", strings.Repeat("MIT\tOR\n", 8) + "MIT", false, "cannot be evaluated as an SPDX expression"},
		{DenyUnlessLicense, "MIT", "", strings.Repeat("(", 9) + "MIT" + strings.Repeat(")", 9), false, "cannot be evaluated as an SPDX expression"},
		{DenyUnlessLicense, "MIT", "", strings.Repeat("MIT ", 100), false, "cannot be evaluated as an SPDX expression"},
		{LicenseDeny, "GPL-3.0-only,AGPL-3.0-only", "", "MIT", true, ""},
		{LicenseDeny, "GPL-3.0-only,AGPL-3.0-only", "", "AGPL-3.0-only", false, `"AGPL-3.0-only" requires a denied one: GPL-3.0-only`},
		{LicenseDeny, "GPL-3.0-only", "", "MIT OR GPL-3.0-only", true, ""},
		{LicenseDeny, "GPL-3.0-only", "", "MIT AND GPL-3.0-only", false, "requires a denied one"},
		{LicenseDeny, "GPL-3.0-only", "", "MIT AND (GPL-3.0-only OR ISC)", true, ""},
		{LicenseDeny, "GPL-3.0-only", "", "GPL-2.0-or-later", false, "requires a denied one"},
		{LicenseDeny, "GPL-3.0-only", "", "", false, "gives no licence"},
		{LicenseDeny, "GPL-3.0-only", Skip, "", true, ""},
		{LicenseDeny, "UNLICENSED", Skip, "UNLICENSED", false, "requires a denied one"},
		{LicenseDeny, "UNLICENSED", "", "MIT", true, ""},
	} {
		set := mustSet(t, week, Spec{Name: "licences", Type: c.typ, Licenses: strings.Split(c.listed, ","), OnUnknown: c.onUnknown})
		s := subject("x", "1.0.0", old)
		s.Version.License = c.license
		for range 2 { // the second answer comes from memory
			v := set.Evaluate(now, s)
			if v.Admit != c.admit || !strings.Contains(v.Reason, c.reason) || !c.admit && v.Rule != "licences" {
				t.Errorf("%s %s, %q: %+v", c.typ, c.listed, c.license, v)
			}
		}
	}
	s := subject("x", "1.0.0", old)
	s.Version.License = "MIT"
	if v := mustSet(t, Spec{Name: "licences", Type: DenyUnlessLicense, Licenses: []string{"MIT"}}).Evaluate(now, s); v.Admit {
		t.Errorf("an allowed licence admits by itself: %+v", v)
	}
}

// What is kept of licences is bounded, whatever an upstream invents.
func TestLicenseMemoryIsBounded(t *testing.T) {
	set := mustSet(t, week, Spec{Name: "licences", Type: DenyUnlessLicense, Licenses: []string{"MIT"}})
	r := set.rules[0].rule.(license)
	s := subject("x", "1.0.0", old)
	for i := range 3 * maxLicenseMemo {
		s.Version.License = "L" + strings.Repeat("x", i%200) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		set.Admits(now, s)
	}
	s.Version.License = strings.Repeat("y", maxLicenseLength+1)
	set.Admits(now, s)
	if kept := *r.memo.Load(); len(kept) > maxLicenseMemo {
		t.Errorf("%d spellings are kept", len(kept))
	} else if _, ok := kept[s.Version.License]; ok {
		t.Error("an endless spelling is kept")
	}
}

// PyPI's patterns name what PyPI takes for the same name: a deny-list cannot be dodged by a
// spelling.
func TestPatternsCompareAsTheEcosystemDoes(t *testing.T) {
	for _, c := range []struct {
		pattern, ecosystem, name string
		match                    bool
	}{
		{"pypi:Flask_Login", "pypi", "flask-login", true},
		{"flask.login", "pypi", "flask-login", true},
		{"flask-login", "pypi", "Flask__Login", true},
		{"flask.login", "npm", "flask-login", false},
		{"npm:Foo", "npm", "foo", false},
		{"npm:Foo", "pypi", "foo", false},
		{"@acme/*", "npm", "@acme/x", true},
	} {
		p, err := ParsePattern(c.pattern, ecosystemtest.All())
		if err != nil || p.MatchPackage(c.ecosystem, c.name) != c.match || p.String() != c.pattern {
			t.Errorf("%s on %s:%s: %v, %v", c.pattern, c.ecosystem, c.name, p, err)
		}
	}
}

// A denial by a rule that a later admission overrules tells of that admission: what is kept of a
// listing until then must not outlive it.
func TestDenialBelowAnAdmissionToCome(t *testing.T) {
	set := mustSet(t, Spec{Name: "age", Type: AllowIfOlderThan, Age: 48 * time.Hour, Precedence: 500}, Spec{Name: "ban", Type: DenyByIdentity, Packages: []string{"x"}})
	at := young.Add(48 * time.Hour)
	v := set.Evaluate(now, subject("x", "1.0.0", young))
	if v.Admit || v.Rule != "ban" || !v.AdmittedAt.Equal(at) || !strings.Contains(v.Reason, `rule "age" comes first and admits it from 2026-12-03T11:00:00Z`) {
		t.Errorf("before: %+v", v)
	}
	if v := set.Evaluate(at, subject("x", "1.0.0", young)); !v.Admit || v.Rule != "age" {
		t.Errorf("at the instant: %+v", v)
	}
	if v := mustSet(t, week, Spec{Name: "ban", Type: DenyByIdentity, Packages: []string{"x"}}).Evaluate(now, subject("x", "1.0.0", young)); !v.AdmittedAt.IsZero() {
		t.Errorf("an age that does not count: %+v", v)
	}
}
