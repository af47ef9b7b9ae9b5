package requestid

import (
	"strings"
	"testing"
)

// S36: first character alphanumeric, then up to 127 of alphanumeric . _ : - ; anything else is
// withheld.
func TestSanitize(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"a":                      "a",
		"7f3c:9_a.b-c":           "7f3c:9_a.b-c",
		strings.Repeat("a", 128): strings.Repeat("a", 128),
		strings.Repeat("a", 129): Withheld,
		"-a":                     Withheld,
		":a":                     Withheld,
		"a b":                    Withheld,
		"a\x1b[31m":              Withheld,
		"a\r\nX: y":              Withheld,
		"é":                      Withheld,
		"a/b":                    Withheld,
		Withheld:                 Withheld,
	} {
		if got := Sanitize(in); got != want {
			t.Errorf("Sanitize(%q) = %q, want %q", in, got, want)
		}
		if again := Sanitize(Sanitize(in)); again != want {
			t.Errorf("Sanitize is not stable on %q: %q", in, again)
		}
	}
	if Safe(Withheld) || Safe("") {
		t.Error("a withheld or absent identifier must not count as safe")
	}
}
