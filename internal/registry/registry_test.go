package registry

import "testing"

func TestPackageString(t *testing.T) {
	if got := (Package{Ecosystem: "npm", Name: "@acme/x"}).String(); got != "npm:@acme/x" {
		t.Errorf("String() = %q", got)
	}
}
