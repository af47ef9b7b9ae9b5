package policy

import (
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Rules speak of an ecosystem that the product does not have as soon as it is handed in, and of
// none that is not.
func TestToyEcosystem(t *testing.T) {
	known := append(ecosystemtest.All(), ecosystemtest.Toy())
	set, err := New([]Spec{
		week,
		{Name: "ban", Type: DenyByIdentity, Packages: []string{"toy:Blocks"}},
		{Name: "free", Type: AllowUndated, Ecosystems: []string{"toy"}},
	}, known)
	if err != nil {
		t.Fatal(err)
	}
	toy := func(name string) Subject {
		return Subject{Package: registry.Package{Ecosystem: "toy", Name: name}, Version: registry.Version{Version: "a"}}
	}
	if v := set.Evaluate(now, toy("bLOCKS")); v.Admit || v.Rule != "ban" {
		t.Errorf("a spelling of what is denied: %+v", v)
	}
	if v := set.Evaluate(now, toy("train")); !v.Admit || v.Rule != "free" {
		t.Errorf("undated: %+v", v)
	}
	if v := set.Evaluate(now, subject("Blocks", "1.0.0", old)); !v.Admit {
		t.Errorf("the same name elsewhere: %+v", v)
	}
	if _, err := New([]Spec{{Name: "ban", Type: DenyByIdentity, Packages: []string{"toy:blocks"}}}, ecosystemtest.All()); err == nil ||
		!strings.Contains(err.Error(), `unknown ecosystem "toy", use npm or pypi`) {
		t.Errorf("an ecosystem that was not handed in: %v", err)
	}
}

// A scope says nothing where no ecosystem has scopes.
func TestScopesNeedAnEcosystemWithScopes(t *testing.T) {
	scope := []Spec{{Name: "ours", Type: AllowScope, Scopes: []string{"@acme"}}}
	if _, err := New(scope, registry.Ecosystems{ecosystemtest.Toy()}); err == nil || !strings.Contains(err.Error(), "no ecosystem here has scopes") {
		t.Errorf("%v", err)
	}
	toy := ecosystemtest.Toy()
	toy.HasScopes = true
	set, err := New(scope, registry.Ecosystems{toy})
	if err != nil {
		t.Fatal(err)
	}
	if v := set.Evaluate(now, Subject{Package: registry.Package{Ecosystem: "toy", Name: "@acme/x"}}); !v.Admit {
		t.Errorf("%+v", v)
	}
}
