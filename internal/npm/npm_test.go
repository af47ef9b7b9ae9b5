package npm

import (
	"testing"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

const small = `{"_id":"@acme/x","name":"@acme/x","dist-tags":{"latest":"2.0.0","beta":"2.0.0"},"versions":{
"1.0.0":{"name":"@acme/x","version":"1.0.0","scripts":{"postinstall":"x"},"odd":[1,{"a":null}],"dist":{"shasum":"aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d","tarball":"https://r.example/@acme/x/-/x-1.0.0.tgz"}},
"2.0.0":{"name":"@acme/x","version":"2.0.0","dist":{"tarball":"https://r.example/@acme/x/-/x-2.0.0.tgz"}}},
"time":{"created":"2020-01-01T00:00:00Z","modified":"2021-01-01T00:00:00.000Z","1.0.0":"2020-01-01T00:00:00Z","2.0.0":"2021-01-01T02:00:00.123456+02:00"},"readme":"\ud83d \u00e9"}`

func TestThin(t *testing.T) {
	doc, err := Scan(registry.Package{Ecosystem: Ecosystem, Name: "@acme/x"}, []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", doc.Versions())
	for _, form := range []string{FormFull, FormAbbreviated} {
		r, err := Render(registry.View{Package: registry.Package{Ecosystem: Ecosystem, Name: "@acme/x"}, Form: form, Base: "https://gate.example/npm",
			Parts: []registry.Part{{Document: doc, Keep: []bool{true, false}}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s", r.Body)
	}
}
