package documents

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Nothing grows with traffic: the renderings of a document are few, however many names for itself
// the gate is told (Host fields), and however often the document changes; and what they are charged
// is what they take.
func TestRenderingsAreBounded(t *testing.T) {
	d := newMemoryOnly(t, 64<<20)
	e := d.read("a", 3, time.Unix(1e9, 0))
	check := func() {
		t.Helper()
		sum := int64(0)
		for _, k := range e.renderings.forms {
			sum += k.rendered.body.Cost()
		}
		if _, charged := d.memory.Size(); len(e.renderings.forms) > maxForms || charged != e.cost()+sum || sum != e.renderings.cost() {
			t.Fatalf("%d renderings take %d bytes; %d are charged, %d without them", len(e.renderings.forms), sum, charged, e.cost())
		}
	}
	packed := 0
	render := func(base string) {
		t.Helper()
		r, err := e.Rendering(time.Now(), Form{"full", base}, "rules", func() (registry.Rendering, time.Time, error) {
			return registry.Rendering{Body: append([]byte(base), e.Source()...)}, time.Time{}, nil
		})
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
		next := d.read("a", 3, time.Unix(1e9+int64(i), 0))
		next.renderings = e.renderings.successor()
		e = next
		d.keep(e)
		for h := range i % 4 {
			render(fmt.Sprintf("http://host-%d.example/npm", h))
		}
		check()
	}
}

// Nothing grows with traffic: names that nobody has leave nothing behind.
func TestUnknownNamesLeaveNothing(t *testing.T) {
	d := newMemoryOnly(t, 64<<20)
	for i := range 10_000 {
		if e := d.recall(t.Context(), strings.Repeat("n", 1+i%200)+fmt.Sprint(i)); e != nil {
			t.Fatal("it is there")
		}
	}
	if n, bytes := d.memory.Size(); n != 0 || bytes != 0 {
		t.Errorf("%d documents of %d bytes", n, bytes)
	}
}

// Issue 13: a listing over the bound is refused with the name of the key that raises it, public or
// private, and one at the bound is not.
func TestListingsAreBounded(t *testing.T) {
	toy.Inside(t, func(t *testing.T, w *toy.World) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		w.Private.Publish("a", "1.0.0", toy.LongAgo, nil)
		o := options(w)
		d := New(o)
		for side, read := range map[string]func() (registry.Document, error){
			"public": func() (registry.Document, error) {
				d.opts.Memory = NewMemory(64 << 20)
				defer d.opts.Memory.Close()
				got, err := d.Get(t.Context(), "a", 0)
				if err != nil {
					return nil, err
				}
				return got.Document, nil
			},
			"private": func() (registry.Document, error) { return d.Private(t.Context(), "a", "") },
		} {
			d.opts.MaxDocument = DefaultMaxDocument
			whole, err := read()
			if err != nil {
				t.Fatal(err)
			}
			d.opts.MaxDocument = int64(len(whole.Source()))
			if _, err := read(); err != nil {
				t.Errorf("%s, at the bound: %v", side, err)
			}
			d.opts.MaxDocument--
			if _, err := read(); err == nil || !strings.Contains(err.Error(), "cache.maxDocument") {
				t.Errorf("%s, over the bound: %v", side, err)
			}
		}
	})
}
