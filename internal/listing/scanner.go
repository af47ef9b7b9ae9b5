package listing

// Scanner walks a JSON document (RFC 8259) once, front to back, and never backs up. The driver
// enters the objects and arrays it cares about and skips the other values; both ways validate every
// byte: grammar, UTF-8, depth, and nothing after the document.
//
// Errors stick: after the first one every method does nothing and reports false, so that loops end
// by themselves and [Scanner.End] tells. A Scanner is for one goroutine.
type Scanner struct {
	doc     string
	pos     int  // of the next value, key or separator
	depth   int  // of the containers that were entered
	fresh   bool // a container was just entered: no comma is due
	escaped bool // the string that was read last has escapes
	key     Span // of the key that was read last
	end     int  // of the value that was consumed, or the container that was left, last
	err     *Error
	marks   markWindow
}

// NewScanner starts on a document. It keeps doc, and strings it returns point into it: the caller
// must not change it any more.
func NewScanner(doc []byte) *Scanner {
	s := &Scanner{doc: text(doc)}
	if len(doc) > MaxBytes {
		s.Limit(0, "document larger than 1 GiB")
		return s
	}
	s.pos = space(s.doc, 0)
	return s
}

// Doc is the document as a string; spans refer to it.
func (s *Scanner) Doc() string { return s.doc }

// Pos is the position of the next value, past any white space.
func (s *Scanner) Pos() int { return s.pos }

// Since is the span from start to the end of the value that was consumed, or the container that was
// left, last.
func (s *Scanner) Since(start uint32) Span { return Span{start, uint32(s.end)} }

// Fail refuses the document at an offset. The first refusal is kept.
func (s *Scanner) Fail(offset int, reason string) { s.refuse(Error{Offset: offset, Reason: reason}) }

// Limit refuses the document because it breaks a bound.
func (s *Scanner) Limit(offset int, reason string) {
	s.refuse(Error{Offset: offset, Reason: reason, Limit: true})
}

// refuse keeps the error and moves to the end, so that there is nothing left for any method.
func (s *Scanner) refuse(e Error) {
	if s.err == nil {
		s.err = &e
	}
	s.pos = len(s.doc)
}

// End checks that nothing but white space follows and returns the first error, a *[Error].
func (s *Scanner) End() error {
	if s.err == nil && s.pos < len(s.doc) {
		s.Fail(s.pos, "data after the document")
	}
	if at := s.marks.invalid; at > 0 { // found in passing
		s.Fail(at-1, "invalid UTF-8")
	}
	if s.err != nil {
		return s.err
	}
	return nil
}

// Peek returns the first byte of the next value ('{', '[', '"', 't', 'f', 'n', a digit or '-'), or
// 0 at the end or after an error.
func (s *Scanner) Peek() byte {
	if s.pos >= len(s.doc) {
		return 0
	}
	return s.doc[s.pos]
}

// Object enters the next value if it is an object. Otherwise it reports false and leaves the value
// to be skipped.
func (s *Scanner) Object() bool { return s.enter('{') }

// Array enters the next value if it is an array. Otherwise it reports false and leaves the value to
// be skipped.
func (s *Scanner) Array() bool { return s.enter('[') }

func (s *Scanner) enter(open byte) bool {
	if s.Peek() != open {
		return false
	}
	if s.depth == MaxDepth {
		s.Limit(s.pos, "nested deeper than 64 levels")
		return false
	}
	s.depth++
	s.pos = space(s.doc, s.pos+1)
	s.fresh = true
	return true
}

// Member moves to the next member of the object and returns its key, decoded; the value comes next
// and must be consumed. It reports false at the end of the object, which it leaves, and after an
// error. A key with half a surrogate pair is refused, because decoders disagree about what it
// means.
func (s *Scanner) Member() (key string, ok bool) {
	if !s.next('}') {
		return "", false
	}
	doc, start := s.doc, s.pos
	if start >= len(doc) || doc[start] != '"' {
		s.Fail(start, "object key expected")
		return "", false
	}
	end := s.string(start)
	if end < 0 {
		return "", false
	}
	s.key = Span{uint32(start), uint32(end)}
	key = doc[start+1 : end-1]
	if s.escaped {
		if key, ok = unescape(key); !ok {
			s.Fail(start, "object key with half a surrogate pair")
			return "", false
		}
	}
	i := space(doc, end)
	if i >= len(doc) || doc[i] != ':' {
		s.Fail(i, "colon expected")
		return "", false
	}
	s.pos = space(doc, i+1)
	return key, true
}

// Key is the span of the key that Member returned last, quotes included.
func (s *Scanner) Key() Span { return s.key }

// Element moves to the next element of the array, which must be consumed. It reports false at the
// end of the array, which it leaves, and after an error.
func (s *Scanner) Element() bool { return s.next(']') }

// next handles the separator before a member or element, or the end of the container.
func (s *Scanner) next(end byte) bool {
	doc, i := s.doc, s.pos
	switch {
	case i >= len(doc):
		s.Fail(i, "unfinished container")
		return false
	case doc[i] == end:
		s.depth--
		s.fresh = false
		s.end = i + 1
		s.pos = space(doc, i+1)
		return false
	case s.fresh:
		s.fresh = false
	case doc[i] == ',':
		s.pos = space(doc, i+1)
	default:
		s.Fail(i, "comma or end of container expected")
		return false
	}
	return true
}

// Skip validates the next value and returns its span.
func (s *Scanner) Skip() Span {
	start, end := s.pos, 0
	if s.Peek() == '"' {
		end = s.string(start)
	} else {
		end = s.value(start)
	}
	if end < 0 {
		return Span{}
	}
	s.end = end
	s.pos = space(s.doc, end)
	return Span{uint32(start), uint32(end)}
}

// Text consumes the next value and returns it decoded if it is a string. Any other value, and a
// string with half a surrogate pair, gives false.
func (s *Scanner) Text() (value string, ok bool) {
	if s.Peek() != '"' {
		s.Skip()
		return "", false
	}
	start := s.pos
	end := s.string(start)
	if end < 0 {
		return "", false
	}
	s.end = end
	s.pos = space(s.doc, end)
	value = s.doc[start+1 : end-1]
	if s.escaped {
		return unescape(value)
	}
	return value, true
}

// space returns the position of the first byte from i on that is not white space.
func space(doc string, i int) int {
	if i < len(doc) && doc[i] <= ' ' {
		return spaces(doc, i)
	}
	return i
}

func spaces(doc string, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\t' || doc[i] == '\n' || doc[i] == '\r') {
		i++
	}
	return i
}
