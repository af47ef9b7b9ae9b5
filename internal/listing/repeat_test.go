package listing

import (
	"strings"
	"testing"
)

// second enters the object under the key "b", of which each member may be the same as that under "a", whose span it returns.
func second(t *testing.T, text string) (s *Scanner, known Span) {
	t.Helper()
	s = NewScanner([]byte(text))
	s.Object()
	s.Member()
	s.Object()
	s.Member()
	start := s.Key().Start
	s.Skip()
	known = s.Since(start)
	for {
		if _, ok := s.Member(); !ok {
			break
		}
		s.Skip()
	}
	s.Member()
	if !s.Object() {
		t.Fatalf("%s: %v", text, s.End())
	}
	return s, known
}

// A member is passed only if it is the same text and its value ends where the other one did.
func TestRepeat(t *testing.T) {
	for _, c := range []struct {
		text string
		same bool
	}{
		{`{"a":{"k":"v"},"b":{"k":"v"}}`, true},
		{`{"a":{"k":"v"},"b":{"k":"v","l":1}}`, true},
		{`{"a":{"k":"v"},"b":{ "k":"v" , "l":1}}`, true},
		{`{"a":{"k" : {"x":[1]}},"b":{"k" : {"x":[1]}}}`, true},
		{`{"a":{"k":[]},"b":{"k":[]}}`, true},
		{`{"a":{"k":"\"\u00e9\\"},"b":{"k":"\"\u00e9\\","\u006c":"\\"}}`, true},
		{`{"a":{"k":1},"b":{"k":1}}`, true},
		{`{"a":{"k":1},"b":{"k":1,"l":2}}`, true},
		{`{"a":{"k":1},"b":{"k":1 }}`, true},
		{"{\"a\":{\"k\":1},\"b\":{\"k\":1\n}}", true},
		{`{"a":{"k":true},"b":{"k":true}}`, true},

		{`{"a":{"k":"v"},"b":{"k":"w"}}`, false},
		{`{"a":{"k":"v"},"b":{"k" :"v"}}`, false},
		{`{"a":{"k":"v"},"b":{"l":"v"}}`, false},
		{`{"a":{"k":"v"},"b":{}}`, false},
		{`{"a":{"k":1},"b":{"k":12}}`, false},
		{`{"a":{"k":1},"b":{"k":1.5}}`, false},
		{`{"a":{"k":1},"b":{"k":1e5}}`, false},
		{`{"a":{"k":"v"},"b":{"k":"v\u0020"}}`, false},
		{`{"a":{"k":""},"b":{"k":"","l":0}}`, true},
		{`{"a":{"k":""},"b":{"k":"\"\""}}`, false},
	} {
		s, known := second(t, c.text)
		before := *s
		span, ok := s.Repeat(known)
		if ok != c.same {
			t.Errorf("%s: %v", c.text, ok)
			continue
		}
		if !ok && *s != before {
			t.Errorf("%s: it has moved", c.text)
		}
		if ok && (span.Of(c.text) != known.Of(c.text) || span.Start <= known.Start || s.Since(span.Start) != span) {
			t.Errorf("%s: passed %q, is %q", c.text, known.Of(c.text), span.Of(c.text))
		}
		for {
			key, more := s.Member()
			if !more {
				break
			}
			if ok && key != "l" {
				t.Errorf("%s: key %q after the repeated member", c.text, key)
			}
			s.Skip()
		}
		if _, more := s.Member(); more || s.End() != nil {
			t.Errorf("%s: %v", c.text, s.End())
		}
	}
}

// What follows a repeated member is still looked at, and nothing is passed where no member is due, nor after an error.
func TestRepeatIsStrict(t *testing.T) {
	for _, text := range []string{
		`{"a":{"k":"v"},"b":{"k":"v"x}}`, `{"a":{"k":"v"},"b":{"k":"v" "l":1}}`, `{"a":{"k":"v"},"b":{"k":"v",}}`, `{"a":{"k":"v"},"b":{"k":"v"`,
		`{"a":{"k":"v"},"b":{"k":"v"]}`, `{"a":{"k":1},"b":{"k":1x}}`, `{"a":{"k":1},"b":{"k":1]}`, `{"a":{"k":"v"},"b":{,"k":"v"}}`, `{"a":{"k":"v"},"b":{"k":"v""k":"v"}}`,
	} {
		s, known := second(t, text)
		for {
			if _, ok := s.Repeat(known); ok {
				continue
			}
			if _, ok := s.Member(); !ok {
				break
			}
			s.Skip()
		}
		s.Member()
		if s.End() == nil {
			t.Errorf("%s passes", text)
		}
		if _, ok := s.Repeat(known); ok {
			t.Errorf("%s: a failed scanner repeats", text)
		}
	}
	s, _ := second(t, `{"a":{"k":"v"},"b":{"k":"v"}}`)
	if _, ok := s.Repeat(Span{}); ok {
		t.Error("no member is repeated")
	}
}

// A repeated member may take the scanner beyond what it has looked at.
func TestRepeatAcrossWindows(t *testing.T) {
	long := strings.Repeat(`\"x`, window)
	text := `{"a":{"k":"` + long + `"},"b":{"k":"` + long + `","\u006c":"\n"}}`
	s, known := second(t, text)
	if _, ok := s.Repeat(known); !ok {
		t.Fatal("not repeated")
	}
	key, ok := s.Member()
	value, _ := s.Text()
	if !ok || key != "l" || value != "\n" {
		t.Errorf("key %q, value %q", key, value)
	}
}
