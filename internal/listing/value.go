package listing

import (
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// value validates the value that starts at i and returns its end, or -1 with the error set. It is a loop with its own stack of
// one bit per level (set: object), so hostile nesting costs neither memory nor goroutine stack.
func (s *Scanner) value(i int) int {
	doc := s.doc
	var objects uint64
	depth, room := 0, MaxDepth-s.depth
	for {
		// A value begins at i.
		if i >= len(doc) {
			return s.stop(i, "value expected, found the end")
		}
		switch c := doc[i]; c {
		case '"':
			if i, _ = s.string(i); i < 0 {
				return -1
			}
		case '{', '[':
			if depth == room {
				s.Limit(i, "nested deeper than 64 levels")
				return -1
			}
			depth++
			objects <<= 1
			i = space(doc, i+1)
			if c == '{' {
				objects |= 1
			}
			if i < len(doc) && doc[i] == c+2 { // '}' is '{'+2, ']' is '['+2
				break
			}
			if c == '{' {
				if i = s.colon(i); i < 0 {
					return -1
				}
			}
			continue
		default:
			if i = s.scalar(i); i < 0 {
				return -1
			}
		}
		// A value has ended before i, or an empty container is about to.
		for {
			if depth == 0 {
				return i
			}
			i = space(doc, i)
			if i >= len(doc) {
				return s.stop(i, "unfinished container")
			}
			c := doc[i]
			if c == ',' {
				break
			}
			if object := objects&1 != 0; object && c != '}' || !object && c != ']' {
				return s.stop(i, "comma or end of container expected")
			}
			depth--
			objects >>= 1
			i++
		}
		i = space(doc, i+1)
		if objects&1 != 0 {
			if i = s.colon(i); i < 0 {
				return -1
			}
		}
	}
}

// colon validates a key at i and its colon and returns the position of the value.
func (s *Scanner) colon(i int) int {
	if i >= len(s.doc) || s.doc[i] != '"' {
		return s.stop(i, "object key expected")
	}
	if i, _ = s.string(i); i < 0 {
		return -1
	}
	i = space(s.doc, i)
	if i >= len(s.doc) || s.doc[i] != ':' {
		return s.stop(i, "colon expected")
	}
	return space(s.doc, i+1)
}

func (s *Scanner) stop(i int, reason string) int {
	s.Fail(i, reason)
	return -1
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks, in the top bit of its byte, the first byte of eight that ends a plain run of a string: a quote, a backslash or a
// control character. Bits above the lowest one set may be false marks (borrows), the lowest never is.
func special(x uint64) uint64 {
	quote := x ^ (ones * '"')
	slash := x ^ (ones * '\\')
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*' ')&^x) & highs
}

// load reads eight bytes, the first one lowest. The compiler makes one load of it.
func load(d string, i int) uint64 {
	d = d[i : i+8]
	return uint64(d[0]) | uint64(d[1])<<8 | uint64(d[2])<<16 | uint64(d[3])<<24 |
		uint64(d[4])<<32 | uint64(d[5])<<40 | uint64(d[6])<<48 | uint64(d[7])<<56
}

// string validates the string whose opening quote is at i and returns the position after the closing one, or -1 with the error
// set, and whether there are escapes in it. UTF-8 was checked for the whole document.
func (s *Scanner) string(i int) (end int, escaped bool) {
	doc := s.doc
	i++
	for {
		for i+8 <= len(doc) {
			if m := special(load(doc, i)); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(doc) {
			return s.stop(i, "unfinished string"), escaped
		}
		switch c := doc[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			n := escapeLen(doc, i)
			if n == 0 {
				return s.stop(i, "invalid escape"), true
			}
			i += n
		case c < ' ':
			return s.stop(i, "control character in a string"), escaped
		default:
			i++ // one of the last seven bytes of the document
		}
	}
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
	for _, word := range [...]string{"true", "false", "null"} {
		if doc[i] == word[0] {
			if !strings.HasPrefix(doc[i:], word) {
				return s.stop(i, "invalid literal")
			}
			return i + len(word)
		}
	}
	start := i
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
