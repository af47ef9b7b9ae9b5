package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/registry/registrytest"
)

// memoryGate is a gate without upstreams: its memory alone is looked at. Each scan takes a second
// of virtual time when slow is set.
type memoryGate struct {
	*Gate
	t     *testing.T
	scans atomic.Int32
	slow  bool
}

func newMemoryGate(t *testing.T, maxBytes int64) *memoryGate {
	g := &memoryGate{t: t}
	g.Gate = New(Options{
		Documents: NewDocuments(maxBytes), Logger: slog.New(slog.DiscardHandler), Metrics: obs.NewMetrics(), TTL: time.Minute,
		Ecosystem: Ecosystem{Name: "lines", Scan: func(_ registry.Package, src registry.Source) (registry.Document, error) {
			g.scans.Add(1)
			if g.slow {
				time.Sleep(time.Second)
			}
			return scanLines(src.Body), nil
		}},
	})
	return g
}

// lines is a document of a protocol of its own: a version in each line, up to the first space. As
// in all documents, what it tells of a version is a part of its text.
type lines struct {
	body     []byte
	text     string
	versions []registry.Version
}

func scanLines(body []byte) *lines {
	d := &lines{body: body, text: string(body)}
	for line := range strings.Lines(d.text) {
		version, _, _ := strings.Cut(line, " ")
		d.versions = append(d.versions, registry.Version{Version: version, Published: time.Unix(0, 0)})
	}
	d.versions = slices.Clip(d.versions)
	return d
}

func (d *lines) Versions() []registry.Version { return d.versions }
func (d *lines) Lookup(version string) int {
	return slices.IndexFunc(d.versions, func(v registry.Version) bool { return v.Version == version })
}
func (d *lines) Dropped() int   { return 0 }
func (d *lines) Source() []byte { return d.body }
func (d *lines) Cost() int64    { return int64(2*cap(d.body) + 96*cap(d.versions)) }

// read puts a document of so many versions into the memory, as a fetch does.
func (g *memoryGate) read(name string, versions int, at time.Time) *entry {
	g.t.Helper()
	var body []byte
	for i := range versions {
		body = fmt.Appendf(body, "%d.0.0 %s", i, name)
		for at := range 60 {
			body = fmt.Appendf(body, " %d says the same", (i*7919+at*104729)%5000)
		}
		body = append(body, '\n')
	}
	e := &entry{doc: scanLines(bytes.Clone(body)), etag: `"` + name + `"`, fetched: at.Add(-time.Second), checked: at, contentType: "application/json", renderings: &renderings{}}
	g.keep(name, e)
	return e
}

// packed makes a document that is kept packed.
func (g *memoryGate) packed(name string) *entry {
	g.t.Helper()
	g.read(name, 40, time.Now())
	e, cost, ok := g.Documents.pack(g.held(name))
	if !ok || !g.documents.Swap(g.docKey(name), e, cost, func(*entry, bool) bool { return true }) {
		g.t.Fatal("not packed")
	}
	return e
}

func (g *memoryGate) held(name string) *entry {
	e, _ := g.documents.Get(g.docKey(name))
	return e
}

// C61: a packed document is the same again, byte by byte, with the same validator and the same age.
func TestPackedDocumentIsTheSameAgain(t *testing.T) {
	g := newMemoryGate(t, 64<<20)
	before := g.read("a", 100, time.Unix(1e9, 0))
	packed, cost, ok := g.Documents.pack(before)
	if !ok || packed.doc != nil || cost > before.cost()/2 {
		t.Fatalf("packed: %v, %d bytes of %d", ok, cost, before.cost())
	}
	after, err := g.Documents.unpack(g.docKey("a"), packed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(after.doc.Source(), before.doc.Source()) || after.etag != before.etag || after.fetched != before.fetched ||
		after.checked != before.checked || after.contentType != before.contentType || after.packed != nil || after.cost() > before.cost() || after.cost() < before.cost()*9/10 {
		t.Errorf("%+v, before %+v", after, before)
	}
	if _, _, ok := g.Documents.pack(g.read("small", 3, time.Now())); ok {
		t.Error("a small document was packed")
	}
	packed.packed = packed.packed[:len(packed.packed)/2]
	if _, err := g.Documents.unpack(g.docKey("a"), packed); err == nil {
		t.Error("half of it was unpacked")
	}
}

// R46: any number of requests for a packed document unpack it once, and it stays unpacked. One that
// cannot be unpacked is forgotten.
func TestPackedDocumentIsUnpackedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newMemoryGate(t, 64<<20)
		packed := g.packed("a")
		g.slow = true
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if e := g.recall(t.Context(), "a"); e == nil || e.doc == nil || e.etag != packed.etag || e.checked != packed.checked {
					t.Errorf("got %+v", e)
				}
			})
		}
		wg.Wait()
		if e := g.held("a"); e.doc == nil || g.scans.Load() != 1 {
			t.Errorf("kept %v, %d scans", e.doc != nil, g.scans.Load())
		}
		if n, bytes := g.Documents.Size(); n != 1 || bytes != g.held("a").cost() {
			t.Errorf("%d documents of %d bytes", n, bytes)
		}
		damaged := g.packed("b").packed
		damaged[len(damaged)/2] ^= 1
		if e := g.recall(t.Context(), "b"); e != nil || g.held("b") != nil {
			t.Errorf("got %+v, kept %+v", e, g.held("b"))
		}
	})
}

// What happens while a document is unpacked is newer than it: another document, or the upstream's
// word that there is none.
func TestUnpackedDocumentReplacesNothingNewer(t *testing.T) {
	for name, meanwhile := range map[string]func(*memoryGate){
		"fetched": func(g *memoryGate) { g.read("a", 50, time.Now()) },
		"gone":    func(g *memoryGate) { g.forget("a") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newMemoryGate(t, 64<<20)
				g.packed("a")
				g.slow = true
				done := make(chan *entry)
				go func() { done <- g.recall(t.Context(), "a") }()
				time.Sleep(time.Millisecond)
				meanwhile(g)
				got := <-done
				switch kept := g.held("a"); {
				case name == "gone" && kept != nil:
					t.Error("what is gone is kept again")
				case name == "fetched" && (len(kept.doc.Versions()) != 50 || got != kept):
					t.Errorf("kept the one of %d versions, served that of %d", len(kept.doc.Versions()), len(got.doc.Versions()))
				}
			})
		})
	}
}

// The answer to an earlier question that took longer never replaces that to a later one.
func TestKeptDocumentIsTheNewest(t *testing.T) {
	g := newMemoryGate(t, 64<<20)
	g.read("a", 20, time.Unix(2000, 0))
	g.read("a", 10, time.Unix(1000, 0))
	if n := len(g.held("a").doc.Versions()); n != 20 {
		t.Errorf("%d versions", n)
	}
}

// A dry run of other rules sees packed documents too, and leaves them packed.
func TestListingsOfPackedDocuments(t *testing.T) {
	g := newMemoryGate(t, 64<<20)
	g.packed("a")
	g.read("b", 5, time.Now())
	seen := map[string]int{}
	for pkg, doc := range g.Documents.Listings() {
		seen[pkg.Name] = len(doc.Versions())
	}
	if len(seen) != 2 || seen["a"] != 40 || seen["b"] != 5 || g.held("a").doc != nil {
		t.Errorf("seen %v", seen)
	}
}

// Issue 7: memory stays within the budget plus 20 %, whatever passes through: the documents
// themselves, the facts that artifact requests leave behind, and the keys, which are parts of long
// addresses. C43.
func TestMemoryStaysWithinTheBudget(t *testing.T) {
	const budget, documents = 4 << 20, 200
	g := newMemoryGate(t, budget)
	base := registrytest.Heap()
	for i := range documents {
		name := fmt.Sprintf("package-%d", i)
		// as a request has it
		long := strings.Clone(name + "?" + strings.Repeat("x", 60_000))[:len(name)]
		e := g.read(strings.Clone(name), 60, time.Now())
		g.selected(versionKey{long, "1"}, e.doc.Versions()[0], e.checked)
		g.selected(versionKey{long, "2"}, e.doc.Versions()[50], e.checked)
		if n, bytes := g.Documents.Size(); bytes > budget || n > i+1 {
			t.Fatalf("%d documents of %d bytes", n, bytes)
		}
		g.Documents.Close() // the race detector would slow the packer more than the reader
	}
	used := registrytest.Heap() - base
	n, bytes := g.Documents.Size()
	cold, coldBytes := g.Documents.Cold()
	t.Logf("%d documents, %d of them cold, %d bytes of them cold; %d charged, %d used", n, cold, coldBytes, bytes, used)
	const facts, codec = documents * 2 * 1024, 4 << 20 // what selected facts take, and the packer
	if used > budget*12/10+facts+codec || used < bytes*8/10 {
		t.Errorf("%d bytes used, %d charged of %d", used, bytes, budget)
	}
	if cold == 0 || n < 80 {
		t.Errorf("%d documents, %d packed", n, cold)
	}
	runtime.KeepAlive(g)
}

// A caller that goes away while a document is unpacked harms nobody else.
func TestRecallAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newMemoryGate(t, 64<<20)
		g.packed("a")
		g.slow = true
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan *entry)
		go func() { g.recall(ctx, "a"); done <- nil }()
		go func() { done <- g.recall(t.Context(), "a") }()
		time.Sleep(time.Millisecond)
		cancel(errors.New("gone"))
		if first, second := <-done, <-done; first != nil || second == nil {
			t.Error("the one who stayed got nothing")
		}
	})
}
