package policy

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
)

// Issue 5, item 1: the types with their default precedence, in one order.
func TestDefaultPrecedence(t *testing.T) {
	want := map[string]int{
		"AllowUndated": 90, "AllowIfOlderThan": 100, "AllowIfRemediates": 150, "AllowScope": 200, "DenyIfAdvisory": 225, "DenyUnlessLicense": 230,
		"LicenseDeny": 235, "NotAfter": 240, "AllowByIdentity": 250, "DenyInstallTimeExecution": 300, "DenyByIdentity": 400,
	}
	last := 0
	for _, typ := range Types() {
		p, ok := DefaultPrecedence(typ)
		if !ok || p != want[typ] || p <= last {
			t.Errorf("%s: %d, want %d and more than %d", typ, p, want[typ], last)
		}
		last = p
	}
	if len(Types()) != len(want) {
		t.Errorf("types: %v", Types())
	}
	if _, ok := DefaultPrecedence("AllowAll"); ok {
		t.Error("an unknown type has a precedence")
	}
}

// Only types that admit begin with Allow.
func TestAllowMeansAdmits(t *testing.T) {
	if typ, ok := Renamed("LicenseAllow"); typ != DenyUnlessLicense || !ok {
		t.Errorf("LicenseAllow is now %q", typ)
	}
	for _, typ := range Types() {
		if Admitting(typ) != strings.Contains(typ, "Allow") {
			t.Errorf("%s: admits: %v", typ, Admitting(typ))
		}
		if _, ok := Renamed(typ); ok {
			t.Errorf("%s has another name", typ)
		}
	}
}

func TestBadSpecs(t *testing.T) {
	for _, c := range []struct {
		name    string
		spec    Spec
		problem string
	}{
		{"no name", Spec{Type: AllowIfOlderThan}, "unique name"},
		{"the name of no rule", Spec{Name: "default", Type: AllowIfOlderThan}, "unique name"},
		{"unknown type", Spec{Name: "x", Type: "AllowAll"}, "unknown type"},
		{"no type", Spec{Name: "x"}, "unknown type"},
		{"negative precedence", Spec{Name: "x", Type: AllowIfOlderThan, Precedence: -1}, "negative"},
		{"negative age", Spec{Name: "x", Type: AllowIfOlderThan, Age: -1}, "negative"},
		{"ecosystem of the rule", Spec{Name: "x", Type: AllowIfOlderThan, Ecosystems: []string{"gem"}}, "unknown ecosystem"},
		{"no packages", Spec{Name: "x", Type: DenyByIdentity}, "needs packages"},
		{"bare star", Spec{Name: "x", Type: DenyByIdentity, Packages: []string{"*"}}, "write name"},
		{"scope only", Spec{Name: "x", Type: DenyByIdentity, Packages: []string{"@/*"}}, "write name"},
		{"empty version", Spec{Name: "x", Type: DenyByIdentity, Packages: []string{"a@"}}, "after the @"},
		{"ecosystem of a pattern", Spec{Name: "x", Type: DenyByIdentity, Packages: []string{"gem:a"}}, "unknown ecosystem"},
		{"scope with version", Spec{Name: "x", Type: DenyByIdentity, Packages: []string{"@a/*@1.0.0"}}, "write name"},
		{"scope below a scope", Spec{Name: "x", Type: DenyByIdentity, Packages: []string{"@a/b/*"}}, "write name"},
		{"no scopes", Spec{Name: "x", Type: AllowScope}, "needs scopes"},
		{"scope without at", Spec{Name: "x", Type: AllowScope, Scopes: []string{"acme"}}, "like @acme"},
		{"scope with a star", Spec{Name: "x", Type: AllowScope, Scopes: []string{"@acme/*"}}, "like @acme"},
		{"scope with a name", Spec{Name: "x", Type: AllowScope, Scopes: []string{"@acme/x"}}, "like @acme"},
		{"scope of nothing", Spec{Name: "x", Type: AllowScope, Scopes: []string{""}}, "like @acme"},
		{"negative score", Spec{Name: "x", Type: DenyIfAdvisory, MinCVSS: -1}, "0 to 10"},
		{"score over 10", Spec{Name: "x", Type: DenyIfAdvisory, MinCVSS: 10.1}, "0 to 10"},
		{"no score", Spec{Name: "x", Type: DenyIfAdvisory, MinCVSS: math.NaN()}, "0 to 10"},
		{"choice", Spec{Name: "x", Type: DenyIfAdvisory, OnUnavailable: "allow"}, "use deny or skip"},
		{"no date", Spec{Name: "x", Type: NotAfter}, "needs a date"},
		{"no licences", Spec{Name: "x", Type: DenyUnlessLicense}, "needs licenses"},
		{"no licence", Spec{Name: "x", Type: LicenseDeny, Licenses: []string{""}}, "SPDX identifier"},
		{"licence expression", Spec{Name: "x", Type: LicenseDeny, Licenses: []string{"MIT OR ISC"}}, "SPDX identifier"},
		{"licence misspelt", Spec{Name: "x", Type: DenyUnlessLicense, Licenses: []string{"Apache 2"}}, "SPDX identifier"},
		{"licence choice", Spec{Name: "x", Type: DenyUnlessLicense, Licenses: []string{"MIT"}, OnUnknown: "maybe"}, "use deny or skip"},
		{"exception", Spec{Name: "x", Type: DenyInstallTimeExecution, Except: []string{"a b"}}, "write name"},
		{"field of another type", Spec{Name: "x", Type: DenyIfAdvisory, Age: time.Hour}, "has no age"},
	} {
		if _, err := New([]Spec{c.spec}, ecosystemtest.All()); err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want %q", c.name, err, c.problem)
		}
	}
	if _, err := New([]Spec{week, week}, ecosystemtest.All()); err == nil {
		t.Error("two rules of one name are accepted")
	}
}

// Each field is known by the types that have it, and refused by all others: none is ever ignored.
func TestNoFieldIsIgnored(t *testing.T) {
	full := Spec{
		Age: 1, Packages: []string{"a"}, Scopes: []string{"@a"}, MinCVSS: 1, OnUnavailable: Deny, Except: []string{"a"},
		Date: now, Licenses: []string{"MIT"}, OnUnknown: Deny,
	}
	given := full.given()
	if len(given) != 9 {
		t.Fatalf("given: %v", given)
	}
	used := map[string]bool{}
	for _, typ := range Types() {
		for _, field := range Fields(typ) {
			used[field] = true
			if !slices.Contains(given, field) {
				t.Errorf("%s: field %s is never seen as given", typ, field)
			}
		}
		s := full
		s.Name, s.Type = "x", typ
		if _, err := New([]Spec{s}, ecosystemtest.All()); err == nil {
			t.Errorf("%s accepts the fields of all types", typ)
		}
	}
	for _, field := range given {
		if !used[field] {
			t.Errorf("no type has the field %s", field)
		}
	}
}
