package policy

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
	"pgregory.net/rapid"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func subject(name, version string, published time.Time) Subject {
	return Subject{
		Package: registry.Package{Ecosystem: "npm", Name: name},
		Version: registry.Version{Version: version, Published: published},
	}
}

func mustSet(t testing.TB, specs ...Spec) *Set {
	t.Helper()
	s, err := New(specs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var week = Spec{Name: "min-age", Type: AllowIfOlderThan, Age: 7 * 24 * time.Hour}

func TestAllowIfOlderThan(t *testing.T) {
	set := mustSet(t, week)
	for _, c := range []struct {
		name      string
		published time.Time
		admit     bool
		reason    string
		at        time.Time
	}{
		{"old", now.Add(-200 * time.Hour), true, "admitted 7 days after", time.Time{}},
		{"exactly at the age", now.Add(-168 * time.Hour), true, "7 days after that", time.Time{}},
		{"one nanosecond short", now.Add(-168*time.Hour + 1), false, "here from 2026-12-01T12:00:01Z", now.Add(1)},
		{"young", now.Add(-time.Hour), false, "here from 2026-12-08T11:00:00Z", now.Add(167 * time.Hour)},
		{"unknown age is refused", time.Time{}, false, "does not say when", time.Time{}},
		{"published in the future", now.Add(time.Hour), false, "7 days after", now.Add(169 * time.Hour)},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := set.Evaluate(now, subject("x", "1.0.0", c.published))
			if v.Admit != c.admit || !strings.Contains(v.Reason, c.reason) || !v.AdmittedAt.Equal(c.at) || v.Rule != "min-age" {
				t.Errorf("verdict = %+v", v)
			}
		})
	}
}

// C79: an allow-list beats the age, a deny-list beats the allow-list.
func TestPrecedence(t *testing.T) {
	set := mustSet(t, week,
		Spec{Name: "trusted", Type: AllowByIdentity, Packages: []string{"left-pad@1.3.0", "@acme/*"}},
		Spec{Name: "banned", Type: DenyByIdentity, Packages: []string{"@acme/evil", "npm:old"}})
	young, old := now.Add(-time.Hour), now.Add(-1000*time.Hour)
	for _, c := range []struct {
		name, version string
		published     time.Time
		admit         bool
		rule          string
	}{
		{"left-pad", "1.3.0", young, true, "trusted"},
		{"left-pad", "1.4.0", young, false, "min-age"},
		{"@acme/tool", "9.9.9", time.Time{}, true, "trusted"},
		{"@acme/evil", "1.0.0", old, false, "banned"},
		{"@acmex/tool", "1.0.0", young, false, "min-age"},
		{"old", "1.0.0", old, false, "banned"},
		{"other", "1.0.0", old, true, "min-age"},
	} {
		if v := set.Evaluate(now, subject(c.name, c.version, c.published)); v.Admit != c.admit || v.Rule != c.rule {
			t.Errorf("%s@%s: %+v, want admit=%v by %s", c.name, c.version, v, c.admit, c.rule)
		}
	}
}

func TestDenyByDefault(t *testing.T) {
	v := mustSet(t).Evaluate(now, subject("x", "1.0.0", now.Add(-10000*time.Hour)))
	if v.Admit || v.Rule != "default" {
		t.Errorf("an empty set admits: %+v", v)
	}
}

func TestRuleOfAnotherEcosystemIsSilent(t *testing.T) {
	s := week
	s.Ecosystems = []string{"pypi"}
	if v := mustSet(t, s).Evaluate(now, subject("x", "1.0.0", now.Add(-1000*time.Hour))); v.Admit {
		t.Errorf("verdict = %+v", v)
	}
}

func TestBadSpecs(t *testing.T) {
	for name, s := range map[string]Spec{
		"no name":        {Type: AllowIfOlderThan},
		"unknown type":   {Name: "x", Type: "AllowAll"},
		"negative age":   {Name: "x", Type: AllowIfOlderThan, Age: -1},
		"no packages":    {Name: "x", Type: DenyByIdentity},
		"bare star":      {Name: "x", Type: DenyByIdentity, Packages: []string{"*"}},
		"scope only":     {Name: "x", Type: DenyByIdentity, Packages: []string{"@/*"}},
		"empty version":  {Name: "x", Type: DenyByIdentity, Packages: []string{"a@"}},
		"ecosystem":      {Name: "x", Type: DenyByIdentity, Packages: []string{"gem:a"}},
		"scoped version": {Name: "x", Type: DenyByIdentity, Packages: []string{"@a/*@1.0.0"}},
	} {
		if _, err := New([]Spec{s}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// Shuffling rules changes nothing, and adding a deny never admits more.
func TestSetProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "@s/a"}
		specs := []Spec{}
		for i := range rapid.IntRange(0, 6).Draw(t, "rules") {
			s := Spec{Name: string(rune('a' + i)), Precedence: rapid.IntRange(0, 3).Draw(t, "precedence")}
			switch rapid.IntRange(0, 2).Draw(t, "type") {
			case 0:
				s.Type, s.Age = AllowIfOlderThan, time.Duration(rapid.IntRange(0, 20).Draw(t, "age"))*time.Hour
			case 1:
				s.Type, s.Packages = AllowByIdentity, []string{rapid.SampledFrom(names).Draw(t, "allow")}
			case 2:
				s.Type, s.Packages = DenyByIdentity, []string{rapid.SampledFrom(names).Draw(t, "deny")}
			}
			specs = append(specs, s)
		}
		sub := subject(rapid.SampledFrom(names).Draw(t, "name"), "1.0.0", now.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "old"))*time.Hour))
		first, err := New(specs)
		if err != nil {
			t.Fatal(err)
		}
		want := first.Evaluate(now, sub)
		rand.Shuffle(len(specs), func(i, j int) { specs[i], specs[j] = specs[j], specs[i] })
		shuffled, _ := New(specs)
		if got := shuffled.Evaluate(now, sub); got != want {
			t.Fatalf("shuffled: %+v, want %+v", got, want)
		}
		more, _ := New(append(specs, Spec{Name: "zz", Type: DenyByIdentity, Packages: []string{"a"}}))
		if more.Evaluate(now, sub).Admit && !want.Admit {
			t.Fatalf("adding a deny admitted %+v", sub)
		}
	})
}

// The short form never disagrees with the long one, and does not allocate.
func TestAdmitsAgreesWithEvaluate(t *testing.T) {
	set := mustSet(t, week, Spec{Name: "ban", Type: DenyByIdentity, Packages: []string{"bad"}})
	for _, s := range []Subject{subject("x", "1", now), subject("x", "1", time.Time{}), subject("bad", "1", now.Add(-1000*time.Hour)), subject("x", "1", now.Add(-1000*time.Hour))} {
		v := set.Evaluate(now, s)
		if ok, rule, at := set.Admits(now, s); ok != v.Admit || rule != v.Rule || !at.Equal(v.AdmittedAt) {
			t.Errorf("%+v: Admits = %v %s %v, Evaluate = %+v", s, ok, rule, at, v)
		}
		if n := testing.AllocsPerRun(100, func() { set.Admits(now, s) }); n != 0 {
			t.Errorf("Admits allocates %v times", n)
		}
	}
}
