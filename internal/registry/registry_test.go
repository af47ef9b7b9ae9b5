package registry

import "testing"

func TestPackageString(t *testing.T) {
	if got := (Package{Ecosystem: "npm", Name: "@acme/x"}).String(); got != "npm:@acme/x" {
		t.Errorf("String() = %q", got)
	}
}

// An ecosystem is known under the one spelling of its name.
func TestNamed(t *testing.T) {
	all := Ecosystems{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	if e, ok := all.Named("b"); !ok || e.Name != "b" || all.Check("b") != nil {
		t.Errorf("b: %v %v", e.Name, ok)
	}
	for _, name := range []string{"B", "", "b ", "d"} {
		if e, ok := all.Named(name); ok || all.Check(name) == nil {
			t.Errorf("%q is %v", name, e.Name)
		}
	}
}
