package page

import (
	"bytes"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/registry/registrytest"
)

// Issue 7, C43: the cost of a page is what it really takes in memory, whatever its size and its
// form, and that is linear.
func TestLiveMemory(t *testing.T) {
	for _, files := range []int{1, 10, 100, 1000, 5000} {
		asJSON, asHTML := fakepypi.Generate("a", files, 1, "https://files.example")
		for form, body := range map[string][]byte{"application/json": asJSON, "text/html": asHTML} {
			used, said := live(t, form, body)
			t.Logf("%d files in %d bytes of %s take %.2f times that; they say %.3f of it", files, len(body), form,
				float64(used)/float64(len(body)), float64(said)/float64(used))
			if off := float64(said)/float64(used) - 1; off < -0.15 || off > 0.18 {
				t.Errorf("%d files, %s: they take %d bytes and say %d", files, form, used, said)
			}
			if used > int64(1800+len(body)*21/10) {
				t.Errorf("%d files, %s: %d bytes take %d", files, form, len(body), used)
			}
		}
	}
}

// live is the memory that one scanned page takes, its text included, and what it says that it
// takes.
func live(t *testing.T, form string, body []byte) (used, said int64) {
	t.Helper()
	return registrytest.LiveMemory(t, len(body), func() (registry.Document, error) {
		return Scan(registry.Package{Ecosystem: pypi.Ecosystem, Name: "a"}, registry.Source{Body: bytes.Clone(body), ContentType: form})
	})
}
