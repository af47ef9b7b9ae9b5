package registry

import "testing"

// PEP 503 for PyPI; npm's names are compared as they are.
func TestCanonicalName(t *testing.T) {
	for _, c := range []struct{ ecosystem, name, want string }{
		{"pypi", "flask", "flask"},
		{"pypi", "Flask-Login", "flask-login"},
		{"pypi", "zope.interface", "zope-interface"},
		{"pypi", "A__b-.-C", "a-b-c"},
		{"pypi", "_x_", "-x-"},
		{"pypi", "", ""},
		{"npm", "JSONStream", "JSONStream"},
		{"npm", "@acme/a_b.c", "@acme/a_b.c"},
	} {
		if got := CanonicalName(c.ecosystem, c.name); got != c.want {
			t.Errorf("CanonicalName(%s, %s) = %q, want %q", c.ecosystem, c.name, got, c.want)
		}
	}
}
