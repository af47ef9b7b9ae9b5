package documents

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

// memoryOnly are documents without upstreams: their memory alone is looked at. Each scan takes a
// second of virtual time when slow is set.
type memoryOnly struct {
	*Documents
	memory *Memory
	t      *testing.T
	scans  atomic.Int32
	slow   bool
}

func newMemoryOnly(t *testing.T, maxBytes int64) *memoryOnly {
	d := &memoryOnly{t: t, memory: NewMemory(maxBytes)}
	d.Documents = New(Options{
		Memory: d.memory, Logger: slog.New(slog.DiscardHandler), Metrics: obs.NewMetrics(),
		Protocol: Protocol{Name: "lines", Scan: func(_ registry.Package, src registry.Source) (registry.Document, error) {
			d.scans.Add(1)
			if d.slow {
				time.Sleep(time.Second)
			}
			return scanLines(src.Body), nil
		}},
	})
	return d
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
func (d *memoryOnly) read(name string, versions int, at time.Time) *Document {
	d.t.Helper()
	var body []byte
	for i := range versions {
		body = fmt.Appendf(body, "%d.0.0 %s", i, name)
		for at := range 60 {
			body = fmt.Appendf(body, " %d says the same", (i*7919+at*104729)%5000)
		}
		body = append(body, '\n')
	}
	e := &Document{
		Document: scanLines(bytes.Clone(body)), of: d.Documents, name: name, etag: `"` + name + `"`, fetched: at.Add(-time.Second), checked: at, contentType: "application/json", renderings: &renderings{},
	}
	d.keep(e)
	return e
}

// packed makes a document that is kept packed.
func (d *memoryOnly) packed(name string) *Document {
	d.t.Helper()
	d.read(name, 40, time.Now())
	e, cost, ok := d.memory.pack(d.held(name))
	if !ok || !d.memory.store.Swap(d.key(name), e, cost, func(*Document, bool) bool { return true }) {
		d.t.Fatal("not packed")
	}
	return e
}

func (d *memoryOnly) held(name string) *Document {
	e, _ := d.memory.store.Get(d.key(name))
	return e
}

// C61: a packed document is the same again, byte by byte, with the same validator and the same age.
func TestPackedDocumentIsTheSameAgain(t *testing.T) {
	d := newMemoryOnly(t, 64<<20)
	before := d.read("a", 100, time.Unix(1e9, 0))
	packed, cost, ok := d.memory.pack(before)
	if !ok || packed.Document != nil || cost > before.cost()/2 {
		t.Fatalf("packed: %v, %d bytes of %d", ok, cost, before.cost())
	}
	after, err := d.memory.unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(after.Document.Source(), before.Document.Source()) || after.etag != before.etag || after.fetched != before.fetched ||
		after.checked != before.checked || after.contentType != before.contentType || after.packed != nil || after.cost() > before.cost() || after.cost() < before.cost()*9/10 {
		t.Errorf("%+v, before %+v", after, before)
	}
	if _, _, ok := d.memory.pack(d.read("small", 3, time.Now())); ok {
		t.Error("a small document was packed")
	}
	packed.packed = packed.packed[:len(packed.packed)/2]
	if _, err := d.memory.unpack(packed); err == nil {
		t.Error("half of it was unpacked")
	}
}

// R46: any number of requests for a packed document unpack it once, and it stays unpacked. One that
// cannot be unpacked is forgotten.
func TestPackedDocumentIsUnpackedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemoryOnly(t, 64<<20)
		packed := d.packed("a")
		d.slow = true
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if e := d.recall(t.Context(), "a"); e == nil || e.Document == nil || e.etag != packed.etag || e.checked != packed.checked {
					t.Errorf("got %+v", e)
				}
			})
		}
		wg.Wait()
		if e := d.held("a"); e.Document == nil || d.scans.Load() != 1 {
			t.Errorf("kept %v, %d scans", e.Document != nil, d.scans.Load())
		}
		if n, bytes := d.memory.Size(); n != 1 || bytes != d.held("a").cost() {
			t.Errorf("%d documents of %d bytes", n, bytes)
		}
		damaged := d.packed("b").packed
		damaged[len(damaged)/2] ^= 1
		if e := d.recall(t.Context(), "b"); e != nil || d.held("b") != nil {
			t.Errorf("got %+v, kept %+v", e, d.held("b"))
		}
	})
}

// What happens while a document is unpacked is newer than it: another document, or the upstream's
// word that there is none.
func TestUnpackedDocumentReplacesNothingNewer(t *testing.T) {
	for name, meanwhile := range map[string]func(*memoryOnly){
		"fetched": func(d *memoryOnly) { d.read("a", 50, time.Now()) },
		"gone":    func(d *memoryOnly) { d.forget("a") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newMemoryOnly(t, 64<<20)
				d.packed("a")
				d.slow = true
				done := make(chan *Document)
				go func() { done <- d.recall(t.Context(), "a") }()
				time.Sleep(time.Millisecond)
				meanwhile(d)
				got := <-done
				switch kept := d.held("a"); {
				case name == "gone" && kept != nil:
					t.Error("what is gone is kept again")
				case name == "fetched" && (len(kept.Document.Versions()) != 50 || got != kept):
					t.Errorf("kept the one of %d versions, served that of %d", len(kept.Document.Versions()), len(got.Document.Versions()))
				}
			})
		})
	}
}

// The answer to an earlier question that took longer never replaces that to a later one.
func TestKeptDocumentIsTheNewest(t *testing.T) {
	d := newMemoryOnly(t, 64<<20)
	d.read("a", 20, time.Unix(2000, 0))
	d.read("a", 10, time.Unix(1000, 0))
	if n := len(d.held("a").Document.Versions()); n != 20 {
		t.Errorf("%d versions", n)
	}
}

// A dry run of other rules sees packed documents too, and leaves them packed.
func TestListingsOfPackedDocuments(t *testing.T) {
	d := newMemoryOnly(t, 64<<20)
	d.packed("a")
	d.read("b", 5, time.Now())
	seen := map[string]int{}
	for pkg, doc := range d.memory.Listings() {
		seen[pkg.Name] = len(doc.Versions())
	}
	if len(seen) != 2 || seen["a"] != 40 || seen["b"] != 5 || d.held("a").Document != nil {
		t.Errorf("seen %v", seen)
	}
}

// Issue 7: memory stays within the budget plus 20 %, whatever passes through. C43.
func TestMemoryStaysWithinTheBudget(t *testing.T) {
	const budget, documents = 4 << 20, 200
	d := newMemoryOnly(t, budget)
	base := registrytest.Heap()
	for i := range documents {
		name := fmt.Sprintf("package-%d", i)
		d.read(name, 60, time.Now())
		if n, bytes := d.memory.Size(); bytes > budget || n > i+1 {
			t.Fatalf("%d documents of %d bytes", n, bytes)
		}
		d.memory.Close() // the race detector would slow the packer more than the reader
	}
	used := registrytest.Heap() - base
	n, bytes := d.memory.Size()
	cold, coldBytes := d.memory.Cold()
	t.Logf("%d documents, %d of them cold, %d bytes of them cold; %d charged, %d used", n, cold, coldBytes, bytes, used)
	const codec = 4 << 20 // what the packer takes
	if used > budget*12/10+codec || used < bytes*8/10 {
		t.Errorf("%d bytes used, %d charged of %d", used, bytes, budget)
	}
	if cold == 0 || n < 80 {
		t.Errorf("%d documents, %d packed", n, cold)
	}
	runtime.KeepAlive(d)
}

// A caller that goes away while a document is unpacked harms nobody else.
func TestRecallAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemoryOnly(t, 64<<20)
		d.packed("a")
		d.slow = true
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan *Document)
		go func() { d.recall(ctx, "a"); done <- nil }()
		go func() { done <- d.recall(t.Context(), "a") }()
		time.Sleep(time.Millisecond)
		cancel(errors.New("gone"))
		if first, second := <-done, <-done; first != nil || second == nil {
			t.Error("the one who stayed got nothing")
		}
	})
}
