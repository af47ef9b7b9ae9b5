package npm

import (
	"bytes"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// large is the size from which a document is read by two goroutines, which then saves most of a millisecond and more.
const large = 1 << 20

// maxSearch bounds in bytes the search for a place to begin the second half.
const maxSearch = 256 << 10

// way is how documents are read.
type way struct {
	from  int                             // the size from which a document is read in two halves
	place func(body []byte, from int) int // where the second one may begin; a negative place is none
	anew  bool                            // members that are the same as before are read all the same
}

// usual is the way for all of them.
var usual = way{from: large, place: middle}

// half is the second half of a document, from somewhere in "versions" on, read at the same time as the first, from a place that is only a guess. It
// counts if the first half's scanner comes to just that place; all is then validated, and nothing twice. Otherwise both are thrown away.
type half struct {
	at     int // the comma
	scan   scan
	end    uint32 // of "versions"
	stop   atomic.Bool
	done   chan struct{}
	failed bool
}

// versionsDepth is how deep the members of "versions" are.
const versionsDepth = 2

// halves reads a large document on two cores. It returns nil when the document is small, when there is no good place to begin the second half,
// and when there is anything wrong with it: then it must be read as a whole.
func (how way) halves(pkg registry.Package, body []byte) *document {
	if len(body) < how.from || len(body) > listing.MaxBytes || runtime.GOMAXPROCS(0) < 2 {
		return nil
	}
	at := how.place(body, len(body)/2+len(body)/24)
	if at < 0 {
		return nil
	}
	first, second := listing.Halves(body, at, versionsDepth)
	h := &half{at: at, done: make(chan struct{})}
	h.scan = how.newScan(pkg, body, second)
	h.scan.stop = &h.stop
	h.scan.seen[topVersions] = true
	go h.read()
	defer h.leave()
	s := how.newScan(pkg, body, first)
	defer s.leave()
	s.half = h
	s.document()
	if s.End() != nil || !s.joined {
		return nil
	}
	s.finish(&s, &h.scan)
	return s.doc
}

func (h *half) read() {
	defer close(h.done)
	defer func() {
		if recover() != nil { // a fault of ours: the first half meets it too, and its caller deals with it
			h.failed = true
		}
	}()
	h.scan.reserve(len(h.scan.doc.text) / 2)
	for !h.scan.stopped() && h.scan.nextVersion() {
	}
	h.end = h.scan.Since(0).End
	h.scan.facts()
	h.scan.members()
}

// leave waits until nobody reads the second half any more.
func (h *half) leave() {
	h.stop.Store(true)
	<-h.done
	h.scan.leave()
}

// adopt adds what the second half has found, if it is the rest of what this scan stands before.
func (s *scan) adopt(h *half) {
	<-h.done
	o := &h.scan
	if h.failed || !s.fits(o) || !s.Join(o.Scanner) {
		s.Fail(s.Pos(), "not where the second half began")
		return
	}
	s.joined = true
	s.bad += o.bad
}

// fits reports whether the second half has nothing that this one has and that may be there once, and not too much of anything.
func (s *scan) fits(o *scan) bool {
	for kind, seen := range o.seen {
		if seen && s.seen[kind] && topKind(kind) != topVersions {
			return false
		}
	}
	return len(s.rows)+len(o.rows) <= maxVersions && len(s.doc.top)+1+len(o.doc.top) <= maxTop
}

// rest adds what the second half has found behind "versions".
func (s *scan) rest(o *scan) {
	s.named = s.named || o.named
	s.doc.top = append(s.doc.top, o.doc.top...)
	if o.seen[topTime] {
		s.times, o.times = o.times, s.times // each scratch goes on with one of its own
	}
	if o.seen[topTags] {
		s.doc.tags, s.doc.tagIndex = o.doc.tags, o.doc.tagIndex
	}
	if o.seen[topModified] {
		s.doc.changed = o.doc.changed
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
