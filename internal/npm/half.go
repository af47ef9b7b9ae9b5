package npm

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// large is the size from which a document is read by two goroutines, which then saves a millisecond and more.
const large = 1 << 20

// maxSearch bounds in bytes the search for a place to begin the second half.
const maxSearch = 256 << 10

// halving says which documents are read in two halves and where the second one may begin; a negative place is none.
type halving struct {
	from  int
	place func(body []byte, from int) int
}

// half is the second half of "versions", read at the same time as the first, from a place that is only a guess. It counts if the first half's
// scanner comes to just that place; all in between is then validated, and nothing twice. Otherwise both are thrown away.
type half struct {
	at     int // the comma
	scan   scan
	stop   atomic.Bool
	done   chan struct{}
	failed bool
}

// versionsDepth is how deep the members of "versions" are.
const versionsDepth = 2

// halves reads a large document on two cores. It returns nil when the document is small, when there is no good place to begin the second half,
// and when there is anything wrong with it: then it must be read as a whole.
func (how halving) halves(pkg registry.Package, body []byte) *document {
	if len(body) < how.from || len(body) > listing.MaxBytes || runtime.GOMAXPROCS(0) < 2 {
		return nil
	}
	at := how.place(body, len(body)/2)
	if at < 0 {
		return nil
	}
	first, second := listing.Halves(body, at, versionsDepth)
	h := &half{at: at, done: make(chan struct{})}
	h.scan = newScan(pkg, body, second)
	h.scan.second = true
	go h.read()
	defer h.end()
	first.Look()
	s := newScan(pkg, body, first)
	s.half = h
	s.document()
	if s.End() != nil || !s.joined {
		return nil
	}
	s.finish()
	return s.doc
}

func (h *half) read() {
	defer close(h.done)
	defer func() {
		if recover() != nil { // a fault of ours: the first half meets it too, and its caller deals with it
			h.failed = true
		}
	}()
	h.scan.Look()
	h.scan.reserve(h.scan.expected() / 2)
	for !h.stop.Load() && h.scan.nextVersion() {
	}
	h.scan.facts()
}

// end waits until nobody reads the second half any more.
func (h *half) end() {
	h.stop.Store(true)
	<-h.done
}

// adopt adds what the second half has found, if it is the rest of what this scan stands before.
func (s *scan) adopt(h *half) {
	<-h.done
	o := &h.scan
	first := len(s.doc.versions)
	if h.failed || first+len(o.doc.versions) > maxVersions || !s.Join(o.Scanner) {
		s.Fail(s.Pos(), "not where the second half began")
		return
	}
	s.joined = true
	runs := uint32(len(s.doc.runs))
	for i := range o.doc.entries {
		e := &o.doc.entries[i]
		e.runs[0] += runs
		e.runs[1] += runs
	}
	s.doc.runs = slices.Concat(s.doc.runs, o.doc.runs)
	s.doc.entries = slices.Concat(s.doc.entries, o.doc.entries)
	s.doc.versions = slices.Concat(s.doc.versions, o.doc.versions) // with their facts
	s.bad += o.bad
	for i := first; i < len(s.doc.versions); i++ {
		s.index(i)
	}
}

// middle finds a comma that is likely to stand before a version: behind an object, and before a key that begins with a digit and has an object as
// its value. It looks from a position on; a negative result is none.
func middle(body []byte, from int) int {
	end := min(len(body), from+maxSearch)
	for from < end {
		i := bytes.Index(body[from:end], []byte("},"))
		if i < 0 {
			break
		}
		from += i + len("},")
		if likelyVersion(string(body[from:min(end, from+maxKey)])) {
			return from - 1
		}
	}
	return -1
}

// maxKey bounds in bytes how far is looked for the value of what may be a version.
const maxKey = 300

func likelyVersion(text string) bool {
	const space = " \t\r\n"
	key, ok := strings.CutPrefix(strings.TrimLeft(text, space), `"`)
	if !ok || key == "" || key[0] < '0' || key[0] > '9' {
		return false
	}
	_, value, ok := strings.Cut(key, `"`)
	if !ok {
		return false
	}
	value, ok = strings.CutPrefix(strings.TrimLeft(value, space), ":")
	return ok && strings.HasPrefix(strings.TrimLeft(value, space), "{")
}
