package listing

import (
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// value validates the value that starts at i and returns its end, or -1 with the error set. It is one loop with its own stack of one
// bit per level (set: object), so hostile nesting costs neither memory nor goroutine stack. It is the engine's hot path and therefore
// one function that keeps its state in registers: most bytes of a listing are members of opaque objects.
func (s *Scanner) value(i int) int {
	doc, q, slash := s.doc, s.quotes, s.slash
	var objects uint64
	depth, room := 0, MaxDepth-s.depth
	for {
		// A value begins at i.
		if i >= len(doc) {
			return s.stop(i, "value expected, found the end")
		}
		switch c := doc[i]; c {
		case '"':
			if q.mask == 0 {
				q = q.refill(doc)
			}
			if q.mask &= q.mask - 1; q.mask == 0 {
				q = q.refill(doc)
			}
			start := i
			i = q.base + bits.TrailingZeros64(q.mask) + 1
			q.mask &= q.mask - 1
			if i > slash || q.control != 0 {
				s.quotes = q
				if i = s.stringSlow(start); i < 0 {
					return -1
				}
				q, slash = s.quotes, s.slash
			}
		case '{', '[':
			if depth == room {
				s.Limit(i, "nested deeper than 64 levels")
				return -1
			}
			depth++
			objects <<= 1
			i = space(doc, i+1)
			if c == '[' {
				if i < len(doc) && doc[i] == ']' {
					break
				}
				continue
			}
			objects |= 1
			if i < len(doc) && doc[i] == '}' {
				break
			}
			goto key
		default:
			if i = s.scalar(i); i < 0 {
				return -1
			}
		}
		// A value has ended before i, or an empty container is about to.
		for {
			if depth == 0 {
				s.quotes = q
				return i
			}
			i = space(doc, i)
			if i >= len(doc) {
				return s.stop(i, "unfinished container")
			}
			c := doc[i]
			i++
			if c == ',' {
				break
			}
			if object := objects&1 != 0; object && c != '}' || !object && c != ']' {
				return s.stop(i-1, "comma or end of container expected")
			}
			depth--
			objects >>= 1
		}
		i = space(doc, i)
		if objects&1 == 0 {
			continue
		}
	key:
		if i >= len(doc) || doc[i] != '"' {
			return s.stop(i, "object key expected")
		}
		if q.mask == 0 {
			q = q.refill(doc)
		}
		if q.mask &= q.mask - 1; q.mask == 0 {
			q = q.refill(doc)
		}
		start := i
		i = q.base + bits.TrailingZeros64(q.mask) + 1
		q.mask &= q.mask - 1
		if i > slash || q.control != 0 {
			s.quotes = q
			if i = s.stringSlow(start); i < 0 {
				return -1
			}
			q, slash = s.quotes, s.slash
		}
		i = space(doc, i)
		if i >= len(doc) || doc[i] != ':' {
			return s.stop(i, "colon expected")
		}
		i = space(doc, i+1)
	}
}

func (s *Scanner) stop(i int, reason string) int {
	s.Fail(i, reason)
	return -1
}

// quotes are the positions of the quotes of one block of 64 bytes, from where the scanner is: bit n stands for byte base+n. An opening
// quote and the closing one are taken out when their string is passed.
type quotes struct {
	base int
	mask uint64
	// control and beyond are not 0 once a control character and a byte beyond ASCII were seen in this block or an earlier one.
	control, beyond uint64
}

// refill finds the quotes of the next block that has any. At the end of the document the base is its length and the mask is empty,
// which makes every position computed from them lie outside.
func (q quotes) refill(doc string) quotes {
	for q.base += 64; q.base+64 <= len(doc); q.base += 64 {
		block := doc[q.base : q.base+64]
		a, b, c, d := load(block, 0), load(block, 8), load(block, 16), load(block, 24)
		e, f, g, h := load(block, 32), load(block, 40), load(block, 48), load(block, 56)
		q.mask = quoteBits(a) | quoteBits(b)<<8 | quoteBits(c)<<16 | quoteBits(d)<<24 |
			quoteBits(e)<<32 | quoteBits(f)<<40 | quoteBits(g)<<48 | quoteBits(h)<<56
		q.beyond |= (a | b | c | d | e | f | g | h) & highs
		q.control |= ((a-ones*' ')&^a | (b-ones*' ')&^b | (c-ones*' ')&^c | (d-ones*' ')&^d |
			(e-ones*' ')&^e | (f-ones*' ')&^f | (g-ones*' ')&^g | (h-ones*' ')&^h) & highs
		if q.mask != 0 {
			return q
		}
	}
	q.mask = 0
	for i := q.base; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == '"':
			q.mask |= 1 << (i - q.base)
		case c < ' ':
			q.control = 1
		case c >= utf8.RuneSelf:
			q.beyond = 1
		}
	}
	if q.mask == 0 {
		q.base = len(doc)
	}
	return q
}

// quoteBits has bit n set if byte n of x is a quote.
func quoteBits(x uint64) uint64 {
	x ^= ones * '"'
	x = (highs - x&^highs) &^ x & highs      // the top bit of each byte that is zero
	return x >> 7 * 0x0102040810204080 >> 56 // gathered into one byte
}

// at moves to the block of position i, with the quotes before i taken out.
func (q quotes) at(doc string, i int) quotes {
	if i < q.base || i >= q.base+64 || q.mask == 0 {
		q.base = i&^63 - 64
		q = q.refill(doc)
	}
	if q.base <= i && i < q.base+64 {
		q.mask = q.mask >> (i - q.base) << (i - q.base)
	}
	return q
}

// string validates the string whose opening quote is at i and returns the position after the closing one, or -1 with the error set.
func (s *Scanner) string(i int) int {
	q := s.quotes
	if q.mask == 0 {
		q = q.refill(s.doc)
	}
	if q.mask &= q.mask - 1; q.mask == 0 {
		q = q.refill(s.doc)
	}
	end := q.base + bits.TrailingZeros64(q.mask) + 1
	q.mask &= q.mask - 1
	s.quotes = q
	if end > s.slash || q.control != 0 {
		return s.stringSlow(i)
	}
	return end
}

// stringSlow is string for everything unusual: a backslash in it, or control characters in the document up to here. It stays linear in hostile input because neither a quote nor a backslash that was
// found is searched for again.
func (s *Scanner) stringSlow(start int) int {
	doc := s.doc
	quote := start
	for i := start + 1; ; {
		if quote < i {
			n := strings.IndexByte(doc[i:], '"')
			if n < 0 {
				return s.stop(start, "unfinished string")
			}
			quote = i + n
		}
		if s.slash < i {
			s.seekSlash(i)
		}
		if quote < s.slash {
			break
		}
		n := escapeLen(doc, s.slash)
		if n == 0 {
			return s.stop(s.slash, "invalid escape")
		}
		i = s.slash + n
	}
	if s.quotes.control != 0 {
		if i := control(doc[start+1 : quote]); i >= 0 {
			return s.stop(start+1+i, "control character in a string")
		}
	}
	s.quotes = s.quotes.at(doc, quote+1)
	return quote + 1
}

// seekSlash finds the first backslash from i on.
func (s *Scanner) seekSlash(i int) {
	if n := strings.IndexByte(s.doc[i:], '\\'); n >= 0 {
		s.slash = i + n
		return
	}
	s.slash = len(s.doc)
}

// control finds the first control character.
func control(d string) int {
	i := 0
	for ; i+8 <= len(d); i += 8 {
		if x := load(d, i); (x-ones*' ')&^x&highs != 0 {
			break
		}
	}
	for ; i < len(d); i++ {
		if d[i] < ' ' {
			return i
		}
	}
	return -1
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// load reads eight bytes, the first one lowest. The compiler makes one load of it.
func load(d string, i int) uint64 {
	d = d[i : i+8]
	return uint64(d[0]) | uint64(d[1])<<8 | uint64(d[2])<<16 | uint64(d[3])<<24 |
		uint64(d[4])<<32 | uint64(d[5])<<40 | uint64(d[6])<<48 | uint64(d[7])<<56
}

// escapeLen is the length of the escape at i, 0 if it is none.
func escapeLen(doc string, i int) int {
	if i+1 >= len(doc) {
		return 0
	}
	switch doc[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(doc, i+2); ok {
			return 6
		}
	}
	return 0
}

func hex4(doc string, i int) (rune, bool) {
	if i+4 > len(doc) {
		return 0, false
	}
	var r rune
	for _, c := range []byte(doc[i : i+4]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape decodes the inside of a validated string. It reports false when half a surrogate pair stands alone.
func unescape(in string) (string, bool) {
	out := make([]byte, 0, len(in))
	for {
		i := strings.IndexByte(in, '\\')
		if i < 0 {
			return string(append(out, in...)), true
		}
		out = append(out, in[:i]...)
		if in[i+1] != 'u' {
			out = append(out, "\"\\/\b\f\n\r\t"[strings.IndexByte(`"\/bfnrt`, in[i+1])])
			in = in[i+2:]
			continue
		}
		r, _ := hex4(in, i+2)
		in = in[i+6:]
		if utf16.IsSurrogate(r) {
			var low rune
			if strings.HasPrefix(in, `\u`) {
				low, _ = hex4(in, 2)
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return "", false
			}
			in = in[6:]
		}
		out = utf8.AppendRune(out, r)
	}
}

// scalar validates a literal or a number at i and returns its end, or -1 with the error set.
func (s *Scanner) scalar(i int) int {
	doc := s.doc
	start := i
	word := ""
	switch doc[i] {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	}
	if word != "" {
		if !strings.HasPrefix(doc[i:], word) {
			return s.stop(i, "invalid literal")
		}
		return i + len(word)
	}
	if doc[i] == '-' {
		i++
	}
	whole := digits(doc, i)
	if whole == i || doc[i] == '0' && whole > i+1 {
		return s.stop(start, "invalid value")
	}
	i = whole
	if i < len(doc) && doc[i] == '.' {
		end := digits(doc, i+1)
		if end == i+1 {
			return s.stop(start, "invalid number")
		}
		i = end
	}
	if i < len(doc) && doc[i]|0x20 == 'e' {
		i++
		if i < len(doc) && (doc[i] == '+' || doc[i] == '-') {
			i++
		}
		end := digits(doc, i)
		if end == i {
			return s.stop(start, "invalid number")
		}
		i = end
	}
	return i
}

func digits(doc string, i int) int {
	for i < len(doc) && '0' <= doc[i] && doc[i] <= '9' {
		i++
	}
	return i
}
