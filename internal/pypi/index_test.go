package pypi

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/pypi/webpage"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

func jsonSource(body string) registry.Source {
	return registry.Source{Body: []byte(body), ContentType: typeJSON}
}

func htmlSource(body string) registry.Source {
	return registry.Source{Body: []byte(body), ContentType: "text/html; charset=UTF-8"}
}

func TestScanIndex(t *testing.T) {
	want := []string{"foo", "a-b", "zope-interface"}
	for name, src := range map[string]registry.Source{
		"JSON": jsonSource(`{"meta":{"api-version":"1.4"},"projects":[{"_last-serial":1,"name":"Foo"},{"name":"a__b"},{"name":"foo"},{"name":7},7,{},` +
			`{"name":"../x"},{"name":"\ud83d"},{"name":"zope.interface"}]}`),
		"HTML": htmlSource(`<title>Simple index</title><a href="/simple/Foo/">Foo</a><a href=a__b/>x<a href="https://h.example/simple/foo">foo</a><a>none</a>` +
			`<a href="../">up</a><a href="%zz/">bad</a><a href="zope%2Einterface/?x#y">z</a>`),
	} {
		got, err := ScanIndex(src)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, src := range map[string]registry.Source{
		"no projects":      jsonSource(`{"meta":{}}`),
		"not a list":       jsonSource(`{"projects":{}}`),
		"an array":         jsonSource(`[]`),
		"truncated":        jsonSource(`{"projects":[{"name":"a"}`),
		"sign in":          htmlSource(`<title>Sign in</title><form></form>`),
		"neither":          {Body: []byte("x"), ContentType: "text/plain"},
		"an error as JSON": jsonSource(`{"message":"down"}`),
	} {
		if got, err := ScanIndex(src); !errors.Is(err, registry.ErrMalformed) || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestRenderIndex(t *testing.T) {
	want := []string{"a", "b-c"}
	for form, contentType := range map[string]string{FormJSON: typeJSON, FormHTML: "text/html"} {
		body := RenderIndex(want, form)
		got, err := ScanIndex(registry.Source{Body: body, ContentType: contentType})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v in %s", form, got, err, body)
		}
	}
	var none struct{ Projects []any }
	body := RenderIndex(nil, FormJSON)
	if err := json.Unmarshal(body, &none); err != nil || none.Projects == nil || len(none.Projects) != 0 {
		t.Errorf("%v: %s", err, body)
	}
}

// The best known index has 800,000 projects. More than the bound are refused.
func TestLargeIndex(t *testing.T) {
	names := make([]string, 800_000)
	for i := range names {
		names[i] = "project-" + strconv.Itoa(i)
	}
	body := RenderIndex(names, FormJSON)
	if got, err := ScanIndex(jsonSource(string(body))); err != nil || len(got) != len(names) {
		t.Errorf("%d, %v", len(got), err)
	}
	for form, read := range map[string]func(*index, []byte) error{
		FormJSON: (*index).json, FormHTML: func(x *index, b []byte) error { return webpage.Projects(b, x.add) },
	} {
		for most, fine := range map[int]bool{9: false, 10: true} {
			x := index{most: most}
			err := read(&x, RenderIndex(names[:10], form))
			e, limit := errors.AsType[*listing.Error](err)
			if fine != (err == nil) || !fine && (!limit || !e.Limit) {
				t.Errorf("%s, at most %d: %v", form, most, err)
			}
		}
	}
}
