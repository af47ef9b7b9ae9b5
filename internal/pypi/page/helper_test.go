package page

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

const (
	mount  = "https://gate.example/pypi"
	sha    = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	sha2   = "f3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	md5sum = "d41d8cd98f00b204e9800998ecf8427e"
)

func pkg(name string) registry.Package {
	return registry.Package{Ecosystem: pypi.Ecosystem, Name: name}
}

var pageURL = &url.URL{Scheme: "https", Host: "secret.example", Path: "/simple/x/"}

func jsonSource(body string) registry.Source {
	return registry.Source{Body: []byte(body), ContentType: pypi.ContentType(pypi.FormJSON), URL: pageURL}
}

func htmlSource(body string) registry.Source {
	return registry.Source{Body: []byte(body), ContentType: "text/html; charset=UTF-8", URL: pageURL}
}

func scanned(t testing.TB, src registry.Source) registry.Document {
	t.Helper()
	doc, err := Scan(pkg("x"), src)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// keeping makes a part that serves the files that admit accepts.
func keeping(doc registry.Document, admit func(file string) bool) registry.Part {
	keep := make([]bool, len(doc.Versions()))
	for i, v := range doc.Versions() {
		keep[i] = admit(v.Artifacts[0].File)
	}
	return registry.Part{Document: doc, Keep: keep}
}

func all(string) bool { return true }

// but accepts everything except the files named.
func but(files ...string) func(string) bool {
	return func(file string) bool {
		return !slices.Contains(files, file)
	}
}

func rendered(t testing.TB, form string, parts ...registry.Part) registry.Rendering {
	t.Helper()
	r, err := Render(registry.View{Package: pkg("x"), Form: form, Base: mount, Parts: parts})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type object = map[string]any

func decoded(t testing.TB, body []byte) object {
	t.Helper()
	var v object
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %.300q", err, body)
	}
	return v
}

// filesOf are the objects of a JSON page, by file name.
func filesOf(t testing.TB, page object) map[string]object {
	t.Helper()
	files := map[string]object{}
	for _, f := range page["files"].([]any) {
		f := f.(object)
		files[f["filename"].(string)] = f
	}
	return files
}

func file(name string, more ...string) string {
	return "{" + strings.Join(append([]string{
		fmt.Sprintf(`"filename":%q`, name), fmt.Sprintf(`"url":"https://secret.example/packages/%s"`, name), `"hashes":{"sha256":"` + sha + `"}`,
	}, more...), ",") + "}"
}

func page(files string, more ...string) string {
	return "{" + strings.Join(append([]string{`"meta":{"api-version":"1.1"}`, `"name":"x"`, `"files":[` + files + `]`}, more...), ",") + "}"
}

// names are the files of a document, joined.
func names(doc registry.Document) string {
	var list []string
	for _, v := range doc.Versions() {
		list = append(list, v.Artifacts[0].File)
	}
	return strings.Join(list, " ")
}
