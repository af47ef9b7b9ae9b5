package bench_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// clients is how many connections a goal is measured with.
const clients = 16

const packed = "Accept-Encoding: gzip"

// warm keeps documents as long as a benchmark runs.
const warm = "cache: {ttl: 24h}"

// small and large are the documents of the goals: 160 KB in 118 versions, 3.7 MB in 2,000, all of
// age.
func small() []byte { return packument.Generate("p", 118, 1) }
func large() []byte { return packument.Generate("p", 2000, 1, packument.Weight(1790, 50)) }

// registryOf serves a document of the package p on loopback.
func registryOf(tb testing.TB, doc []byte) string {
	tb.Helper()
	up := fakenpm.New("http://unused.test")
	up.SetDocument("p", doc)
	return serve(tb, up)
}

func serve(tb testing.TB, h http.Handler) string {
	tb.Helper()
	s := httptest.NewServer(h)
	tb.Cleanup(s.Close)
	return s.URL
}

// folder holds files that plain servers serve.
func folder(tb testing.TB, files map[string][]byte) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// BenchmarkListing compares a warm listing with what else could serve the same document: plain Go
// with the bytes in memory, packed in advance where the client takes gzip; nginx with a warm cache
// of it; and Verdaccio, which holds it as its own.
func BenchmarkListing(b *testing.B) {
	for _, size := range []struct {
		name string
		doc  []byte
	}{{"160KB", small()}, {"3.7MB", large()}} {
		g := startGate(b, registryOf(b, size.doc), warm)
		dir := folder(b, map[string][]byte{"p": size.doc, "p.gz": packument.Gzip(size.doc)})
		plain := startPlain(b, dir)
		nginx, verdaccio := startNginx(b, dir, plain.url), startVerdaccio(b, size.doc)
		slow := len(size.doc) > 1<<20
		compare(b, "size="+size.name+"/encoding=identity", clients, ofGate(g, "p", ""),
			target{name: "plain", process: plain, path: "memory/p"}, target{name: "nginx", process: nginx, path: "cached/memory/p"},
			target{name: "verdaccio", process: verdaccio, path: "p", slow: slow})
		compare(b, "size="+size.name+"/encoding=gzip", clients, ofGate(g, "p", packed),
			target{name: "plain", process: plain, path: "memory/p.gz", header: packed},
			target{name: "nginx", process: nginx, path: "cached/memory/p.gz", header: packed},
			target{name: "verdaccio", process: verdaccio, path: "p", header: packed, slow: slow})
	}
}

// BenchmarkNotModified is a client that has the listing of 160 KB already.
func BenchmarkNotModified(b *testing.B) {
	g := startGate(b, registryOf(b, small()), warm)
	_, header, _ := ask(b, g.url+"p", "")
	t := ofGate(g, "p", "If-None-Match: "+header.Get("ETag"))
	t.status = http.StatusNotModified
	compare(b, "size=160KB", clients, t)
}

// BenchmarkRefusal is what a refused client costs while an authority cools (C80).
func BenchmarkRefusal(b *testing.B) {
	up := fakenpm.New("http://unused.test")
	up.Always(http.StatusTooManyRequests, "Retry-After", "600")
	g := startGate(b, serve(b, up), "")
	ask(b, g.url+"p", "")
	t := ofGate(g, "p", "")
	t.status = http.StatusServiceUnavailable
	compare(b, "cooling", clients, t)
}

// release is a registry in which every package has one version, whose file write sends.
func release(file func(name string) []byte, write func(http.ResponseWriter, []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, isFile := strings.Cut(strings.Trim(r.URL.Path, "/"), "/-/")
		if isFile {
			write(w, file(name))
			return
		}
		fmt.Fprintf(w, `{"name":%[1]q,"versions":{"1.0.0":{"name":%[1]q,"version":"1.0.0","dist":{"tarball":"http://unused.test/%[1]s/-/%[1]s-1.0.0.tgz",`+
			`"integrity":%[2]q}}},"time":{"1.0.0":"1999-01-01T00:00:00Z"}}`, name, fakenpm.Integrity(file(name)))
	})
}

// BenchmarkArtifact is a file of 10 MB, kept on the gate's disk, beside nginx and http.ServeFile,
// which have it on theirs.
func BenchmarkArtifact(b *testing.B) {
	file := bytes.Repeat([]byte("0123456789abcdef"), 10<<16)
	g := startGate(b, serve(b, release(func(string) []byte { return file }, func(w http.ResponseWriter, f []byte) { _, _ = w.Write(f) })), warm)
	dir := folder(b, map[string][]byte{"p.tgz": file})
	plain := startPlain(b, dir)
	nginx := startNginx(b, dir, plain.url)
	compare(b, "size=10MB", clients, ofGate(g, "p/-/p-1.0.0.tgz", ""),
		target{name: "nginx", process: nginx, path: "disk/p.tgz"}, target{name: "plain", process: plain, path: "disk/p.tgz"})
}

// BenchmarkColdArtifact is 50 clients who ask at once for a file of 10 MB that nobody has asked for
// before. The registry thinks for 100 milliseconds and then sends 64 KB every 10 milliseconds.
// Before each, one client asks the registry itself for the same. All have read the listing on the
// connection that they use.
func BenchmarkColdArtifact(b *testing.B) {
	const crowd = 50
	transfers := make(chan struct{}, 1000)
	g := startGate(b, serve(b, release(distinctFile, func(w http.ResponseWriter, file []byte) {
		transfers <- struct{}{}
		trickle(w, file)
	})), warm)
	direct := serve(b, release(distinctFile, trickle))
	round := 0
	b.Run(fmt.Sprintf("clients=%d", crowd), func(b *testing.B) {
		var through, alone, worst []float64
		before := len(transfers)
		for range b.N {
			round++
			name := fmt.Sprintf("p%d", round)
			alone = append(alone, firstBytes(b, direct+"/", name, 1)...)
			times := firstBytes(b, g.url, name, crowd)
			through, worst = append(through, middle(times)), append(worst, times[len(times)-1])
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(middle(through), "first-byte-ms")
		b.ReportMetric(middle(worst), "last-client-ms")
		b.ReportMetric(middle(alone), "upstream-ms")
		b.ReportMetric(middle(through)/middle(alone), "ratio/upstream")
		b.ReportMetric(float64(len(transfers)-before)/float64(b.N), "transfers")
	})
}

// trickle sends a file as a far registry does.
func trickle(w http.ResponseWriter, file []byte) {
	const piece = 64 << 10
	w.Header().Set("Content-Length", fmt.Sprint(len(file)))
	time.Sleep(100 * time.Millisecond)
	for len(file) > 0 {
		n := min(piece, len(file))
		if _, err := w.Write(file[:n]); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		file = file[n:]
		time.Sleep(10 * time.Millisecond)
	}
}
