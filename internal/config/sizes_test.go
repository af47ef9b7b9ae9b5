package config_test

import "testing"

// Issue 13: the sizes that have bounds.
func TestBoundedSizes(t *testing.T) {
	for _, c := range []struct{ key, text, problem string }{
		{"maxFetching", "auto", ""},
		{"maxFetching", "64MiB", ""},
		{"maxFetching", "0", "at least 1MiB, or auto"},
		{"maxFetching", "much", "not a size"},
		{"maxDocument", "1GiB", ""},
		{"maxDocument", "1MiB", ""},
		{"maxDocument", "auto", "not a size"},
		{"maxDocument", "0", "between 1MiB and 1GiB"},
		{"maxDocument", "2GiB", "between 1MiB and 1GiB"},
		{"maxDocument", "large", "not a size"},
	} {
		t.Run(c.key+"="+c.text, func(t *testing.T) {
			expect(t, with("cache: {"+c.key+": "+c.text+"}\n"), "cache."+c.key, c.problem)
		})
	}
}
