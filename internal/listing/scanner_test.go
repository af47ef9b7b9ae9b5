package listing

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// documents are small texts with the verdict that RFC 8259 gives on them.
var documents = []struct {
	text string
	good bool
}{
	{`{}`, true},
	{`[]`, true},
	{` {"a" : [ 1 , 2.5e-3, -0, true,false , null ] , "b":{} } `, true},
	{"\t\r\n\"x\"\n", true},
	{`"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00"`, true},
	// legal by the grammar; registries cut texts in the middle of a pair
	{`{"lone":"\ud83d"}`, true},
	{`{"a":1,"a":2}`, true}, // legal by the grammar; the driver judges
	{`0`, true},
	{`1e400`, true},
	{strings.Repeat("[", 64) + strings.Repeat("]", 64), true},
	{`{"0123456789012345678901234567890123456789012345678901234567890123456789":"` + strings.Repeat("x", 200) + `"}`, true},
	{"{\n  \"a\": \"b\",\n  \"c\": [\n    \"d\"\n  ]\n}\n", true},

	{``, false},
	{` `, false},
	{`{`, false},
	{`{"a"`, false},
	{`{"a":`, false},
	{`{"a":1`, false},
	{`{"a":1,`, false},
	{`{"a":1,}`, false},
	{`{,}`, false},
	{`{"a" 1}`, false},
	{`{a:1}`, false},
	{`{1:1}`, false},
	{`{"a":1 "b":2}`, false},
	{`[1,]`, false},
	{`[1 2]`, false},
	{`[`, false},
	{`[}`, false},
	{`{]`, false},
	{`{"a":[1}`, false},
	{`[{"a":1]`, false},
	{`"abc`, false},
	{`"abc\`, false},
	{`"abc\"`, false},
	{`"\x"`, false},
	{`"\u12"`, false},
	{`"\u12G4"`, false},
	{"\"a\nb\"", false},
	{"\"a\x00b\"", false},
	{"{\"0123456789abcdef\x1f\":1}", false},
	{"\"\xff\"", false},
	{"\"\xed\xa0\x80\"", false}, // a surrogate in UTF-8
	{"\ufeff{}", false},         // a byte order mark
	{`01`, false},
	{`-`, false},
	{`+1`, false},
	{`.5`, false},
	{`1.`, false},
	{`1e`, false},
	{`1e+`, false},
	{`NaN`, false},
	{`tru`, false},
	{`nulL`, false},
	{`{} {}`, false},
	{`{}x`, false},
	{`// comment`, false},
	{`<!DOCTYPE html><html><body>Bad gateway</body></html>`, false},
	{strings.Repeat("[", 65) + strings.Repeat("]", 65), false},
	{strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), false},
	{strings.Repeat("[", 1_000_000), false},
}

func skip(text string) error {
	s := NewScanner([]byte(text))
	s.Skip()
	return s.End()
}

// Skipping a value and walking through all of it agree with the RFC and with each other.
func TestVerdicts(t *testing.T) {
	for _, d := range documents {
		skipped, walked := skip(d.text), walk(d.text)
		if (skipped == nil) != d.good || (walked == nil) != d.good {
			t.Errorf("%.60q: skip says %v, walk says %v, want good = %v", d.text, skipped, walked, d.good)
		}
	}
}

// Every prefix of a good document is refused: a cut transfer never looks whole. // C29 (for
// listings)
func TestTruncated(t *testing.T) {
	text := `{"name":"x","n":[1,2,{"deep":"v\u00e9\"\\"}],"long":"` + strings.Repeat("abcdefg ", 20) + `","t":true}`
	for n := range len(text) {
		if skip(text[:n]) == nil || walk(text[:n]) == nil {
			t.Fatalf("the first %d bytes pass", n)
		}
	}
	if err := skip(text); err != nil {
		t.Fatal(err)
	}
}

// A byte that may not be in a string is found at every position: the scanner reads whole blocks,
// and each byte of them counts.
func TestEveryByteCounts(t *testing.T) {
	plain := `["` + strings.Repeat("a", 150) + `","b"]`
	if err := skip(plain); err != nil {
		t.Fatal(err)
	}
	for i := 2; i < 152; i++ {
		for _, bad := range []string{"\n", "\x00", "\x1f", "\xff", "\x80", "\xc3", `"`, `\`} {
			text := plain[:i] + bad + plain[i+1:]
			if skip(text) == nil || walk(text) == nil {
				t.Fatalf("%q at %d passes", bad, i)
			}
		}
		for _, good := range []string{" ", "\x7f", "é", "#", "!", "😀", `\n`} {
			text := plain[:i] + good + plain[i+1:]
			if err := skip(text); err != nil {
				t.Fatalf("%q at %d: %v", good, i, err)
			}
			text = "\n" + text // with a control character in the document, outside of strings
			if err := skip(text); err != nil {
				t.Fatalf("%q at %d, indented: %v", good, i, err)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	var e *Error
	if err := skip(strings.Repeat("[", 65)); !errors.As(err, &e) || !e.Limit || e.Offset != 64 {
		t.Errorf("depth: %v", err)
	}
	if err := walk(strings.Repeat("[", 65)); !errors.As(err, &e) || !e.Limit {
		t.Errorf("depth, walked: %v", err)
	}
	if err := skip(text(make([]byte, MaxBytes+1))); !errors.As(err, &e) || !e.Limit {
		t.Errorf("size: %v", err)
	}
	if err := skip(`[1,x]`); !errors.As(err, &e) || e.Limit || e.Offset != 3 {
		t.Errorf("grammar: %v", err)
	}
}

// walk enters every container and consumes every string.
func walk(text string) error {
	s := NewScanner([]byte(text))
	walkValue(s)
	return s.End()
}

func walkValue(s *Scanner) any {
	switch s.Peek() {
	case '{':
		object := map[string]any{}
		if s.Object() {
			for {
				key, ok := s.Member()
				if !ok {
					break
				}
				object[key] = walkValue(s)
			}
		}
		return object
	case '[':
		array := []any{}
		if s.Array() {
			for s.Element() {
				array = append(array, walkValue(s))
			}
		}
		return array
	case '"':
		start := uint32(s.Pos())
		text, ok := s.Text()
		if !ok {
			return json.RawMessage(nil)
		}
		if span := s.Since(start); span.Len() < len(`""`) {
			s.Fail(int(start), "span too short")
		}
		return text
	default:
		raw := s.Skip()
		var v any
		if !raw.Empty() && json.Unmarshal([]byte(raw.Of(s.Doc())), &v) != nil {
			return raw.Of(s.Doc()) // a number that Go cannot represent
		}
		return v
	}
}

// What a walk sees is what encoding/json sees.
func TestWalkAgainstEncodingJSON(t *testing.T) {
	for _, d := range documents {
		if !d.good || strings.Contains(d.text, `\ud83d"`) || d.text == "1e400" {
			continue
		}
		var want any
		if err := json.Unmarshal([]byte(d.text), &want); err != nil {
			t.Fatalf("%q: %v", d.text, err)
		}
		s := NewScanner([]byte(d.text))
		if got := walkValue(s); s.End() != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%.60q: %#v, want %#v", d.text, got, want)
		}
	}
}

func TestMemberSpans(t *testing.T) {
	const text = `{ "ke\u0079" : [ 1, {"x":2} ] ,"b":"v" }`
	s := NewScanner([]byte(text))
	if !s.Object() {
		t.Fatal("not an object")
	}
	key, ok := s.Member()
	start := s.Key().Start
	if value := s.Skip(); !ok || key != "key" || value.Of(text) != `[ 1, {"x":2} ]` || s.Since(start).Of(text) != `"ke\u0079" : [ 1, {"x":2} ]` {
		t.Errorf("key %q, value %q, member %q", key, value.Of(text), s.Since(start).Of(text))
	}
	key, _ = s.Member()
	if value, ok := s.Text(); !ok || key != "b" || value != "v" || s.Key().Of(text) != `"b"` {
		t.Errorf("key %q, value %q", key, value)
	}
	if _, ok = s.Member(); ok || s.End() != nil {
		t.Errorf("the object does not end: %v", s.End())
	}
}

// A key with half a surrogate pair means different things to different decoders; where keys matter
// it is refused.
func TestLoneSurrogates(t *testing.T) {
	for _, half := range []string{`\ud83d`, `\ude00`, `\ud83dx`, `\ud83d\u0041`, `\ud83d\ud83d`} {
		s := NewScanner([]byte(`{"versions` + half + `":1}`))
		s.Object()
		if _, ok := s.Member(); ok || s.End() == nil {
			t.Errorf("key with %s passes", half)
		}
		s = NewScanner([]byte(`"` + half + `"`))
		if _, ok := s.Text(); ok || s.End() != nil {
			t.Errorf("value %s: ok = %v, end = %v", half, ok, s.End())
		}
	}
}

// Hostile strings of escapes take time in proportion to their length, not to its square.
func TestEscapesAreLinear(t *testing.T) {
	text := `["` + strings.Repeat(`\"`, 2<<20) + `","` + strings.Repeat(`\\`, 2<<20) + `"]`
	if err := skip(text); err != nil { // hangs for hours otherwise
		t.Fatal(err)
	}
}

// A scanner that has failed says nothing more.
func TestErrorsStick(t *testing.T) {
	s := NewScanner([]byte(`{"a":x,"b":1}`))
	s.Object()
	s.Member()
	s.Skip()
	first := s.End()
	if _, ok := s.Member(); ok || s.Object() || s.Array() || s.Element() || s.Peek() != 0 || !s.Skip().Empty() {
		t.Error("a failed scanner goes on")
	}
	if _, ok := s.Text(); ok || !errors.Is(s.End(), first) {
		t.Errorf("the first error was %v, now it is %v", first, s.End())
	}
}

// FuzzScanner: the verdict is that of encoding/json but for UTF-8 and depth, skipping and walking
// agree, and so do the values.
func FuzzScanner(f *testing.F) {
	for _, d := range documents {
		if len(d.text) < 1000 {
			f.Add([]byte(d.text))
		}
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		err := skip(string(doc))
		want := json.Valid(doc) && utf8.Valid(doc)
		var e *Error
		if errors.As(err, &e) && e.Limit {
			return
		}
		if (err == nil) != want {
			t.Fatalf("skip says %v, encoding/json says %v", err, want)
		}
		s := NewScanner([]byte(string(doc)))
		got := walkValue(s)
		if s.End() != nil {
			if want && !strings.Contains(s.End().Error(), "surrogate") {
				t.Fatalf("walk says %v", s.End())
			}
			return
		}
		var value any
		if !want || json.Unmarshal(doc, &value) != nil || strings.Contains(string(doc), `\`) && hasRawMessage(got) {
			return
		}
		if !reflect.DeepEqual(got, value) {
			t.Fatalf("walk sees %#v, encoding/json %#v", got, value)
		}
	})
}

// hasRawMessage finds the mark of a string with half a surrogate pair, which encoding/json
// replaces.
func hasRawMessage(v any) bool {
	switch v := v.(type) {
	case json.RawMessage:
		return true
	case []any:
		return slices.ContainsFunc(v, hasRawMessage)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasRawMessage)
	}
	return false
}
