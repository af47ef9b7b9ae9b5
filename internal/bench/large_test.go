package bench_test

import (
	"bytes"
	"net/http"
	"os"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// rw-011: a cold listing of 105 MB and 9,000 versions, packed, is served, and the process takes at
// most three times its text for it.
func TestPeakOfALargeListing(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: a large document")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("SKIPPED: the system does not tell the memory of a process")
	}
	doc := packument.Generate("p", 9000, 1, packument.Weight(11_700, 40))
	packed := packument.Gzip(doc)
	for name, header := range map[string]string{
		"full, gzip": "Accept-Encoding: gzip", "full, plain": "Accept-Encoding: identity", "full, zstd": "Accept-Encoding: zstd",
		"abbreviated": "Accept: application/vnd.npm.install-v1+json",
	} {
		t.Run(name, func(t *testing.T) {
			registry := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				w.(http.Flusher).Flush() // without a length, as real registries send it
				_, _ = bytes.NewReader(packed).WriteTo(w)
			}))
			g := startGate(t, registry, "cache: {diskBytes: 0}")
			before := g.memory(t, "VmHWM")
			if status, _, size := ask(t, g.url+"p", header); status != http.StatusOK || size == 0 {
				t.Fatalf("status %d, %d bytes", status, size)
			}
			grown := g.memory(t, "VmHWM") - before
			t.Logf("a text of %d bytes, %d packed: the peak grew by %d, %.2f times the text", len(doc), len(packed), grown, float64(grown)/float64(len(doc)))
			if grown > 3*int64(len(doc)) {
				t.Errorf("%d bytes for a text of %d", grown, len(doc))
			}
		})
	}
}
