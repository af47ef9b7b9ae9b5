// Package strictjson reads JSON documents whose schema is closed, and writes them canonically, so
// that two programs that accept a document agree on every byte that was signed or hashed. It knows
// no document.
//
// A Go struct says exactly which members there are. What encoding/json lets pass is refused:
// repeated members, unknown ones, members of another case, missing ones, null for a value, numbers
// that are not whole, text after the document, invalid UTF-8 and lone surrogates (spec: Envelope,
// S96). A member is required unless its tag says omitempty or omitzero; a pointer may be null.
// Numbers are whole and within ±(2^53-1), so that the canonical form of RFC 8785 keeps them.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// The bounds on every document that is read (S96).
const (
	MaxBytes = 1 << 20
	MaxDepth = 20
	MaxNodes = 10000
)

// Error says which member of a document is wrong and why. Neither field holds a value of the
// document but a number, clipped.
type Error struct {
	// Field is the dotted path of the member, "plan.files[3].size", or "" for the document itself.
	Field  string
	Reason string
}

// Error gives path and reason.
func (e *Error) Error() string {
	if e.Field == "" {
		return "document " + e.Reason
	}
	return e.Field + " " + e.Reason
}

func wrong(field, format string, args ...any) error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// Check reads data as one bounded JSON document with an object at the top, and gives its canonical
// form. At most [MaxBytes], [MaxDepth] levels and [MaxNodes] values, valid UTF-8, no duplicate
// member, no number that a double cannot hold, nothing after the object. Every error is an
// [*Error].
func Check(data []byte) ([]byte, error) {
	if len(data) > MaxBytes {
		return nil, wrong("", "has more than %d bytes", MaxBytes)
	}
	if !utf8.Valid(data) {
		return nil, wrong("", "is not valid UTF-8")
	}
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return nil, wrong("", "must be a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	w := walker{d: d}
	if err := w.value("", 1); err != nil {
		if _, ok := errors.AsType[*Error](err); ok {
			return nil, err
		}
		return nil, wrong("", "is not JSON: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, wrong("", "has trailing data")
	}
	// The token reader is lenient here and there, and it repairs lone surrogates; the canonical
	// form accepts neither.
	canonical, err := jcs.Transform(data)
	if err != nil {
		return nil, wrong("", "is not strict JSON")
	}
	return canonical, nil
}

// walker counts and checks values one token at a time.
type walker struct {
	d     *json.Decoder
	nodes int
}

func (w *walker) value(path string, depth int) error {
	if w.nodes++; w.nodes > MaxNodes {
		return wrong(path, "has more than %d values", MaxNodes)
	}
	tok, err := w.d.Token()
	if err != nil {
		return err
	}
	switch t := tok.(type) {
	case json.Number:
		return number(path, t.String())
	case json.Delim:
		if depth > MaxDepth {
			return wrong(path, "is nested more than %d levels deep", MaxDepth)
		}
		if t == '{' {
			err = w.object(path, depth)
		} else {
			err = w.array(path, depth)
		}
		if err == nil {
			_, err = w.d.Token() // the closing bracket
		}
		return err
	}
	return nil
}

func (w *walker) object(path string, depth int) error {
	seen := map[string]bool{}
	for w.d.More() {
		tok, err := w.d.Token()
		if err != nil {
			return err
		}
		key, _ := tok.(string)
		at := Join(path, key)
		if seen[key] {
			return wrong(at, "appears twice")
		}
		seen[key] = true
		if err := w.value(at, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) array(path string, depth int) error {
	for i := 0; w.d.More(); i++ {
		if err := w.value(path+"["+strconv.Itoa(i)+"]", depth+1); err != nil {
			return err
		}
	}
	return nil
}

// number refuses what a double cannot hold: infinite values, and whole numbers that would be
// rounded to a neighbour.
func number(path, s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return wrong(path, "is not a finite number")
	}
	if !strings.ContainsAny(s, ".eE") && math.Abs(f) > 1<<53-1 {
		return wrong(path, "is a whole number beyond 2^53-1")
	}
	return nil
}

// maxName is how much of a member's name an error shows, in bytes.
const maxName = 100

// Join appends a member's name to a path, clipped and without control characters.
func Join(path, name string) string {
	if len(name) > maxName {
		name = name[:maxName]
	}
	name = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, name), "?")
	if path == "" {
		return name
	}
	return path + "." + name
}
