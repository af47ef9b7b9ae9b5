package listing

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// value validates the value that starts at i and returns its end, or -1 with the error set. It is
// one loop with its own stack of one bit per level (set: object), so hostile nesting costs neither
// memory nor goroutine stack. It is the engine's hot path and therefore one function that keeps its
// state in registers: most bytes of a listing are members of opaque objects.
func (s *Scanner) value(i int) int {
	doc := s.doc
	var objects uint64
	depth, room := 0, MaxDepth-s.depth
	key := false // a key is due
	for {
		// A value or a key begins at i.
		if i >= len(doc) {
			return s.failAt(i, "value expected, found the end")
		}
		switch c := doc[i]; {
		case c == '"':
			start := i + 1
			if i = s.marks.plainEnd(doc, start); i == 0 {
				if i = s.stringSlow(start); i < 0 {
					return -1
				}
			}
			if key {
				i = space(doc, i)
				if i >= len(doc) || doc[i] != ':' {
					return s.failAt(i, "colon expected")
				}
				i = space(doc, i+1)
				key = false
				continue
			}
		case key:
			return s.failAt(i, "object key expected")
		case c == '{' || c == '[':
			if depth == room {
				s.Limit(i, "nested deeper than 64 levels")
				return -1
			}
			depth++
			objects <<= 1
			key = c == '{'
			if key {
				objects |= 1
			}
			i = space(doc, i+1)
			if i >= len(doc) || doc[i] != c+2 { // '}' is '{'+2 and ']' is '['+2
				continue
			}
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
				return s.failAt(i, "unfinished container")
			}
			c := doc[i]
			i++
			if c == ',' {
				break
			}
			if object := objects&1 != 0; object && c != '}' || !object && c != ']' {
				return s.failAt(i-1, "comma or end of container expected")
			}
			depth--
			objects >>= 1
		}
		i = space(doc, i)
		key = objects&1 != 0
	}
}

func (s *Scanner) failAt(i int, reason string) int {
	s.Fail(i, reason)
	return -1
}

// string validates the string whose opening quote is at i and returns the position after the
// closing one, or -1 with the error set.
func (s *Scanner) string(i int) int {
	s.escaped = false
	if end := s.marks.plainEnd(s.doc, i+1); end > 0 {
		return end
	}
	return s.stringSlow(i + 1)
}

// stringSlow is string for everything unusual, from somewhere inside of the string on.
func (s *Scanner) stringSlow(i int) int {
	doc := s.doc
	for start := i; ; {
		if i = s.marks.seek(doc, i); i >= len(doc) {
			return s.failAt(start-1, "unfinished string")
		}
		switch doc[i] {
		case '"':
			return i + 1
		case '\\':
			s.escaped = true
			n := escapeLen(doc, i)
			if n == 0 {
				return s.failAt(i, "invalid escape")
			}
			i += n
		default:
			return s.failAt(i, "control character in a string")
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

// unescape decodes the inside of a validated string. It reports false when half a surrogate pair
// stands alone.
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
	word := ""
	switch s.doc[i] {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	default:
		return s.number(i)
	}
	if !strings.HasPrefix(s.doc[i:], word) {
		return s.failAt(i, "invalid literal")
	}
	return i + len(word)
}

// number validates a number at i and returns its end, or -1 with the error set.
func (s *Scanner) number(start int) int {
	doc, i := s.doc, start
	if doc[i] == '-' {
		i++
	}
	whole := digits(doc, i)
	if whole == i || doc[i] == '0' && whole > i+1 {
		return s.failAt(start, "invalid value")
	}
	i = whole
	if i < len(doc) && doc[i] == '.' {
		end := digits(doc, i+1)
		if end == i+1 {
			return s.failAt(start, "invalid number")
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
			return s.failAt(start, "invalid number")
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
