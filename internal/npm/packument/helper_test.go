package packument

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

const mount = "https://gate.example/npm"

func pkg(name string) registry.Package { return registry.Package{Ecosystem: npm.Ecosystem, Name: name} }

func scanned(t testing.TB, name, body string) registry.Document {
	t.Helper()
	doc, err := Scan(pkg(name), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// keeping makes a part that serves the versions that admit accepts.
func keeping(doc registry.Document, admit func(version string) bool) registry.Part {
	keep := make([]bool, len(doc.Versions()))
	for i, v := range doc.Versions() {
		keep[i] = admit(v.Version)
	}
	return registry.Part{Document: doc, Keep: keep}
}

func all(string) bool { return true }

// but accepts everything except the versions named.
func but(versions ...string) func(string) bool {
	return func(v string) bool { return !slices.Contains(versions, v) }
}

func rendered(t testing.TB, name, form string, parts ...registry.Part) registry.Rendering {
	t.Helper()
	r, err := Render(registry.View{Package: pkg(name), Form: form, Base: mount, Parts: parts})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type object = map[string]any

// decoded reads JSON the way most readers do: of a member given twice the last one counts.
func decoded(t testing.TB, body []byte) object {
	t.Helper()
	var v object
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %.200q", err, body)
	}
	return v
}

// versionOf is a minimal version object, with more members if wanted.
func versionOf(name, version string, more ...string) string {
	members := append([]string{
		`"name":"` + name + `"`, `"version":"` + version + `"`,
		`"dist":{"tarball":"https://secret.example/` + name + `/` + version + `.tgz"}`,
	}, more...)
	return `"` + version + `":{` + strings.Join(members, ",") + `}`
}

// listingOf is a document with the given members of "versions" and more top-level members.
func listingOf(name, versions string, more ...string) string {
	return `{` + strings.Join(append([]string{`"name":"` + name + `"`, `"versions":{` + versions + `}`}, more...), ",") + `}`
}

// tagOf is what a dist-tag of the document points to, as the upstream gave it.
func tagOf(doc registry.Document, name string) (version string, ok bool) {
	if d, own := doc.(*document); own {
		if i, found := d.tagIndex[name]; found {
			return d.tags[i].version, true
		}
	}
	return "", false
}
