// Package strictjson reads JSON documents strictly and writes them canonically, so that two programs that accept a document agree on every
// byte that was signed or hashed. It knows no document.
package strictjson

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
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

// Error says where a document breaks the rules. Neither field holds a value of the document, only member names, clipped.
type Error struct {
	// Path is the way to the place, "plan.files[3].size", or "" for the document.
	Path   string
	Reason string
}

// Error gives path and reason.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

func refuse(path, format string, args ...any) error {
	return &Error{Path: path, Reason: fmt.Sprintf(format, args...)}
}

// Decode reads one JSON object strictly into v, a pointer to a struct or map: at most [MaxBytes], [MaxDepth] levels and [MaxNodes] values,
// valid UTF-8, no duplicate member, no number that a double cannot hold, nothing after the object; no unknown member, none in another
// spelling of upper and lower case, no null where v has no room for it. Every error is a [*Error].
func Decode(data []byte, v any) error {
	if _, err := Check(data); err != nil {
		return err
	}
	return Fill(data, v)
}

// Fill is the part of [Decode] that depends on the target; data has passed [Check].
func Fill(data []byte, v any) error {
	if err := closed("", data, reflect.TypeOf(v)); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return refuse(te.Field, "must be %s, not %s", describe(te.Type), te.Value)
		}
		return refuse("", "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// DecodeExact is [Decode] for records that only this program writes: every member of v must be there, as this program would write it.
func DecodeExact(data []byte, v any) error {
	got, err := Check(data)
	if err != nil {
		return err
	}
	return FillExact(got, v)
}

// FillExact is the part of [DecodeExact] that depends on the target. It fills v from a canonical form. What v is written as must be that form again: this alone rules out members that are unknown,
// missing, null or spelled otherwise, so the strict reading is only done to say what is wrong.
func FillExact(got []byte, v any) error {
	if json.Unmarshal(got, v) == nil {
		if want, err := Canonical(v); err != nil || bytes.Equal(got, want) {
			return err
		}
	}
	if err := Fill(got, v); err != nil {
		return err
	}
	want, err := Canonical(v)
	if err != nil {
		return err
	}
	return refuse(missing(got, want), "a member is missing or is not written as this program writes it")
}

// missing names the first member of want that got lacks, for the error text only.
func missing(got, want []byte) string {
	var g, w map[string]json.RawMessage
	if json.Unmarshal(got, &g) != nil || json.Unmarshal(want, &w) != nil {
		return ""
	}
	keys := make([]string, 0, len(w))
	for k := range w {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if !bytes.Equal(g[k], w[k]) {
			return k
		}
	}
	return ""
}

// Canonical is the RFC 8785 form of v, which may be raw JSON or any value that encoding/json can write.
func Canonical(v any) ([]byte, error) {
	raw, ok := v.(json.RawMessage)
	if !ok {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return nil, refuse("", "cannot be written as JSON: %v", err)
		}
		raw = b.Bytes()
	}
	out, err := jcs.Transform(raw)
	if err != nil {
		return nil, refuse("", "has no canonical form: %v", err)
	}
	return out, nil
}

// Digest is "sha256:" and the hex SHA-256 of v's canonical form.
func Digest(v any) (string, error) {
	c, err := Canonical(v)
	if err != nil {
		return "", err
	}
	return DigestBytes(c), nil
}

// DigestBytes is "sha256:" and the hex SHA-256 of the bytes as they are; URL digests are made this way.
func DigestBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// IsDigest tells whether s has the form that [Digest] gives.
func IsDigest(s string) bool {
	rest, ok := strings.CutPrefix(s, "sha256:")
	return ok && IsHex(rest, 64)
}

// IsHex tells whether s is n lower-case hex digits.
func IsHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }

// Check is the part of [Decode] that does not depend on the target. It gives the canonical form.
func Check(data []byte) ([]byte, error) {
	if len(data) > MaxBytes {
		return nil, refuse("", "has more than %d bytes", MaxBytes)
	}
	if !utf8.Valid(data) {
		return nil, refuse("", "is not valid UTF-8")
	}
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return nil, refuse("", "must be a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	w := walker{d: d}
	if err := w.value("", 1); err != nil {
		if _, ok := errors.AsType[*Error](err); ok {
			return nil, err
		}
		return nil, refuse("", "is not JSON: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse("", "has something after its end")
	}
	// The token reader is lenient here and there, and it repairs lone surrogates; the canonical form accepts neither.
	canonical, err := jcs.Transform(data)
	if err != nil {
		return nil, refuse("", "is not strict JSON")
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
		return refuse(path, "has more than %d values", MaxNodes)
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
			return refuse(path, "is nested more than %d levels deep", MaxDepth)
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
		at := join(path, key)
		if seen[key] {
			return refuse(at, "appears twice")
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

// number refuses what a double cannot hold: infinite values, and whole numbers that would be rounded to a neighbour.
func number(path, s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return refuse(path, "is not a finite number")
	}
	if !strings.ContainsAny(s, ".eE") && math.Abs(f) > 1<<53-1 {
		return refuse(path, "is a whole number beyond 2^53-1")
	}
	return nil
}

func join(path, key string) string {
	if len(key) > 40 {
		key = key[:40]
	}
	key = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, key), "?")
	if path == "" {
		return key
	}
	return path + "." + key
}

// closed refuses members that t does not have in exactly this spelling, and null where t is not nullable. encoding/json by itself
// accepts both.
func closed(path string, data []byte, t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		if string(bytes.TrimSpace(data)) == "null" {
			return nil
		}
		t = t.Elem()
	}
	if t == nil || t.Kind() == reflect.Interface || t == reflect.TypeFor[json.RawMessage]() || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	nullable := t.Kind() == reflect.Slice || t.Kind() == reflect.Map
	if string(bytes.TrimSpace(data)) == "null" {
		if nullable {
			return nil
		}
		return refuse(path, "must be %s, not null", describe(t))
	}
	switch t.Kind() {
	case reflect.Struct:
		return closedStruct(path, data, t)
	case reflect.Map:
		return closedMap(path, data, t)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return nil
		}
		var items []json.RawMessage
		if json.Unmarshal(data, &items) != nil {
			return refuse(path, "must be %s", describe(t))
		}
		for i, item := range items {
			if err := closed(path+"["+strconv.Itoa(i)+"]", item, t.Elem()); err != nil {
				return err
			}
		}
	default: // a plain value; encoding/json judges it
	}
	return nil
}

func closedMap(path string, data []byte, t reflect.Type) error {
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) != nil {
		return refuse(path, "must be an object")
	}
	for k, item := range m {
		if err := closed(join(path, k), item, t.Elem()); err != nil {
			return err
		}
	}
	return nil
}

func closedStruct(path string, data []byte, t reflect.Type) error {
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) != nil {
		return refuse(path, "must be an object")
	}
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		if f.IsExported() && name != "-" && (!f.Anonymous || f.Tag.Get("json") != "") {
			fields[name] = f.Type
		}
	}
	for k, item := range m {
		ft, ok := fields[k]
		if !ok {
			return refuse(join(path, k), "is not a known member")
		}
		if err := closed(join(path, k), item, ft); err != nil {
			return err
		}
	}
	return nil
}

func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	default:
		return t.Kind().String()
	}
}
