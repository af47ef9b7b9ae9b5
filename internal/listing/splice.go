package listing

// Splicer collects the pieces of one rendering. It is handed out by [Assemble].
type Splicer struct {
	size int
	out  []byte
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
	s.out, s.full = make([]byte, 0, s.size), true
	build(s)
	return s.out, s.cuts
}

// Cut ends a run of pieces that are likely to stay together in another rendering of the same document.
func (s *Splicer) Cut() {
	if n := len(s.out); s.full && n > 0 && (len(s.cuts) == 0 || s.cuts[len(s.cuts)-1] != n) {
		s.cuts = append(s.cuts, n)
	}
}

// Add appends a piece.
func (s *Splicer) Add(piece string) {
	if s.full {
		s.out = append(s.out, piece...)
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
