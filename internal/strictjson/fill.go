package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Decode reads data into v, a pointer to a struct, or returns an *Error. v is undefined after an
// error.
func Decode(data []byte, v any) error {
	tree, err := Parse(data)
	if err != nil {
		return err
	}
	return Fill(tree, v)
}

// Fill puts a tree from [Parse] into v, a pointer to a struct.
func Fill(tree, v any) error { return filler{}.fill("", tree, reflect.ValueOf(v).Elem()) }

// Exact fills v, a pointer to a struct, from a canonical form that v must be written as again: for
// records that only this program writes. That alone rules out members that are unknown, missing,
// null or spelled otherwise, so the closed reading is only done to say what is wrong.
func Exact(canonical []byte, v any) error {
	if json.Unmarshal(canonical, v) == nil {
		if want, err := Canonical(v); err != nil || bytes.Equal(canonical, want) {
			return err
		}
	}
	tree, err := Parse(canonical)
	if err != nil {
		return err
	}
	fresh := reflect.New(reflect.TypeOf(v).Elem())
	if err := (filler{nulls: true}).fill("", tree, fresh.Elem()); err != nil {
		return err
	}
	want, err := Canonical(fresh.Interface())
	if err != nil {
		return err
	}
	return wrong(differs(canonical, want), "is missing or spelled differently")
}

// differs names the first member that two documents do not share, for the error text only.
func differs(got, want []byte) string {
	var g, w map[string]json.RawMessage
	if json.Unmarshal(got, &g) != nil || json.Unmarshal(want, &w) != nil {
		return ""
	}
	var names []string
	for name := range g {
		if !bytes.Equal(g[name], w[name]) {
			names = append(names, name)
		}
	}
	for name := range w {
		if g[name] == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return Join("", slices.Min(names))
}

// Parse checks data as one bounded JSON document with an object at the top ([Check] has the rules),
// and returns it as map[string]any, []any, string, json.Number, bool and nil.
func Parse(data []byte) (map[string]any, error) {
	if _, err := Check(data); err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.Field == "" {
			e.Field = breaks(json.NewDecoder(bytes.NewReader(data)), "")
		}
		return nil, err
	}
	tree := map[string]any{}
	again := json.NewDecoder(bytes.NewReader(data))
	again.UseNumber() // 3.0 and 3e0 are not whole numbers as written
	if err := again.Decode(&tree); err != nil {
		return nil, wrong("", "cannot be read: %v", err)
	}
	return tree, nil
}

// breaks is the path of the value at which a document stops being JSON, for the error text; "" when
// it does not, or at its top.
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

// filler puts a tree into Go values.
type filler struct {
	nulls bool // null may stand for a list, a map or any value, as encoding/json writes a nil one
}

func (f filler) fill(path string, node any, dst reflect.Value) error {
	if dst.Addr().Type().Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return plain(path, node, dst)
	}
	if node == nil && f.nullable(dst) {
		return nil
	}
	switch dst.Kind() {
	case reflect.Pointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		return f.fill(path, node, dst.Elem())
	case reflect.Interface:
		if dst.NumMethod() > 0 {
			return plain(path, node, dst)
		}
		if node != nil {
			dst.Set(reflect.ValueOf(node))
		}
	case reflect.Struct:
		return f.fillStruct(path, node, dst)
	case reflect.Map:
		return f.fillMap(path, node, dst)
	case reflect.Slice:
		if dst.Type().Elem().Kind() == reflect.Uint8 {
			return plain(path, node, dst)
		}
		return f.fillSlice(path, node, dst)
	default:
		return scalar(path, node, dst)
	}
	return nil
}

// scalar fills what has no members.
func scalar(path string, node any, dst reflect.Value) error {
	switch dst.Kind() {
	case reflect.String:
		s, ok := node.(string)
		if !ok {
			return wrong(path, "must be a string")
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
		return plain(path, node, dst)
	}
	return nil
}

// plain leaves a value of any other type to encoding/json.
func plain(path string, node any, dst reflect.Value) error {
	data, err := json.Marshal(node)
	if err == nil {
		err = json.Unmarshal(data, dst.Addr().Interface())
	}
	if err != nil {
		return wrong(path, "cannot be a %v", dst.Type())
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

func (f filler) fillStruct(path string, node any, dst reflect.Value) error {
	values, ok := node.(map[string]any)
	if !ok {
		return wrong(path, "must be an object")
	}
	known := map[string]bool{}
	for _, m := range membersOf(dst.Type()) {
		value, there := values[m.name]
		field := Join(path, m.name)
		into, err := dst.FieldByIndexErr(m.index)
		if err != nil { // behind an embedded pointer, which no record of ours has
			if there {
				known[m.name] = true
			}
			continue
		}
		switch {
		case !there && !m.optional:
			return wrong(field, "is missing")
		case !there:
			continue
		case value == nil && (m.optional || !f.nullable(into)):
			return wrong(field, "must not be null")
		}
		known[m.name] = true
		if err := f.fill(field, value, into); err != nil {
			return err
		}
	}
	first := ""
	for name := range values {
		if !known[name] && (first == "" || name < first) {
			first = name
		}
	}
	if len(known) < len(values) {
		return wrong(Join(path, first), "is not a known field")
	}
	return nil
}

func (f filler) nullable(dst reflect.Value) bool {
	switch dst.Kind() {
	case reflect.Pointer:
		return true
	case reflect.Slice, reflect.Map, reflect.Interface:
		return f.nulls
	default:
		return false
	}
}

// member is a field of a struct as encoding/json writes it.
type member struct {
	name     string
	index    []int
	optional bool
}

// membersOf lists the members of a struct in the order of its fields. Those of an embedded struct
// without a tag are members of the outer one.
func membersOf(t reflect.Type) []member {
	var all []member
	for _, field := range reflect.VisibleFields(t) {
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if !field.IsExported() || tag == "-" || field.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		all = append(all, member{name, field.Index, optional})
	}
	return all
}

func (f filler) fillMap(path string, node any, dst reflect.Value) error {
	members, ok := node.(map[string]any)
	if !ok {
		return wrong(path, "must be an object")
	}
	dst.Set(reflect.MakeMapWithSize(dst.Type(), len(members)))
	for name, value := range members {
		item := reflect.New(dst.Type().Elem()).Elem()
		if err := f.fill(Join(path, name), value, item); err != nil {
			return err
		}
		dst.SetMapIndex(reflect.ValueOf(name), item)
	}
	return nil
}

func (f filler) fillSlice(path string, node any, dst reflect.Value) error {
	items, ok := node.([]any)
	if !ok {
		return wrong(path, "must be a list")
	}
	dst.Set(reflect.MakeSlice(dst.Type(), len(items), len(items)))
	for i, item := range items {
		if err := f.fill(path+"["+strconv.Itoa(i)+"]", item, dst.Index(i)); err != nil {
			return err
		}
	}
	return nil
}
