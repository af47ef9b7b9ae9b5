package pypi

import "testing"

// PEP 503.
func TestCanonicalNames(t *testing.T) {
	for name, want := range map[string]string{
		"flask": "flask", "Flask-Login": "flask-login", "zope.interface": "zope-interface", "A__b-.-C": "a-b-c", "_x_": "-x-", "": "",
	} {
		if got := Definition().Canonical(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
