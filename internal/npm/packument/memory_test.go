package packument

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/registry/registrytest"
)

// live is the memory that one scanned document takes, its text included, and what it says that it
// takes.
func live(t *testing.T, name string, body []byte) (used, said int64) {
	t.Helper()
	return registrytest.LiveMemory(t, len(body), func() (registry.Document, error) {
		return Scan(registry.Package{Ecosystem: npm.Ecosystem, Name: name}, bytes.Clone(body))
	})
}

// Issue 7, C43: a document takes no more than one and a half times its text in memory, whatever its
// size, and its cost is what it really takes. Only of a few kilobytes it takes more, which has a
// bound.
func TestLiveMemory(t *testing.T) {
	type sized struct {
		name string
		body []byte
	}
	var all []sized
	for _, shape := range packument.Shapes() {
		if shape.Bytes < 5_000_000 || !testing.Short() {
			all = append(all, sized{shape.Name, shape.Generate(1)})
		}
	}
	for _, n := range []int{1, 10, 100, 1000, 60_000} { // the lightest versions, up to 64 MB
		if n < 60_000 || !testing.Short() {
			all = append(all, sized{fmt.Sprint(n), packument.Generate(fmt.Sprint(n), n, 1, packument.Weight(1000, 50))})
		}
	}
	plain := packument.Generate("escaped", 300, 1, packument.Weight(1000, 50))
	// no address is a part of the text
	escaped := bytes.ReplaceAll(plain, []byte("https://registry"), []byte(`https:\/\/registry`))
	// no file's name is a part of the text
	other := bytes.ReplaceAll(plain, []byte(".tgz"), []byte(".zip"))
	all = append(all, sized{"escaped", escaped}, sized{"escaped", other})
	for _, d := range all {
		used, said := live(t, d.name, d.body)
		ratio := float64(used) / float64(len(d.body))
		t.Logf("%-12s %9d bytes take %.3f times that; they say %.3f of it", d.name, len(d.body), ratio, float64(said)/float64(used))
		if most := int64(len(d.body))*3/2 + 2048; used > most && d.name != "escaped" {
			t.Errorf("%s: %d bytes take %d", d.name, len(d.body), used)
		}
		if off := float64(said)/float64(used) - 1; off < -0.15 || off > 0.15 {
			t.Errorf("%s: %d bytes take %d and say %d", d.name, len(d.body), used, said)
		}
	}
}

// A file is called after its package and version, whatever its address ends with.
func TestFileNames(t *testing.T) {
	for _, address := range []string{"https://r.example/a/-/a-1.0.0.tgz", "https://r.example/x.tgz", "https://r.example/ba-1.0.0.tgz", "z"} {
		body := strings.ReplaceAll(`{"name":"@s/a","versions":{"1.0.0":{"name":"@s/a","version":"1.0.0","dist":{"tarball":"ADDRESS"}}}}`, "ADDRESS", address)
		doc, err := Scan(registry.Package{Ecosystem: npm.Ecosystem, Name: "@s/a"}, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if a := doc.Versions()[0].Artifacts[0]; a.File != "a-1.0.0.tgz" || a.URL != address {
			t.Errorf("%+v", a)
		}
	}
}
