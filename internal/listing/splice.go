package listing

import (
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// Splicer collects the pieces of one rendering. It is handed out by [Assemble].
type Splicer struct {
	pass pass
	at   int // where the next piece begins
	out  []byte
	cuts []int
	// A pass that copies writes what lies from from to to.
	from, to int
}

type pass uint8

const (
	passMeasure pass = iota // sizes and cuts
	passCopy
)

// shared is the size in bytes from which a rendering is copied by two goroutines.
const shared = 1 << 20

// Assemble runs build first to add up the sizes and then to copy, so that the rendering is one
// allocation of the right size. build must add the same pieces each time, and may be run by two
// goroutines at once.
func Assemble(build func(*Splicer)) []byte {
	out, _ := AssembleRuns(build)
	return out
}

// AssembleRuns is [Assemble] that also tells where build called Cut: offsets of the rendering,
// rising.
func AssembleRuns(build func(*Splicer)) (out []byte, cuts []int) {
	measured := Splicer{}
	build(&measured)
	out = room(measured.at)
	first := Splicer{pass: passCopy, out: out, to: len(out)}
	second := Splicer{pass: passCopy, out: out, from: len(out), to: len(out), at: len(out)}
	var done sync.WaitGroup
	if len(out) >= shared && runtime.GOMAXPROCS(0) > 1 {
		half := len(out)/2 + len(out)/16 // the second goroutine begins a moment later
		first.to, second.from, second.at = half, half, 0
		done.Go(func() { build(&second) })
	}
	build(&first)
	done.Wait()
	// a fault of ours, which would leave bytes unwritten
	if first.at != len(out) || second.at != len(out) {
		panic("listing: a rendering was built of other pieces than were measured")
	}
	return out, measured.cuts
}

// room is a slice whose bytes are yet to be written: unlike one that is made, it is not cleared
// first.
func room(n int) []byte {
	if n == 0 {
		return nil
	}
	var b strings.Builder
	b.Grow(n)
	// so that there is a string, which tells where it begins
	b.WriteByte(0)
	// the builder has room for as much, and nobody else has it
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

// Cut ends a segment of pieces that are likely to stay together in another rendering of the same
// document.
func (s *Splicer) Cut() {
	if n := s.at; s.pass == passMeasure && n > 0 && (len(s.cuts) == 0 || s.cuts[len(s.cuts)-1] != n) {
		s.cuts = append(s.cuts, n)
	}
}

// Add appends a piece.
func (s *Splicer) Add(piece string) {
	start := s.at
	s.at += len(piece)
	if s.pass == passCopy && s.at > s.from && start < s.to {
		s.copy(piece, start)
	}
}

// copy writes what of a piece belongs to this pass.
func (s *Splicer) copy(piece string, start int) {
	if start < s.from {
		piece, start = piece[s.from-start:], s.from
	}
	copy(s.out[start:s.to], piece)
}

// List adds items with commas between them.
type List struct {
	s     *Splicer
	later bool
}

// List starts a list.
func (s *Splicer) List() List { return List{s: s} }

// Item announces the next item; its pieces follow.
func (l *List) Item() {
	if l.later {
		l.s.Add(",")
	}
	l.later = true
}
