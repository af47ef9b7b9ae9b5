package policy

import (
	"strings"
	"testing"
	"time"
)

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
		{"unknown age is refused", time.Time{}, false, "gives no publish time", time.Time{}},
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
