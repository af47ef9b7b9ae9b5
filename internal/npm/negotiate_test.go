package npm

import (
	"encoding/json"
	"strings"
	"testing"
)

// C13, area abbreviated-packument: who does not ask for the abbreviated form by name gets the full
// one, with its publish times.
func TestNegotiate(t *testing.T) {
	const abbreviated = "application/vnd.npm.install-v1+json"
	for accept, want := range map[string]string{
		"":                 FormFull, // yarn berry
		"*/*":              FormFull,
		"application/*":    FormFull,
		"application/json": FormFull, // npm
		abbreviated:        FormAbbreviated,
		// pnpm, yarn classic, bun
		abbreviated + "; q=1.0, application/json; q=0.8, */*": FormAbbreviated,
		"Application/VND.npm.Install-V1+JSON":                 FormAbbreviated,
		abbreviated + ";q=0.001":                              FormAbbreviated,
		abbreviated + ";q=0":                                  FormFull,
		abbreviated + ";q=0, */*":                             FormFull,
		abbreviated + ";q=0.5, application/json":              FormFull,
		abbreviated + ";q=0.5, */*":                           FormFull,
		abbreviated + ";q=0.5, */*;q=0.1":                     FormAbbreviated,
		abbreviated + ";q=0.5, application/json;q=0.2, */*":   FormAbbreviated,
		abbreviated + ", application/json":                    FormAbbreviated,
		"application/json, " + abbreviated:                    FormFull,
		abbreviated + ", */*":                                 FormAbbreviated,
		// the range is less specific, not preferred
		"*/*, " + abbreviated:                       FormAbbreviated,
		abbreviated + ";q=nonsense":                 FormFull,
		abbreviated + ";q=2":                        FormFull,
		abbreviated + ";q=-1":                       FormFull,
		abbreviated + ";q=NaN":                      FormFull,
		"text/html":                                 FormFull,
		", ,;q=1,":                                  FormFull,
		abbreviated + strings.Repeat(", x/y", 2000): FormFull,
	} {
		if got := Negotiate(accept); got != want {
			t.Errorf("Negotiate(%.120q) = %q, want %q", accept, got, want)
		}
	}
}

func TestErrorBody(t *testing.T) {
	const message = "\"quoted\" \\ <b>\nline\xff"
	var got map[string]string
	if err := json.Unmarshal(ErrorBody(message), &got); err != nil || len(got) != 1 || got["error"] != strings.ToValidUTF8(message, "\ufffd") {
		t.Errorf("%q, %v", got, err)
	}
}
