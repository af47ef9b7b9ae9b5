package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/registry/registrytest"
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

// Issue 7: memory stays within the budget plus 20 %, whatever passes through: the documents
// themselves, the facts that artifact requests leave behind, and the keys, which are parts of long
// addresses. C43.
func TestMemoryStaysWithinTheBudget(t *testing.T) {
	const budget, count = 4 << 20, 200
	inWorld(t, func(t *testing.T, w *world) {
		body := func(name string) []byte {
			var versions []string
			for i := range 60 {
				versions = append(versions, fmt.Sprintf(`"%d.0.0": {"dist": {"tarball": "http://registry.test/%s/-/%s-%d.0.0.tgz"}, "note": "%0900d"}`,
					i, name, name, i, i*7919))
			}
			return []byte(`{"versions": {` + strings.Join(versions, ",") + `}}`)
		}
		base := registrytest.Heap()
		for i := range count {
			name := fmt.Sprintf("package-%d", i)
			// as a request has it
			long := strings.Clone(name + "?" + strings.Repeat("x", 60_000))[:len(name)]
			w.Public.SetDocument(name, body(name))
			for _, key := range []string{"1.0.0", "50.0.0"} {
				if _, err := w.gate.version(t.Context(), long, key, "", anything); err != nil {
					t.Fatal(err)
				}
			}
			if n, bytes := w.memory.Size(); bytes > budget || n > i+1 {
				t.Fatalf("%d documents of %d bytes", n, bytes)
			}
			w.memory.Close() // the race detector would slow the packer more than the reader
			w.Public.SetDocument(name, nil)
		}
		used := registrytest.Heap() - base
		n, bytes := w.memory.Size()
		cold, coldBytes := w.memory.Cold()
		t.Logf("%d documents, %d of them cold, %d bytes of them cold; %d charged, %d used", n, cold, coldBytes, bytes, used)
		// what selected facts take, the packer, and the registry
		const facts, codec, wire = count * 2 * 1024, 4 << 20, 1 << 20
		if used > budget*12/10+facts+codec+wire || used < bytes*8/10 {
			t.Errorf("%d bytes used, %d charged of %d", used, bytes, budget)
		}
		if cold == 0 || n < 80 {
			t.Errorf("%d documents, %d packed", n, cold)
		}
		if facts, _ := w.gate.versions.Size(); facts != 2*count {
			t.Errorf("%d facts", facts)
		}
	}, func(_ *toy.World, o *Options) { o.Memory = documents.NewMemory(budget) })
}
