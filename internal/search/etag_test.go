package search_test

import (
	"testing"

	"github.com/ecluse-gate/ecluse/internal/search"
)

// S53: all ETag evidence must agree, and none may be blank.
func TestETagEvidence(t *testing.T) {
	b := newBed(t)
	b.create()
	for _, c := range []struct{ name, act, value, code string }{
		{"body and header", `{}`, `"0x8DEC1A5E0000001"`, ""},
		{"header only", `{"body":{"name":"manuals"},"headers":{"ETag":"\"h\""}}`, `"h"`, ""},
		{"body only", `{"body":{"@odata.etag":"\"b\""}}`, `"b"`, ""},
		{"body without quotes", `{"body":{"@odata.etag":"x"},"headers":{"ETag":"\"x\""}}`, `"x"`, ""},
		{"two equal headers", `{"body":{},"headers":{"ETag":["\"x\"","\"x\""]}}`, `"x"`, ""},
		{"none", `{"body":{"@odata.etag":null}}`, "", ""},
		{"body against header", `{"headers":{"ETag":"\"other\""}}`, "", search.CodeETagConflict},
		{"two headers", `{"headers":{"ETag":["\"0x8DEC1A5E0000001\"","\"other\""]}}`, "", search.CodeETagConflict},
		{"weak against strong", `{"body":{"@odata.etag":"\"x\""},"headers":{"ETag":"W/\"x\""}}`, "", search.CodeETagConflict},
		{"blank header", `{"headers":{"ETag":""}}`, "", search.CodeETagInvalid},
		{"blank quoted header", `{"body":{},"headers":{"ETag":"\" \""}}`, "", search.CodeETagInvalid},
		{"blank body", `{"body":{"@odata.etag":""},"headers":{"ETag":"\"x\""}}`, "", search.CodeETagInvalid},
		{"body no text", `{"body":{"@odata.etag":7},"headers":{"ETag":"\"7\""}}`, "", search.CodeETagInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.script(`[{"match":{"method":"GET"},"act":` + c.act + `}]`)
			got, err := b.client.Get(t.Context(), search.KnowledgeSources, "manuals", search.Bounds{})
			if err != nil {
				t.Fatal(err)
			}
			value, err := got.ETags.Value()
			if c.code != "" {
				wantCode(t, err, c.code)
				return
			}
			if err != nil || value != c.value {
				t.Errorf("value %q, %v, want %q", value, err, c.value)
			}
		})
	}
}
