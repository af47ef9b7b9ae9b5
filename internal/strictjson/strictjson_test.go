package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

type sample struct {
	Name  string            `json:"name"`
	Count int               `json:"count"`
	Ok    bool              `json:"ok"`
	Note  *string           `json:"note,omitempty"`
	Inner *sized            `json:"inner,omitempty"`
	List  []sized           `json:"list,omitempty"`
	Map   map[string]string `json:"map,omitempty"`
	Any   json.RawMessage   `json:"any,omitempty"`
	Bytes []byte            `json:"bytes,omitempty"`
}

type sized struct {
	Size int64 `json:"size"`
}

// S96, section "Envelope": what a reader refuses, and where it says the trouble is.
func TestDecodeRefuses(t *testing.T) {
	base := `{"name":"n","count":1,"ok":true`
	for name, tt := range map[string]struct{ doc, path, reason string }{
		"empty":             {"", "", "object"},
		"list":              {"[]", "", "object"},
		"text":              {`"x"`, "", "object"},
		"number":            {"1", "", "object"},
		"null":              {"null", "", "object"},
		"trailing value":    {base + "} {}", "", "trailing data"},
		"trailing text":     {base + "}x", "", ""},
		"byte order mark":   {"\xef\xbb\xbf" + base + "}", "", "object"},
		"truncated":         {base, "", "not JSON"},
		"trailing comma":    {base + ",}", "", ""},
		"comment":           {base + "/**/}", "", ""},
		"single quotes":     {"{'name':'n'}", "", ""},
		"NaN":               {`{"count":NaN}`, "", ""},
		"Infinity":          {`{"count":Infinity}`, "", ""},
		"huge":              {base + `,"any":1e400}`, "any", "finite"},
		"beyond 2^53":       {base + `,"any":9007199254740993}`, "any", "2^53"},
		"leading zero":      {`{"count":01}`, "", ""},
		"duplicate":         {`{"name":"a","name":"b"}`, "name", "twice"},
		"escaped duplicate": {`{"name":"a","n\u0061me":"b"}`, "name", "twice"},
		"deep duplicate":    {`{"any":[{"x":1,"x":2}]}`, "any[0].x", "twice"},
		"unknown":           {base + `,"x":1}`, "x", "known"},
		"deep unknown":      {base + `,"list":[{"size":1},{"size":2,"sise":2}]}`, "list[1].sise", "known"},
		"other case":        {`{"Name":"n","count":1,"ok":true}`, "name", "missing"},
		"both cases":        {base + `,"Name":"n"}`, "Name", "known"},
		"null optional":     {base + `,"note":null}`, "note", "null"},
		"null list":         {base + `,"list":null}`, "list", "null"},
		"null text":         {`{"name":null}`, "name", "null"},
		"null number":       {base + `,"inner":{"size":null}}`, "inner.size", "null"},
		"wrong type":        {`{"name":1}`, "name", "string"},
		"fraction":          {`{"name":"n","count":1.5}`, "count", "whole number"},
		"whole as fraction": {`{"name":"n","count":1.0}`, "count", "whole number"},
		"exponent":          {`{"name":"n","count":1e2}`, "count", "whole number"},
		"number as text":    {`{"name":"n","count":"1"}`, "count", "whole number"},
		"truth as number":   {`{"name":"n","count":true}`, "count", "whole number"},
		"number as truth":   {`{"name":"n","count":1,"ok":1}`, "ok", "true or false"},
		"list for object":   {base + `,"inner":[]}`, "inner", "object"},
		"object for list":   {base + `,"list":{}}`, "list", "list"},
		"list for map":      {base + `,"map":[]}`, "map", "object"},
		"text in a map":     {base + `,"map":{"a":1}}`, "map.a", "string"},
		"bytes":             {base + `,"bytes":"?"}`, "bytes", "cannot be"},
		"bad UTF-8":         {"{\"name\":\"\xff\"}", "", "UTF-8"},
		"overlong UTF-8":    {"{\"name\":\"\xc0\xaf\"}", "", "UTF-8"},
		"lone surrogate":    {`{"name":"\ud800"}`, "", "strict"},
		"control character": {"{\"name\":\"\x01\"}", "", ""},
		"too deep":          {`{"any":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`, "", "deep"},
		"too many":          {base + `,"any":[` + strings.Repeat("1,", 9995) + `1]}`, "", "values"},
		"too long":          {`{"name":"` + strings.Repeat("x", strictjson.MaxBytes) + `"}`, "", "bytes"},
	} {
		var v sample
		err := strictjson.Decode([]byte(tt.doc), &v)
		de, ok := errors.AsType[*strictjson.Error](err)
		if !ok {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if tt.path != "" && de.Field != tt.path || !strings.Contains(de.Reason, tt.reason) {
			t.Errorf("%s: at %q: %s", name, de.Field, de.Reason)
		}
	}
}

// The limits themselves are allowed.
func TestDecodeAllows(t *testing.T) {
	base := `{"name":"n","count":1,"ok":true`
	for name, doc := range map[string]string{
		"plain":   " \n{\"name\":\"n\",\"count\":-1,\"ok\":false,\"map\":{\"a\":\"b\"},\"bytes\":\"AA==\"}\n",
		"deepest": base + `,"any":` + strings.Repeat("[", 19) + strings.Repeat("]", 19) + `}`,
		"most":    base + `,"any":[` + strings.Repeat("1,", 9994) + `1]}`,
		"largest": base + `,"any":9007199254740991}`,
		"pair":    `{"name":"\ud83d\ude00","count":1,"ok":true}`,
	} {
		var v sample
		if err := strictjson.Decode([]byte(doc), &v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A record must be exactly what this program writes: nothing missing, nothing null that is not null
// when it is written.
func TestExact(t *testing.T) {
	for doc, path := range map[string]string{
		`{"name":"n","count":1,"ok":true}`:                "-",
		` { "ok": true, "count": 1, "name": "\u006e" }`:   "-",
		`{"name":"n","count":1}`:                          "ok",
		`{"name":"n","count":1,"ok":true,"note":null}`:    "note",
		`{"name":"n","count":1,"ok":true,"list":[]}`:      "list",
		`{"name":"n","count":1,"ok":true,"bytes":"AB=="}`: "bytes",
		`{"name":"n","count":1,"ok":true,"x":1}`:          "x",
		`{"Name":"n","count":1,"ok":true}`:                "name",
		`{"name":"n","count":"1","ok":true}`:              "count",
	} {
		var v sample
		canonical, err := strictjson.Check([]byte(doc))
		if err == nil {
			err = strictjson.Exact(canonical, &v)
		}
		de, _ := errors.AsType[*strictjson.Error](err)
		if (err == nil) != (path == "-") || err != nil && de.Field != path {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// What encoding/json writes for a Go value is read back, whatever its type; what is wrong beside it
// is named.
func TestExactTypes(t *testing.T) {
	type embedded struct {
		Deep string
	}
	type wide struct {
		embedded
		List  []int          `json:"list"`
		Map   map[string]int `json:"map"`
		Any   any            `json:"any"`
		Point *int           `json:"point"`
		When  time.Time      `json:"when"`
		Part  float64
		Small uint8 `json:"small,omitzero"`
	}
	canonical, err := strictjson.Canonical(wide{Part: 0.5, embedded: embedded{"d"}})
	var got wide
	if err == nil {
		err = strictjson.Exact(canonical, &got)
	}
	if err != nil || got.Part != 0.5 || got.Deep != "d" {
		t.Errorf("%s: %v", canonical, err)
	}
	for old, field := range map[string]string{`"Part":0.5`: "Part", `"list":null`: "list", `"Deep":"d"`: "Deep", `"when":"0001-01-01T00:00:00Z"`: "when"} {
		broken, err := strictjson.Check(bytes.Replace(canonical, []byte(old), []byte(old[:strings.Index(old, ":")]+`:true`), 1))
		if err == nil {
			err = strictjson.Exact(broken, &got)
		}
		if e, ok := errors.AsType[*strictjson.Error](err); !ok || e.Field != field {
			t.Errorf("%s: %v", old, err)
		}
	}
}

// The messages quote member names only, bounded and without control characters.
func TestErrorsAreSafe(t *testing.T) {
	var v sample
	err := strictjson.Decode([]byte(`{"`+strings.Repeat("k", 5000)+`\u001b[31m":"secret"}`), &v)
	if err == nil || len(err.Error()) > 200 || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("got %v", err)
	}
	err = strictjson.Decode([]byte(`{"count":"secret"}`), &v)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// RFC 8785: member order, number and string forms; no HTML escapes.
func TestCanonical(t *testing.T) {
	got, err := strictjson.Canonical(map[string]any{"b": "<&>", "a": 1.0, "\u20ac": 1e21, "A": []any{nil, true}})
	if want := `{"A":[null,true],"a":1,"b":"<&>","€":1e+21}`; err != nil || string(got) != want {
		t.Errorf("got %s %v", got, err)
	}
	digest, err := strictjson.Digest(json.RawMessage(`{ "b":2, "a":1 }`))
	if want := strictjson.DigestBytes([]byte(`{"a":1,"b":2}`)); err != nil || digest != want || !strictjson.IsDigest(digest) {
		t.Errorf("got %s %v", digest, err)
	}
	for _, bad := range []string{"", "sha256:", digest[:70], digest + "0", strings.ToUpper(digest), "md5:" + digest[7:]} {
		if strictjson.IsDigest(bad) {
			t.Errorf("%q counts as a digest", bad)
		}
	}
}

// Whatever is accepted has a canonical form that is accepted again and is its own canonical form.
func FuzzDecodeRaw(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,2,{"b":null}],"c":"\ud83d\ude00"}`, `{"a":1e5}`, `{"a":-0}`, `{"a":"\u2028"}`, `{"payload":{},"kind":"k"}`, `{`, `{"a":1}{`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v map[string]json.RawMessage
		if strictjson.Decode(data, &v) != nil {
			return
		}
		c, err := strictjson.Canonical(json.RawMessage(data))
		if err != nil {
			t.Fatalf("accepted but without canonical form: %v", err)
		}
		var again map[string]json.RawMessage
		if err := strictjson.Decode(c, &again); err != nil {
			t.Fatalf("canonical form refused: %v", err)
		}
		if cc, err := strictjson.Canonical(json.RawMessage(c)); err != nil || !bytes.Equal(c, cc) {
			t.Fatalf("canonical form is not stable: %q %q %v", c, cc, err)
		}
	})
}
