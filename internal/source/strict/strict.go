// Package strict reads JSON documents whose schema is closed: a Go struct says exactly which members there are. It
// refuses what encoding/json lets pass: repeated members, unknown ones, members of another case, missing ones, null for
// a value, numbers that are not whole, text after the document, invalid UTF-8 and lone surrogates (spec: Envelope, S96).
//
// A member is required unless its tag says omitempty; a pointer may be null. Numbers are whole and within ±(2^53-1), so
// that the canonical form of RFC 8785 keeps them.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

// Error says which member of a document is wrong and why. Field is a dotted path, "" for the document itself.
type Error struct{ Field, Reason string }

func (e *Error) Error() string {
	if e.Field == "" {
		return "document " + e.Reason
	}
	return e.Field + " " + e.Reason
}

func wrong(field, format string, args ...any) error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// Decode reads data into v, a pointer to a struct, or returns an *Error. v is undefined after an error.
func Decode(data []byte, v any) error {
	tree, err := Parse(data)
	if err != nil {
		return err
	}
	return Fill(tree, v)
}

// Fill puts a tree from Parse into v, a pointer to a struct.
func Fill(tree, v any) error { return fill("", tree, reflect.ValueOf(v).Elem()) }

// Parse checks data as one bounded JSON document with an object at the top (strictjson.Check has the rules), and returns it as
// map[string]any, []any, string, json.Number, bool and nil.
func Parse(data []byte) (map[string]any, error) {
	if _, err := strictjson.Check(data); err != nil {
		if e, ok := errors.AsType[*strictjson.Error](err); ok {
			if e.Path == "" {
				e.Path = breaks(json.NewDecoder(bytes.NewReader(data)), "")
			}
			return nil, &Error{Field: e.Path, Reason: e.Reason}
		}
		return nil, wrong("", "cannot be read: %v", err)
	}
	tree := map[string]any{}
	again := json.NewDecoder(bytes.NewReader(data))
	again.UseNumber() // 3.0 and 3e0 are not whole numbers as written
	if err := again.Decode(&tree); err != nil {
		return nil, wrong("", "cannot be read: %v", err)
	}
	return tree, nil
}

// breaks is the path of the value at which a document stops being JSON, for the error text; "" when it does not, or at its top.
func breaks(d *json.Decoder, path string) string {
	token, err := d.Token()
	if err != nil || len(path) > 1000 {
		return path
	}
	open, isOpen := token.(json.Delim)
	if !isOpen {
		return ""
	}
	for i := 0; d.More(); i++ {
		at := path + "[" + strconv.Itoa(i) + "]"
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return path
			}
			text, _ := name.(string)
			at = Join(path, text)
		}
		if found := breaks(d, at); found != "" {
			return found
		}
	}
	if _, err := d.Token(); err != nil {
		return path
	}
	return ""
}

// Join appends a member's name to a path.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func fill(path string, node any, dst reflect.Value) error {
	switch dst.Kind() {
	case reflect.Pointer:
		if node == nil {
			return nil
		}
		dst.Set(reflect.New(dst.Type().Elem()))
		return fill(path, node, dst.Elem())
	case reflect.Interface:
		if node != nil {
			dst.Set(reflect.ValueOf(node))
		}
		return nil
	case reflect.Struct:
		return fillStruct(path, node, dst)
	case reflect.Map:
		return fillMap(path, node, dst)
	case reflect.Slice:
		return fillSlice(path, node, dst)
	case reflect.String:
		s, ok := node.(string)
		if !ok {
			return wrong(path, "must be text")
		}
		dst.SetString(s)
	case reflect.Bool:
		b, ok := node.(bool)
		if !ok {
			return wrong(path, "must be true or false")
		}
		dst.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, err := integer(path, node)
		if err != nil {
			return err
		}
		dst.SetInt(n)
	default:
		return wrong(path, "has a Go type that no schema uses: %v", dst.Type())
	}
	return nil
}

func integer(path string, node any) (int64, error) {
	const most = 1<<53 - 1
	number, ok := node.(json.Number)
	if !ok {
		return 0, wrong(path, "must be a whole number")
	}
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n > most || n < -most || number == "-0" {
		return 0, wrong(path, "must be a whole number within 2^53, not %.40s", number)
	}
	return n, nil
}

func fillStruct(path string, node any, dst reflect.Value) error {
	members, ok := node.(map[string]any)
	if !ok {
		return wrong(path, "must be an object")
	}
	known := 0
	for i := range dst.NumField() {
		tag := dst.Type().Field(i).Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if name == "" || name == "-" {
			continue
		}
		value, there := members[name]
		field := Join(path, name)
		switch {
		case !there && options != "omitempty":
			return wrong(field, "is missing")
		case !there:
			continue
		case value == nil && (options == "omitempty" || dst.Field(i).Kind() != reflect.Pointer):
			return wrong(field, "must not be null")
		}
		known++
		if err := fill(field, value, dst.Field(i)); err != nil {
			return err
		}
	}
	if known < len(members) {
		return unknown(path, members, dst.Type())
	}
	return nil
}

// unknown names the first member, in the order of their names, that the struct does not have.
func unknown(path string, members map[string]any, t reflect.Type) error {
	names := map[string]bool{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[name] = true
	}
	first := ""
	for name := range members {
		if !names[name] && (first == "" || name < first) {
			first = name
		}
	}
	return wrong(Join(path, first), "is not a known field")
}

func fillMap(path string, node any, dst reflect.Value) error {
	members, ok := node.(map[string]any)
	if !ok {
		return wrong(path, "must be an object")
	}
	dst.Set(reflect.MakeMapWithSize(dst.Type(), len(members)))
	for name, value := range members {
		item := reflect.New(dst.Type().Elem()).Elem()
		if err := fill(Join(path, name), value, item); err != nil {
			return err
		}
		dst.SetMapIndex(reflect.ValueOf(name), item)
	}
	return nil
}

func fillSlice(path string, node any, dst reflect.Value) error {
	items, ok := node.([]any)
	if !ok {
		return wrong(path, "must be a list")
	}
	dst.Set(reflect.MakeSlice(dst.Type(), len(items), len(items)))
	for i, item := range items {
		if err := fill(path+"["+strconv.Itoa(i)+"]", item, dst.Index(i)); err != nil {
			return err
		}
	}
	return nil
}
