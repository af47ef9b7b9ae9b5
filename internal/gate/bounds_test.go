package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Nothing grows with traffic: the renderings of a document are few, however many names for itself
// the gate is told (Host fields), and however often the document changes; and what they are charged
// is what they take.
func TestRenderingsAreBounded(t *testing.T) {
	g := newMemoryGate(t, 64<<20)
	g.Ecosystem.Render = func(v registry.View) (registry.Rendering, error) {
		return registry.Rendering{Body: append([]byte(v.Base), v.Parts[0].Document.Source()...)}, nil
	}
	rules, err := policy.New([]policy.Spec{{Name: "min-age", Type: policy.AllowIfOlderThan, Age: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g.SetPolicy(rules)
	e := g.read("a", 3, time.Unix(1e9, 0))
	check := func() {
		t.Helper()
		sum := int64(0)
		for _, k := range e.renderings.forms {
			sum += k.rendered.body.Cost()
		}
		if _, charged := g.Documents.Size(); len(e.renderings.forms) > maxForms || charged != e.cost()+sum || sum != e.renderings.cost() {
			t.Fatalf("%d renderings take %d bytes; %d are charged, %d without them", len(e.renderings.forms), sum, charged, e.cost())
		}
	}
	packed := 0
	render := func(base string) {
		t.Helper()
		r, err := g.renderPublic(ListingRequest{Name: "a", Form: "full", Base: base}, e)
		if err != nil {
			t.Fatal(err)
		}
		if packed++; packed%20 == 0 { // which takes a while
			r.Body(Gzip)
		}
	}
	for i := range 10_000 {
		render(fmt.Sprintf("http://host-%d.example/npm", i))
		if i%100 < maxForms+1 {
			check()
		}
	}
	for i := range 100 { // each document takes over from the one before
		next := g.read("a", 3, time.Unix(1e9+int64(i), 0))
		next.renderings = e.renderings.successor()
		e = next
		g.keep("a", e)
		for h := range i % 4 {
			render(fmt.Sprintf("http://host-%d.example/npm", h))
		}
		check()
	}
}

// C12, C44, and nothing grows with traffic: the facts that spare a listing read are kept up to a
// bound in bytes, whatever the names.
func TestSelectedFactsAreBounded(t *testing.T) {
	g := newMemoryGate(t, 1) // the least: one MiB of facts
	doc := newMemoryGate(t, 64<<20).read("a", 50, time.Now()).doc
	for i := range 5000 {
		name := fmt.Sprint("package-", i)
		g.selected(versionKey{name, "1.0.0"}, doc.Versions()[i%50], time.Now())
		if n, bytes := g.versions.Size(); bytes > 1<<20 || n > 3500 {
			t.Fatalf("%d facts of %d bytes", n, bytes)
		}
	}
	if v, ok := g.versions.Get(versionKey{"package-4999", "1.0.0"}); !ok || v.version.Version != "49.0.0" {
		t.Errorf("the last one is %v", v)
	}
	if n, _ := g.versions.Size(); n < 500 {
		t.Errorf("%d facts", n)
	}
}

// Nothing grows with traffic: names that nobody has leave nothing behind.
func TestUnknownNamesLeaveNothing(t *testing.T) {
	g := newMemoryGate(t, 64<<20)
	for i := range 10_000 {
		if e := g.recall(t.Context(), strings.Repeat("n", 1+i%200)+fmt.Sprint(i)); e != nil {
			t.Fatal("it is there")
		}
	}
	if n, bytes := g.Documents.Size(); n != 0 || bytes != 0 {
		t.Errorf("%d documents of %d bytes", n, bytes)
	}
}
