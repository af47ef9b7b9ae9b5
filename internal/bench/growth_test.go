package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ecluse-gate/ecluse/internal/app"
	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/npm"
	listings "github.com/ecluse-gate/ecluse/internal/npm/packument"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/registry/registrytest"
)

// BenchmarkGrowthDocument is a cold listing over the size of its document, in versions of some 1.8
// KB.
func BenchmarkGrowthDocument(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{
		{"10KB", 10e3}, {"100KB", 100e3}, {"1MB", 1e6}, {"3.7MB", 3.7e6}, {"10MB", 10e6}, {"20MB", 20e6}, {"40MB", 40e6}, {"64MB", 64e6},
	} {
		const weight, each = 1790, 1845 // with its publish time
		b.Run("size="+size.name, func(b *testing.B) {
			cold(b, "p", packument.Generate("p", max(size.bytes/each, 1), 1, packument.Weight(weight, 50)))
		})
	}
}

// BenchmarkGrowthAlike is the same with versions that repeat each other as much as real ones do.
func BenchmarkGrowthAlike(b *testing.B) {
	for _, shape := range packument.Shapes() {
		if shape.Versions > 100 {
			b.Run("like="+shape.Name, func(b *testing.B) { cold(b, shape.Name, shape.Generate(1, packument.Alike())) })
		}
	}
	b.Run("size=3.7MB", func(b *testing.B) {
		cold(b, "p", packument.Generate("p", 2005, 1, packument.Weight(1790, 50), packument.Alike()))
	})
}

// BenchmarkGrowthVersions is a cold listing over the number of its versions, each as short as can
// be.
func BenchmarkGrowthVersions(b *testing.B) {
	for _, versions := range []int{10, 100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("versions=%d", versions), func(b *testing.B) {
			cold(b, "p", packument.Generate("p", versions, 1, packument.Bare()))
		})
	}
}

// BenchmarkRealDocuments is the same with [realDocuments].
func BenchmarkRealDocuments(b *testing.B) {
	docs := realDocuments(b)
	if len(docs) == 0 {
		b.Skip("SKIPPED: BENCH_DOCUMENTS names no folder of documents")
	}
	for _, d := range docs {
		b.Run(fmt.Sprintf("package=%s/versions=%d", d.pkg, bytes.Count(d.body, []byte(`"tarball"`))), func(b *testing.B) { cold(b, d.pkg, d.body) })
	}
}

type realDocument struct {
	pkg  string
	body []byte
}

// realDocuments are those of the folder BENCH_DOCUMENTS, as a registry sends them, in files that
// end in .json; none if it is not set.
func realDocuments(b *testing.B) (docs []realDocument) {
	b.Helper()
	dir := os.Getenv("BENCH_DOCUMENTS")
	if dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		b.Fatalf("no document in %s: %v", dir, err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		var head struct{ Name string }
		if err != nil || json.Unmarshal(body, &head) != nil {
			b.Fatalf("%s is no document: %v", file, err)
		}
		docs = append(docs, realDocument{head.Name, body})
	}
	return docs
}

// cold measures [coldListing] of a document.
func cold(b *testing.B, name string, body []byte) {
	b.Helper()
	paced(b, body)
	rules := minAge(b)
	before := registrytest.Heap()
	doc, out := coldListing(b, rules, name, bytes.Clone(body))
	both := registrytest.Heap() - before
	served := len(out.Body)
	out = registry.Rendering{}
	alone := registrytest.Heap() - before
	runtime.KeepAlive(doc)
	doc = nil
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	used := processor(b)
	for b.Loop() {
		coldListing(b, rules, name, body)
	}
	b.ReportMetric(float64(processor(b)-used)/1e6/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(len(body)), "doc-bytes")
	b.ReportMetric(float64(served), "served-bytes")
	b.ReportMetric(float64(alone)/float64(len(body)), "live/doc")
	b.ReportMetric(float64(both)/float64(len(body)), "live-with-body/doc")
	runtime.KeepAlive(doc)
}

// paced sets the collector as in a gate that holds this document and no other.
func paced(b *testing.B, body []byte) {
	b.Helper()
	if os.Getenv("GOGC") == "" {
		before := debug.SetGCPercent(app.Pace(int64(len(body))))
		b.Cleanup(func() { debug.SetGCPercent(before) })
	}
}

// minAge are the rules of a cold listing.
func minAge(b *testing.B) *policy.Set {
	b.Helper()
	rules, err := policy.New([]policy.Spec{{Name: "min-age", Type: policy.AllowIfOlderThan, Age: 24 * time.Hour}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return rules
}

// coldListing scans a document, asks the rules about each version and splices what stays: all but
// the newest twentieth.
func coldListing(b *testing.B, rules *policy.Set, name string, body []byte) (registry.Document, registry.Rendering) {
	b.Helper()
	pkg := registry.Package{Ecosystem: npm.Ecosystem, Name: name}
	doc, err := listings.Scan(pkg, body)
	if err != nil {
		b.Fatal(err)
	}
	versions := doc.Versions()
	now := versions[len(versions)-1].Published.Add(-time.Duration(len(versions)/20) * 24 * time.Hour)
	keep := make([]bool, len(versions))
	for i, v := range versions {
		keep[i], _, _ = rules.Admits(now, policy.Subject{Package: pkg, Version: v})
	}
	out, err := listings.Render(registry.View{
		Package: pkg, Form: npm.FormFull, Base: "http://gate.test/npm", Parts: []registry.Part{{Document: doc, Keep: keep}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return doc, out
}

// processor is the processor time that this process has used, which neighbours on a busy machine
// stretch less than the clock's.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkGrowthClients is the warm listing of 160 KB over the number of clients, beside plain Go
// and nginx.
func BenchmarkGrowthClients(b *testing.B) {
	doc := small()
	g := startGate(b, registryOf(b, doc), warm)
	dir := folder(b, map[string][]byte{"p": doc})
	plain := startPlain(b, dir)
	nginx := startNginx(b, dir, plain.url)
	for _, n := range []int{1, 2, 5, 20, 100, 500, 1000, 2000} {
		compare(b, fmt.Sprintf("clients=%d", n), n, ofGate(g, "p", ""),
			target{name: "plain", process: plain, path: "memory/p"}, target{name: "nginx", process: nginx, path: "cached/memory/p"})
	}
}

// budget is what a gate may keep in memory by default.
const budget = 256 << 20

// stencil stands for a package's name in a document that many packages share.
const stencil = "p00000"

// BenchmarkGrowthDocuments is the memory of the gate's process after so many documents of 160 KB
// were asked for, as npm asks, full and packed: 0 is the idle gate, and some 500 of them fill the
// budget.
func BenchmarkGrowthDocuments(b *testing.B) {
	for _, n := range []int{0, 1, 10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("documents=%d", n), func(b *testing.B) {
			g := startGate(b, manyPackages(b, packument.Generate(stencil, 118, 1)), "cache: {ttl: 24h, diskBytes: 0}")
			askForMany(b, g, n)
			time.Sleep(1200 * time.Millisecond) // it rests
			rss := g.memory(b, "VmRSS")
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(rss)/(1<<20), "RSS-MiB")
			b.ReportMetric(float64(g.memory(b, "VmHWM"))/(1<<20), "peak-MiB")
			b.ReportMetric(float64(rss)/budget, "RSS/budget")
		})
	}
}

// manyPackages is a registry in which every name of the stencil's length has the same document.
func manyPackages(tb testing.TB, doc []byte) string {
	tb.Helper()
	return serve(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.Trim(r.URL.Path, "/")
		http.ServeContent(w, r, ".json", time.Time{}, bytes.NewReader(bytes.ReplaceAll(doc, []byte(stencil), []byte(name))))
	}))
}

// askForMany asks a gate for the listings of so many packages, four at a time.
func askForMany(tb testing.TB, g gate, n int) {
	tb.Helper()
	names := make(chan string)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for name := range names {
				if status, _, _ := ask(tb, g.url+name, packed); status != http.StatusOK {
					tb.Errorf("%s: status %d", name, status)
				}
			}
		})
	}
	for i := range n {
		names <- fmt.Sprintf("p%05d", i)
	}
	close(names)
	wg.Wait()
}
