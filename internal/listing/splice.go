package listing

import (
	"strings"
	"unsafe"
)

// Splicer collects the pieces of one rendering. It is handed out by [Assemble].
type Splicer struct {
	size int
	out  strings.Builder // unlike a slice that is made, it is not cleared first
	cuts []int
	full bool // second pass: pieces are copied
}

// Assemble runs build twice, first to add up the sizes and then to copy, so that the rendering is one allocation of the right
// size. build must add the same pieces both times.
func Assemble(build func(*Splicer)) []byte {
	out, _ := AssembleRuns(build)
	return out
}

// AssembleRuns is [Assemble] that also tells where build called Cut: offsets of the rendering, rising.
func AssembleRuns(build func(*Splicer)) (out []byte, cuts []int) {
	s := &Splicer{}
	build(s)
	s.out.Grow(s.size)
	s.full = true
	build(s)
	text := s.out.String()
	return unsafe.Slice(unsafe.StringData(text), len(text)), s.cuts // nobody else has the text
}

// Cut ends a run of pieces that are likely to stay together in another rendering of the same document.
func (s *Splicer) Cut() {
	if n := s.out.Len(); s.full && n > 0 && (len(s.cuts) == 0 || s.cuts[len(s.cuts)-1] != n) {
		s.cuts = append(s.cuts, n)
	}
}

// Add appends a piece.
func (s *Splicer) Add(piece string) {
	if s.full {
		s.out.WriteString(piece)
		return
	}
	s.size += len(piece)
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
