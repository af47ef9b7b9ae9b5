package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

type sample struct {
	Name  string            `json:"name"`
	Count int               `json:"count"`
	Ok    bool              `json:"ok"`
	Note  *string           `json:"note,omitempty"`
	Inner *inner            `json:"inner,omitempty"`
	List  []inner           `json:"list,omitempty"`
	Map   map[string]string `json:"map,omitempty"`
	Any   json.RawMessage   `json:"any,omitempty"`
	Bytes []byte            `json:"bytes,omitempty"`
}

type inner struct {
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
		"trailing value":    {base + "} {}", "", "after its end"},
		"trailing text":     {base + "}x", "", ""},
		"byte order mark":   {"\xef\xbb\xbf" + base + "}", "", "object"},
		"truncated":         {base, "", "not JSON"},
		"trailing comma":    {base + ",}", "", ""},
		"comment":           {base + "/**/}", "", ""},
		"single quotes":     {"{'name':'n'}", "", ""},
		"NaN":               {`{"count":NaN}`, "", ""},
		"Infinity":          {`{"count":Infinity}`, "", ""},
		"huge":              {`{"any":1e400}`, "any", "finite"},
		"beyond 2^53":       {`{"any":9007199254740993}`, "any", "2^53"},
		"leading zero":      {`{"count":01}`, "", ""},
		"duplicate":         {`{"name":"a","name":"b"}`, "name", "twice"},
		"escaped duplicate": {`{"name":"a","n\u0061me":"b"}`, "name", "twice"},
		"deep duplicate":    {`{"any":[{"x":1,"x":2}]}`, "any[0].x", "twice"},
		"unknown":           {base + `,"x":1}`, "x", "known"},
		"deep unknown":      {base + `,"list":[{"size":1},{"sise":2}]}`, "list[1].sise", "known"},
		"other case":        {`{"Name":"n","count":1,"ok":true}`, "Name", "known"},
		"null text":         {`{"name":null}`, "name", "null"},
		"null number":       {base + `,"inner":{"size":null}}`, "inner.size", "null"},
		"wrong type":        {`{"name":1}`, "name", "text"},
		"fraction":          {`{"count":1.5}`, "count", "whole number"},
		"whole as fraction": {`{"count":1.0}`, "count", "whole number"},
		"exponent":          {`{"count":1e2}`, "count", "whole number"},
		"number as text":    {`{"count":"1"}`, "count", "whole number"},
		"truth as number":   {`{"count":true}`, "count", "whole number"},
		"list for object":   {`{"inner":[]}`, "inner", "object"},
		"object for list":   {`{"list":{}}`, "list", "list"},
		"bad UTF-8":         {"{\"name\":\"\xff\"}", "", "UTF-8"},
		"overlong UTF-8":    {"{\"name\":\"\xc0\xaf\"}", "", "UTF-8"},
		"lone surrogate":    {`{"name":"\ud800"}`, "", "strict"},
		"control character": {"{\"name\":\"\x01\"}", "", ""},
		"too deep":          {`{"any":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`, "", "deep"},
		"too many":          {`{"any":[` + strings.Repeat("1,", 9998) + `1]}`, "", "values"},
		"too long":          {`{"name":"` + strings.Repeat("x", MaxBytes) + `"}`, "", "bytes"},
	} {
		var v sample
		err := Decode([]byte(tt.doc), &v)
		de, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if tt.path != "" && de.Path != tt.path || !strings.Contains(de.Reason, tt.reason) {
			t.Errorf("%s: at %q: %s", name, de.Path, de.Reason)
		}
	}
}

// The limits themselves are allowed.
func TestDecodeAllows(t *testing.T) {
	for name, doc := range map[string]string{
		"plain":    " \n{\"name\":\"n\",\"count\":-1,\"ok\":false,\"map\":{\"a\":\"b\"},\"bytes\":\"AA==\"}\n",
		"deepest":  `{"any":` + strings.Repeat("[", 19) + strings.Repeat("]", 19) + `}`,
		"most":     `{"any":[` + strings.Repeat("1,", 9997) + `1]}`,
		"largest":  `{"any":9007199254740991}`,
		"pair":     `{"name":"\ud83d\ude00"}`,
		"nullable": `{"note":null,"inner":null,"list":null,"map":null}`,
	} {
		var v sample
		if err := Decode([]byte(doc), &v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A record must be exactly what this program writes: nothing missing, nothing null that is not null when it is written.
func TestDecodeExact(t *testing.T) {
	for doc, path := range map[string]string{
		`{"name":"n","count":1,"ok":true}`:              "-",
		` { "ok": true, "count": 1, "name": "\u006e" }`: "-",
		`{"name":"n","count":1}`:                        "ok",
		`{"name":"n","count":1,"ok":true,"note":null}`:  "",
		`{"name":"n","count":1,"ok":true,"list":[]}`:    "",
	} {
		var v sample
		err := DecodeExact([]byte(doc), &v)
		de, _ := errors.AsType[*Error](err)
		if (err == nil) != (path == "-") || err != nil && path != "" && de.Path != path {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// The messages quote member names only, bounded and without control characters.
func TestErrorsAreSafe(t *testing.T) {
	var v sample
	err := Decode([]byte(`{"`+strings.Repeat("k", 5000)+`\u001b[31m":"secret"}`), &v)
	if err == nil || len(err.Error()) > 200 || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("got %v", err)
	}
	err = Decode([]byte(`{"count":"secret"}`), &v)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// RFC 8785: member order, number and string forms; no HTML escapes.
func TestCanonical(t *testing.T) {
	got, err := Canonical(map[string]any{"b": "<&>", "a": 1.0, "\u20ac": 1e21, "A": []any{nil, true}})
	if want := `{"A":[null,true],"a":1,"b":"<&>","€":1e+21}`; err != nil || string(got) != want {
		t.Errorf("got %s %v", got, err)
	}
	digest, err := Digest(json.RawMessage(`{ "b":2, "a":1 }`))
	if want := DigestBytes([]byte(`{"a":1,"b":2}`)); err != nil || digest != want || !IsDigest(digest) {
		t.Errorf("got %s %v", digest, err)
	}
	for _, bad := range []string{"", "sha256:", digest[:70], digest + "0", strings.ToUpper(digest), "md5:" + digest[7:]} {
		if IsDigest(bad) {
			t.Errorf("%q counts as a digest", bad)
		}
	}
}

// Whatever is accepted has a canonical form that is accepted again and is its own canonical form.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,2,{"b":null}],"c":"\ud83d\ude00"}`, `{"a":1e5}`, `{"a":-0}`, `{"a":"\u2028"}`, `{"payload":{},"kind":"k"}`, `{`, `{"a":1}{`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v map[string]json.RawMessage
		if Decode(data, &v) != nil {
			return
		}
		c, err := Canonical(json.RawMessage(data))
		if err != nil {
			t.Fatalf("accepted but without canonical form: %v", err)
		}
		var again map[string]json.RawMessage
		if err := Decode(c, &again); err != nil {
			t.Fatalf("canonical form refused: %v", err)
		}
		if cc, err := Canonical(json.RawMessage(c)); err != nil || !bytes.Equal(c, cc) {
			t.Fatalf("canonical form is not stable: %q %q %v", c, cc, err)
		}
	})
}
