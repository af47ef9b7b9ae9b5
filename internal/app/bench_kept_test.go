package app

import (
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// benchKept is a gate that keeps a file of some size, in front of a registry that counts.
func benchKept(b *testing.B, size int) (gate *httptest.Server, data string, path string) {
	b.Helper()
	file := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(file)
	sum := sha512.Sum512(file)
	var registry *httptest.Server
	registry = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/-/") {
			_, _ = w.Write(file)
			return
		}
		fmt.Fprintf(w, `{"name":"a","dist-tags":{"latest":"1.0.0"},"time":{"1.0.0":"2001-01-01T00:00:00Z"},"versions":{"1.0.0":{"name":"a","version":"1.0.0","dist":{"tarball":"%s/a/-/a-1.0.0.tgz","integrity":"sha512-%s"}}}}`,
			registry.URL, base64.StdEncoding.EncodeToString(sum[:]))
	}))
	b.Cleanup(registry.Close)
	data = b.TempDir()
	app := benchServer(b, registry.Config.Handler, "mounts.npm.public", registry.URL+"/", "dataDir", data, "artifacts.maxBytes", "4GiB")
	gate = httptest.NewServer(app.Handler())
	b.Cleanup(gate.Close)
	return gate, data, "/npm/a/-/a-1.0.0.tgz"
}

// take reads a file once and gives the time that it took.
func take(b *testing.B, url string) time.Duration {
	b.Helper()
	begin := time.Now()
	resp, err := http.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || n == 0 {
		b.Fatal(resp.Status, n, err)
	}
	return time.Since(begin)
}

// Issue "kept state is proved": how fast a kept file is once it is proved, beside the same file
// sent by a server that proves nothing, in one run, by turns; and its first answer after a change
// that makes it unproved, as after a start. Area files.
func BenchmarkKeptFile(b *testing.B) {
	for _, size := range []int{100 << 10, 4 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			gate, data, path := benchKept(b, size)
			take(b, gate.URL+path)
			var kept string
			for kept == "" { // it is kept a moment after its last byte
				entries, err := os.ReadDir(filepath.Join(data, "artifacts"))
				if err != nil {
					b.Fatal(err)
				}
				for _, e := range entries {
					if !strings.HasSuffix(e.Name(), ".part") {
						kept = filepath.Join(data, "artifacts", e.Name())
					}
				}
			}
			var proved, first time.Duration
			for b.Loop() {
				now := time.Now()
				if err := os.Chtimes(kept, now, now); err != nil { // it has to be proved anew
					b.Fatal(err)
				}
				first += take(b, gate.URL+path)
				take(b, gate.URL+path)
				proved += take(b, gate.URL+path)
			}
			b.ReportMetric(proved.Seconds()*1e3/float64(b.N), "ms/proved")
			b.ReportMetric(first.Seconds()*1e3/float64(b.N), "ms/first")
			b.ReportMetric(proved.Seconds()/first.Seconds(), "first/proved-speed")
		})
	}
}

// BenchmarkProvedFile is a kept file that was proved, over and over. Area files.
func BenchmarkProvedFile(b *testing.B) {
	gate, _, path := benchKept(b, 100<<10)
	take(b, gate.URL+path)
	hammer(b, strings.TrimPrefix(gate.URL, "http://"), path, "", http.StatusOK)
}
