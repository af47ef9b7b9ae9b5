package bench_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// Issue 13: sixty clients ask at once for sixty listings of 60 KB that unpack to 60 MB, in as much
// memory as a container of 512 MiB leaves to Go. All are answered in the end, some after a 503 that
// says when to ask again, and the process never has more than the container.
func TestManyLargeListingsInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: large documents")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("SKIPPED: the system does not tell the memory of a process")
	}
	const clients, container = 60, 512 << 20
	// two members of one gzip body: the name, and the rest, which is the same for all
	tail := packument.Gzip(fmt.Appendf(nil, `"dist-tags":{"latest":"1.0.0"},"time":{"1.0.0":"2020-01-01T00:00:00.000Z"},"versions":{"1.0.0":{"version":"1.0.0",`+
		`"dist":{"tarball":"http://unused.test/x.tgz","integrity":"sha512-%s=="}}},"readme":%q}`, strings.Repeat("A", 86), strings.Repeat("x", 60<<20)))
	registry := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packument.Gzip(fmt.Appendf(nil, `{"name":%q,`, strings.Trim(r.URL.Path, "/"))))
		_, _ = w.Write(tail)
	}))
	g := startGate(t, registry, "cache: {diskBytes: 0}", fmt.Sprintf("GOMEMLIMIT=%d", container/10*8))
	start := time.Now()
	var wg sync.WaitGroup
	var later atomic.Int64
	for i := range clients {
		wg.Go(func() {
			for {
				status, header, _ := ask(t, fmt.Sprintf("%sp%02d", g.url, i), "Accept-Encoding: gzip")
				if status == http.StatusOK {
					return
				}
				wait, err := strconv.Atoi(header.Get("Retry-After"))
				if status != http.StatusServiceUnavailable || err != nil || time.Since(start) > 5*time.Minute {
					t.Errorf("status %d, %v after %v", status, header, time.Since(start))
					return
				}
				later.Add(1)
				time.Sleep(time.Duration(wait) * time.Second)
			}
		})
	}
	wg.Wait()
	peak := g.memory(t, "VmHWM")
	t.Logf("%d listings in %v, %d times told to ask later; the peak was %d MiB", clients, time.Since(start).Round(time.Second), later.Load(), peak>>20)
	if peak > container {
		t.Errorf("the process had %d bytes", peak)
	}
}
