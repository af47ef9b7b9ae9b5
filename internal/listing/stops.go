package listing

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// stops are where the bytes are that count inside of a string: quotes, backslashes and control characters. They are looked for all at once, a window
// at a time, because a search that begins anew in each of a hundred thousand short strings takes longer than all else together.
type stops struct {
	base   int // where the window begins; a multiple of block
	filled bool
	broken int // a place, counted from one, that is no valid UTF-8; 0 is none
	// marks has a bit for each byte of the window, the first one's lowest, and for those of another block, so that the next bits of every byte in the
	// window can be read at once.
	marks [(window + block) / 8]byte
}

const (
	block  = 64       // bytes of a document that are looked at together
	window = 16 << 10 // bytes; they and their marks stay in the nearest cache
	ahead  = 57       // bytes whose marks are certainly among those that next gives
)

// next gives the marks of the byte at a place in the window and of those that follow, lowest first.
func (s *stops) next(at uint) uint64 {
	return binary.LittleEndian.Uint64(s.marks[at/8:at/8+8]) >> (at % 8)
}

// plain gives the position after the end of a string whose inside begins at i, if it has nothing but a quote at its end, and not far away. Otherwise 0.
func (s *stops) plain(doc string, i int) int {
	if at := uint(i - s.base); at < window {
		if next := s.next(at); next != 0 {
			if i += bits.TrailingZeros64(next); doc[i] == '"' {
				return i + 1
			}
		}
	}
	return 0
}

// seek finds the first stop from i on, or gives the length of the document.
func (s *stops) seek(doc string, i int) int {
	for i < len(doc) {
		at := uint(i - s.base)
		if at >= window || !s.filled {
			s.fill(doc, i)
			at = uint(i - s.base)
		}
		if word := s.next(at); word != 0 {
			return i + bits.TrailingZeros64(word)
		}
		i += ahead
	}
	return len(doc)
}

// fill moves the window so that it begins with the block that i is in.
func (s *stops) fill(doc string, i int) {
	s.base, s.filled = i/block*block, true
	part := doc[s.base:min(s.base+window+block, len(doc))]
	whole := len(part) / block
	beyond := mark(s.marks[:whole*8], part)
	if rest := s.marks[whole*8:]; len(rest) > 0 {
		end := []byte("                                                                ")
		copy(end, part[whole*block:])
		beyond = mark(rest[:8], text(end)) || beyond
		clear(rest[8:])
	}
	if beyond && s.broken == 0 {
		s.broken = invalidUTF8(doc, s.base, s.base+len(part)) + 1
	}
}

// invalidUTF8 finds the first byte from one place to another that does not belong to a valid sequence, or gives -1. It looks at whole sequences,
// also where they begin before or end behind.
func invalidUTF8(doc string, from, to int) int {
	for n := 1; n < utf8.UTFMax && from > 0 && !utf8.RuneStart(doc[from]); n++ {
		from--
	}
	for n := 1; n < utf8.UTFMax && to < len(doc) && !utf8.RuneStart(doc[to]); n++ {
		to++
	}
	if utf8.ValidString(doc[from:to]) {
		return -1
	}
	for i := from; ; {
		r, n := utf8.DecodeRuneInString(doc[i:to])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
}

// markWords is mark for every machine: eight bytes at a time.
func markWords(marks, doc []byte) (beyond bool) {
	const (
		ones  = 0x0101010101010101
		lows  = 0x7f * ones // all but the top bit of each byte
		highs = 0x80 * ones
	)
	// differs has the top bit of each byte set that is not zero. The addition does not carry from one byte into the next.
	differs := func(x uint64) uint64 { return x&lows + lows | x }
	high := uint64(0)
	for i := range marks {
		x := binary.LittleEndian.Uint64(doc[i*8:])
		high |= x
		printing := x&(0x60*ones) + 0x60*ones | x // one of its three upper bits is set
		stop := ^(differs(x^'"'*ones) & differs(x^'\\'*ones) & printing) & highs
		marks[i] = byte(stop >> 7 * 0x0102040810204080 >> 56) // gathers the eight bits
	}
	return high&highs != 0
}
