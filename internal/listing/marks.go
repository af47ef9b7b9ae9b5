package listing

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// markWindow is a bitmap of the bytes that end or interrupt a string: quotes, backslashes and
// control characters. It covers one window of the document at a time. Filling it in bulk is cheaper
// than a byte search of its own in each of a hundred thousand short strings.
type markWindow struct {
	base    int // offset of the window in the document; a multiple of block
	filled  bool
	invalid int // offset plus one of the first byte that is not valid UTF-8; 0 is none
	// bits has one bit for each byte of the window, lowest first, and one more block of them, so
	// that a word of bits can be read at every offset in the window.
	bits [(window + block) / 8]byte
}

const (
	block    = 64       // bytes that are marked together
	window   = 16 << 10 // bytes; the window and its bitmap stay in the first-level cache
	wordSpan = 57       // bytes that one call of word covers at every offset
)

// word returns the marks from an offset in the window on, lowest bit first.
func (w *markWindow) word(at uint) uint64 {
	return binary.LittleEndian.Uint64(w.bits[at/8:at/8+8]) >> (at % 8)
}

// plainEnd returns the position after the closing quote of a string whose first byte is at i. It
// returns 0 if the quote is not the first mark, or is further away than one word covers.
func (w *markWindow) plainEnd(doc string, i int) int {
	if at := uint(i - w.base); at < window {
		if word := w.word(at); word != 0 {
			if i += bits.TrailingZeros64(word); doc[i] == '"' {
				return i + 1
			}
		}
	}
	return 0
}

// seek returns the position of the first mark from i on, or the length of the document.
func (w *markWindow) seek(doc string, i int) int {
	for i < len(doc) {
		at := uint(i - w.base)
		if at >= window || !w.filled {
			w.fill(doc, i)
			at = uint(i - w.base)
		}
		if word := w.word(at); word != 0 {
			return i + bits.TrailingZeros64(word)
		}
		i += wordSpan
	}
	return len(doc)
}

// fill moves the window to the block that holds i.
func (w *markWindow) fill(doc string, i int) {
	w.base, w.filled = i/block*block, true
	part := doc[w.base:min(w.base+window+block, len(doc))]
	whole := len(part) / block
	nonASCII := mark(w.bits[:whole*8], part)
	if rest := w.bits[whole*8:]; len(rest) > 0 {
		end := []byte("                                                                ")
		copy(end, part[whole*block:])
		nonASCII = mark(rest[:8], text(end)) || nonASCII
		clear(rest[8:])
	}
	if nonASCII && w.invalid == 0 {
		w.invalid = invalidUTF8(doc, w.base, w.base+len(part)) + 1
	}
}

// invalidUTF8 returns the offset of the first byte in doc[from:to] that is not part of a valid
// UTF-8 sequence, or -1. Sequences that cross either bound are looked at as a whole.
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

// markWords is the portable form of mark: eight bytes at a time.
func markWords(marks, doc []byte) (nonASCII bool) {
	const (
		ones  = 0x0101010101010101
		lows  = 0x7f * ones // all but the top bit of each byte
		highs = 0x80 * ones
	)
	// differs has the top bit of each byte set that is not zero. The addition does not carry from
	// one byte into the next.
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
