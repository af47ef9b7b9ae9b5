package policy

import (
	"testing"
	"time"
)

// The fallback for upstreams without dates is off unless it is configured, concerns nothing that
// has a date, and stays below every deny.
func TestAllowUndated(t *testing.T) {
	undated, young := subject("x", "1", time.Time{}), subject("x", "1", now.Add(-time.Hour))
	set := mustSet(t, week, Spec{Name: "undated", Type: AllowUndated, Ecosystems: []string{"npm"}})
	if v := set.Evaluate(now, undated); !v.Admit || v.Rule != "undated" {
		t.Errorf("undated: %+v", v)
	}
	if v := set.Evaluate(now, young); v.Admit {
		t.Errorf("young: %+v", v)
	}
	if v := mustSet(t, week).Evaluate(now, undated); v.Admit {
		t.Errorf("without the rule: %+v", v)
	}
	if v := mustSet(t, Spec{Name: "undated", Type: AllowUndated}, Spec{Name: "ban", Type: DenyByIdentity, Packages: []string{"x"}}).Evaluate(now, undated); v.Admit {
		t.Errorf("banned: %+v", v)
	}
	if v := mustSet(t, Spec{Name: "undated", Type: AllowUndated, Ecosystems: []string{"pypi"}}).Evaluate(now, undated); v.Admit {
		t.Errorf("of another ecosystem: %+v", v)
	}
}
