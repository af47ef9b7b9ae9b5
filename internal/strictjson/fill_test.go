package strictjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

type inner struct {
	Size int64   `json:"size"`
	ETag *string `json:"etag"`
}

type doc struct {
	Name  string            `json:"name"`
	Paths []string          `json:"paths"`
	Inner inner             `json:"inner"`
	Meta  map[string]string `json:"meta,omitempty"`
	Flag  bool              `json:"flag,omitempty"`
}

const good = `{"name":"n","paths":["a","b"],"inner":{"size":3,"etag":null},"meta":{"k":"v"}}`

func TestDecode(t *testing.T) {
	var d doc
	if err := strictjson.Decode([]byte(good), &d); err != nil {
		t.Fatal(err)
	}
	if d.Name != "n" || len(d.Paths) != 2 || d.Inner.Size != 3 || d.Inner.ETag != nil || d.Meta["k"] != "v" {
		t.Fatalf("read as %+v", d)
	}
}

// S96: what a closed strict reader refuses, and the member that it names.
func TestDecodeNamesTheMember(t *testing.T) {
	for _, tt := range []struct{ name, data, field, reason string }{
		{"repeated member", `{"name":"n","name":"m","paths":[],"inner":{"size":3,"etag":null}}`, "name", "twice"},
		{"repeated by escape", `{"name":"n","na\u006de":"m","paths":[],"inner":{"size":3,"etag":null}}`, "name", "twice"},
		{"repeated inside", `{"name":"n","paths":[],"inner":{"size":3,"size":3,"etag":null}}`, "inner.size", "twice"},
		{"unknown member", `{"name":"n","paths":[],"inner":{"size":3,"etag":null,"extra":1}}`, "inner.extra", "not a known"},
		{"other case", `{"Name":"n","paths":[],"inner":{"size":3,"etag":null}}`, "name", "missing"},
		{"missing", `{"name":"n","paths":[]}`, "inner", "missing"},
		{"null value", `{"name":null,"paths":[],"inner":{"size":3,"etag":null}}`, "name", "null"},
		{"null optional", `{"name":"n","paths":[],"inner":{"size":3,"etag":null},"meta":null}`, "meta", "null"},
		{"fraction", `{"name":"n","paths":[],"inner":{"size":3.0,"etag":null}}`, "inner.size", "whole"},
		{"exponent", `{"name":"n","paths":[],"inner":{"size":3e2,"etag":null}}`, "inner.size", "whole"},
		{"beyond 2^53", `{"name":"n","paths":[],"inner":{"size":9007199254740992,"etag":null}}`, "inner.size", "2^53"},
		{"boolean as number", `{"name":"n","paths":[],"inner":{"size":true,"etag":null}}`, "inner.size", "whole"},
		{"number as text", `{"name":1,"paths":[],"inner":{"size":3,"etag":null}}`, "name", "string"},
		{"NaN", `{"name":"n","paths":[],"inner":{"size":NaN,"etag":null}}`, "inner.size", "not JSON"},
		{"list for object", `{"name":"n","paths":[],"inner":[]}`, "inner", "object"},
		{"object for list", `{"name":"n","paths":{},"inner":{"size":3,"etag":null}}`, "paths", "list"},
		{"item of a list", `{"name":"n","paths":["a",7],"inner":{"size":3,"etag":null}}`, "paths[1]", "string"},
		{"trailing data", good + `{}`, "", "trailing data"},
		{"trailing comma", `{"name":"n",}`, "", "not JSON"},
		{"truncated", good[:len(good)-1], "", "not JSON"},
		{"no object", `[]`, "", "a JSON object"},
		{"empty", ``, "", "a JSON object"},
		{"bad UTF-8", "{\"name\":\"\xff\"}", "", "UTF-8"},
		{"lone surrogate", `{"name":"\ud800"}`, "", "strict"},
		{"too deep", strings.Repeat(`{"a":`, 21) + `1` + strings.Repeat(`}`, 21), "", "deep"},
		{"too many", `{"a":[` + strings.Repeat("1,", 10_000) + `1]}`, "", "more than"},
		{"too large", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, "", "bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d doc
			err := strictjson.Decode([]byte(tt.data), &d)
			e, ok := errors.AsType[*strictjson.Error](err)
			if !ok {
				t.Fatalf("err = %v, want an *Error", err)
			}
			if tt.field != "" && e.Field != tt.field || !strings.Contains(e.Reason, tt.reason) {
				t.Errorf("got %q %q, want %q …%s…", e.Field, e.Reason, tt.field, tt.reason)
			}
		})
	}
}

// What encoding/json writes for a struct, Decode reads back; it never accepts what encoding/json
// refuses.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"name":"n","paths":[],"inner":{"size":3,"etag":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d doc
		if strictjson.Decode(data, &d) != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted what is not JSON: %q", data)
		}
		again, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var e doc
		if err := strictjson.Decode(again, &e); err != nil {
			t.Fatalf("refused its own output %s: %v", again, err)
		}
	})
}
