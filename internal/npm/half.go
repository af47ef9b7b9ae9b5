package npm

import (
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
)

// large is the size from which a document is read by two goroutines, which then saves a millisecond and more.
const large = 1 << 20

// maxSearch bounds in bytes the search for a place to begin the second half.
const maxSearch = 256 << 10

// halving says which documents are read in two halves and where the second one may begin; a negative place is none.
type halving struct {
	from  int
	place func(text string, from int) int
}

// half is the second half of "versions", read ahead from a place that is only a guess. It counts if the first half's scanner comes to just that
// place; all in between is then validated, and nothing twice. Otherwise it is thrown away.
type half struct {
	at     int // the comma
	scan   scan
	stop   atomic.Bool
	done   chan struct{}
	failed bool
}

// half begins to read the second half of a large document of some n versions; nil if there is none.
func (s *scan) half(n int) *half {
	rest := len(s.doc.text) - s.Pos()
	if rest < s.from || runtime.GOMAXPROCS(0) < 2 {
		return nil
	}
	at := s.place(s.doc.text, s.Pos()+rest/2)
	if at < 0 {
		return nil
	}
	h := &half{at: at, done: make(chan struct{})}
	h.scan = scan{Scanner: s.Fork(at), name: s.name, prefix: s.prefix, doc: &document{name: s.name, text: s.doc.text}, second: true}
	h.scan.reserve(n / 2)
	go h.read()
	return h
}

func (h *half) read() {
	defer close(h.done)
	defer func() {
		if recover() != nil { // a fault of ours: the first half meets it too, and its caller deals with it
			h.failed = true
		}
	}()
	for !h.stop.Load() && h.scan.nextVersion() {
	}
	h.scan.facts()
}

// end waits until nobody reads the second half any more.
func (h *half) end() {
	if h != nil {
		h.stop.Store(true)
		<-h.done
	}
}

// adopt adds what the second half has found, if it is the rest of what this scan stands before.
func (s *scan) adopt(h *half) bool {
	<-h.done
	o := &h.scan
	first := len(s.doc.versions)
	if h.failed || first+len(o.doc.versions) > maxVersions || !s.Join(o.Scanner) {
		return false
	}
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
	return true
}

// middle finds a comma that is likely to stand before a version: behind an object, and before a key that begins with a digit and has an object as
// its value. It looks from a position on; a negative result is none.
func middle(text string, from int) int {
	end := min(len(text), from+maxSearch)
	for from < end {
		i := strings.Index(text[from:end], "},")
		if i < 0 {
			break
		}
		from += i + len("},")
		if likelyVersion(text[from:end]) {
			return from - 1
		}
	}
	return -1
}

func likelyVersion(text string) bool {
	const space = " \t\r\n"
	key, ok := strings.CutPrefix(strings.TrimLeft(text, space), `"`)
	if !ok || key == "" || key[0] < '0' || key[0] > '9' {
		return false
	}
	_, value, ok := strings.Cut(key[:min(len(key), 300)], `"`)
	if !ok {
		return false
	}
	value, ok = strings.CutPrefix(strings.TrimLeft(value, space), ":")
	return ok && strings.HasPrefix(strings.TrimLeft(value, space), "{")
}
