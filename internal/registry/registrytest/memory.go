package registrytest

import (
	"runtime"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// LiveMemory is the bytes of memory that one scanned document takes, its text included, and what it
// says that it takes. Scan makes it of a body of its own each time; small documents are made in
// numbers, so that some megabytes are measured.
func LiveMemory(t *testing.T, size int, scan func() (registry.Document, error)) (used, said int64) {
	t.Helper()
	docs := make([]registry.Document, max(1, 2<<20/size))
	before := Heap()
	for i := range docs {
		doc, err := scan()
		if err != nil {
			t.Fatal(err)
		}
		docs[i] = doc
	}
	used, said = (Heap()-before)/int64(len(docs)), docs[0].Cost()
	runtime.KeepAlive(docs)
	return used, said
}

// Heap is what the heap holds once the garbage is gone, and what pools hold until the next
// collection but one.
func Heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
