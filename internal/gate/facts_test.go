package gate

import (
	"fmt"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// C12, C44, and nothing grows with traffic: the facts that spare a listing read are kept up to a
// bound in bytes, whatever the names.
func TestSelectedFactsAreBounded(t *testing.T) {
	world := toy.NewWorld(t)
	defer world.Close()
	// the least: one MiB of facts
	w := in(world, func(_ *toy.World, o *Options) { o.Memory = documents.NewMemory(1) })
	for i := range 5000 {
		name := fmt.Sprint("package-", i)
		v := registry.Version{Version: fmt.Sprintf("%d.0.0", i%50), Published: time.Unix(0, 0)}
		w.gate.selected(versionKey{name, "1.0.0"}, v, time.Now())
		if n, bytes := w.gate.versions.Size(); bytes > 1<<20 || n > 3500 {
			t.Fatalf("%d facts of %d bytes", n, bytes)
		}
	}
	if v, ok := w.gate.versions.Get(versionKey{"package-4999", "1.0.0"}); !ok || v.version.Version != "49.0.0" {
		t.Errorf("the last one is %v", v)
	}
	if n, _ := w.gate.versions.Size(); n < 500 {
		t.Errorf("%d facts", n)
	}
}
