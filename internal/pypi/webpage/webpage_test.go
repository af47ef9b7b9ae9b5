package webpage

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

func source(body string) registry.Source {
	return registry.Source{Body: []byte(body), URL: &url.URL{Scheme: "https", Host: "h.example", Path: "/simple/x/"}}
}

func TestToJSON(t *testing.T) {
	body, dropped, err := ToJSON("x", source(`<!DOCTYPE html>
<meta name="pypi:repository-version" content="1.4"><meta name="pypi:project-status" content="archived"><meta name="pypi:tracks" content="https://t.example/x/">
<title>Links for x</title><a href="../">up</a>
<a href="../../p/x-1.0%2Ba-py3-none-any.whl#sha256=ab&amp;egg=x" data-requires-python="&gt;=3" data-yanked data-core-metadata="sha256=cd" data-gpg-sig=true data-provenance=/p>x</a>
<a href="ftp://h/x-1.0.zip">x</a><a href="x-1.1.zip" data-yanked="a &quot;b&quot; é" data-gpg-sig=maybe>x</a>
<!--SERIAL 42-->`))
	const want = `{"meta":{"api-version":"1.0","_last-serial":42,"tracks":["https://t.example/x/"]},"name":"x","project-status":{"status":"archived"},"files":[` +
		`{"filename":"x-1.0+a-py3-none-any.whl","url":"https://h.example/p/x-1.0%2Ba-py3-none-any.whl","hashes":{"sha256":"ab"},"requires-python":">=3",` +
		`"core-metadata":{"sha256":"cd"},"gpg-sig":true,"provenance":"https://h.example/p","yanked":true},` +
		`{"filename":"x-1.1.zip","url":"https://h.example/simple/x/x-1.1.zip","hashes":{},"yanked":"a \"b\" é"}]}`
	if err != nil || dropped != 1 || string(body) != want {
		t.Errorf("dropped %d, %v\ngot  %s\nwant %s", dropped, err, body, want)
	}
}

// The version is not promised to be more than 1.0, and another major one is handed on to be
// refused.
func TestVersion(t *testing.T) {
	for given, want := range map[string]string{"": "1.0", "1.0": "1.0", "1.4": "1.0", "2.0": "2.0", "1": "1", "x\"y": `x\"y`} {
		body, _, err := ToJSON("x", source(`<meta content='`+given+`' name=pypi:repository-version><a href=x-1.0.zip>x</a>`))
		if err != nil || !strings.HasPrefix(string(body), `{"meta":{"api-version":"`+want+`"}`) {
			t.Errorf("%q: %v, %s", given, err, body)
		}
	}
}

func TestNoPage(t *testing.T) {
	for _, body := range []string{"", "plain text", "<title>Sign in</title><a href=/help>", "<a name=x-1.0.zip>"} {
		e, ok := errors.AsType[*listing.Error](err(ToJSON("x", source(body))))
		if !ok || e.Limit {
			t.Errorf("%q: %v", body, e)
		}
	}
}

func err(_ []byte, _ int, err error) error { return err }

func TestProjects(t *testing.T) {
	var got []string
	add := func(name string) bool { got = append(got, name); return len(got) < 4 }
	if err := Projects([]byte(`<title>x<a href="/simple/a/">A</a><a>no</a><a class=y href=b/?q#f><A HREF=" c ">`), add); err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%q, %v", got, err)
	}
	for body, limit := range map[string]bool{"": false, "<p>none</p>": false, strings.Repeat("<a href=x>", 9): true, "<a href='" + strings.Repeat("x", maxToken+9): true} {
		got = nil
		if e, ok := errors.AsType[*listing.Error](Projects([]byte(body), add)); !ok || e.Limit != limit {
			t.Errorf("%.20q: %v", body, e)
		}
	}
}

// Whatever the page, what comes out is JSON, or an error.
func FuzzToJSON(f *testing.F) {
	f.Add(`<base href=//h><title>Links for x</title><a href=x-1.zip#sha256=00&md5=1 data-yanked='"'><!--SERIAL 9-->`)
	f.Fuzz(func(t *testing.T, body string) {
		out, _, err := ToJSON("x", source(body))
		if err == nil && !json.Valid(out) {
			t.Fatalf("%q", out)
		}
	})
}
