package pypi

import (
	"strings"
	"testing"
)

// C14, PEP 691: the form by quality values, and the type that is answered. What clients really send
// is among the cases.
func TestNegotiate(t *testing.T) {
	const text = "text/html; charset=utf-8"
	for _, c := range []struct{ accept, param, contentType string }{
		// pip
		{"application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01", "", typeJSON},
		// uv
		{"application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01", "", typeJSON},
		{"text/html", "", text}, // pip before 22.2
		{"*/*", "", text},       // poetry, curl
		{"", "", text},
		{"  ", "", text},
		{strings.Repeat("a/b,", 2000), "", text},
		{"application/vnd.pypi.simple.v1+json", "", typeJSON},
		{"application/vnd.pypi.simple.v1+html", "", typeHTML},
		{"APPLICATION/VND.PYPI.SIMPLE.V1+JSON ; q=1", "", typeJSON},
		{"application/vnd.pypi.simple.latest+json", "", typeJSON},
		{"application/vnd.pypi.simple.latest+html", "", typeHTML},
		{"application/vnd.pypi.simple.latest+json;q=0.5, text/html;q=0.4", "", typeJSON},
		{"application/vnd.pypi.simple.v1+json;q=0.1, application/vnd.pypi.simple.latest+json;q=0.9, text/html;q=0.5", "", typeJSON},
		{"application/vnd.pypi.simple.v1+json;q=0.3, text/html;q=0.9", "", text},
		// equal: the order says nothing
		{"text/html, application/vnd.pypi.simple.v1+json", "", typeJSON},
		{"text/html, application/vnd.pypi.simple.v1+html", "", typeHTML},
		{"text/html, */*", "", text},
		{"application/vnd.pypi.simple.v1+json, */*;q=0.1", "", typeJSON},
		{"application/vnd.pypi.simple.v1+json, */*", "", typeJSON},
		{"application/vnd.pypi.simple.v1+json;q=0.001, */*;q=0", "", typeJSON},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "", text}, // a browser
		{"application/*", "", typeJSON},
		{"text/*", "", text},
		{"text/*;q=0.5, application/*;q=0.4", "", text},
		{"*/*, text/html;q=0, application/vnd.pypi.simple.v1+html;q=0", "", typeJSON},
		{"application/vnd.pypi.simple.v1+json;q=0, */*", "", text},
		// what cannot be understood is not preferred
		{"application/vnd.pypi.simple.v1+json;q=x, text/html;q=0.1", "", text},
		{"application/vnd.pypi.simple.v1+json;q=2, text/html;q=0.1", "", text},
		{"application/vnd.pypi.simple.v1+json;q=NaN, text/html;q=0.1", "", text},
		{",,text/html,", "", text},
		{"application/json", "", ""},
		{"application/vnd.pypi.simple.v2+json", "", ""},
		{"application/vnd.pypi.simple.v1+json;q=0", "", ""},
		{"*/*;q=0", "", ""},
		{"image/png", "", ""},
		{"text/html", "application/vnd.pypi.simple.v1+json", typeJSON},
		{"text/html", "application/vnd.pypi.simple.latest+json", typeJSON},
		{"application/vnd.pypi.simple.v1+json", "text/html", text},
		{"", "Application/vnd.PyPI.simple.v1+HTML", typeHTML},
		{"*/*", "json", ""},
		{"*/*", "*/*", ""},
	} {
		form, contentType, ok := Negotiate(c.accept, c.param)
		if ok != (c.contentType != "") || contentType != c.contentType || strings.Contains(c.contentType, "json") != (form == FormJSON) ||
			strings.Contains(c.contentType, "html") != (form == FormHTML) {
			t.Errorf("Negotiate(%.80q, %q) = %q, %q, %v, want %q", c.accept, c.param, form, contentType, ok, c.contentType)
		}
	}
	if form, _, _ := Negotiate(IndexAccept, ""); form != FormJSON {
		t.Errorf("what is sent upstream asks for %q", form)
	}
}

func FuzzNegotiate(f *testing.F) {
	f.Add("application/vnd.pypi.simple.v1+json;q=0.5,*/*", "")
	f.Add("", "text/html")
	f.Fuzz(func(t *testing.T, accept, param string) {
		form, contentType, ok := Negotiate(accept, param)
		if ok != (form == FormJSON || form == FormHTML) || ok != (contentType != "") || strings.Contains(contentType, "latest") {
			t.Fatalf("%q, %q, %v", form, contentType, ok)
		}
	})
}

// R37: a refusal is one line of text.
func TestErrorBody(t *testing.T) {
	for message, want := range map[string]string{"denied": "denied\n", "a\nb\r\n  c ": "a b c\n", "": "\n"} {
		if got := string(ErrorBody(message)); got != want {
			t.Errorf("%q: %q", message, got)
		}
	}
}
