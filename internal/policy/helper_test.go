package policy

import (
	"errors"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
	"github.com/ecluse-gate/ecluse/internal/registry"
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
	s, err := New(specs, ecosystemtest.All())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var week = Spec{Name: "min-age", Type: AllowIfOlderThan, Age: 7 * 24 * time.Hour}

var old, young = now.Add(-1000 * time.Hour), now.Add(-time.Hour)

// data is advisory data by "ecosystem:name@version". Ecosystems without data are not loaded; the
// package "broken" cannot be read.
type data map[string][]registry.Advisory

func (d data) Loaded(ecosystem string) bool { _, ok := d[ecosystem]; return ok }

func (d data) Lookup(p registry.Package, version string) ([]registry.Advisory, error) {
	if p.Name == "broken" {
		return nil, errors.New("broken")
	}
	return d[p.String()+"@"+version], nil
}

func (d data) Findings(registry.Package, []string) ([]registry.Finding, error) { return nil, nil }

func affects(id string, score float64) registry.Advisory {
	return registry.Advisory{ID: id, Affects: true, Scored: score > 0, Score: score}
}
