package wire_test

import (
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/search/wire"
)

// S47: one object in UTF-8, no name twice, nothing after it, and bounded in depth and number.
func TestParseDocument(t *testing.T) {
	nested := func(depth int) string {
		return `{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	}
	list := func(values int) string { return `{"a":[1` + strings.Repeat(",1", values-1) + `]}` }
	for body, ok := range map[string]bool{
		`{}`:                   true,
		` {"a":[{"b":null}]} `: true,
		nested(32):             true,
		nested(33):             false,
		list(99_998):           true, // and the list, and the object
		list(99_999):           false,
		`[]`:                   false,
		`{}{}`:                 false,
		`{"a":1,"a":1}`:        false,
		`{"b":{"a":1,"a":1}}`:  false,
		"{\"a\":\"\xff\"}":     false,
		`{"a":1`:               false,
		``:                     false,
	} {
		if _, err := wire.ParseDocument([]byte(body)); (err == nil) != ok {
			t.Errorf("%.40q of %d bytes: %v", body, len(body), err)
		}
	}
	document, err := wire.ParseDocument([]byte(`{"n":1.50}`))
	if n, ok := document["n"].(interface{ String() string }); err != nil || !ok || n.String() != "1.50" {
		t.Errorf("a number is not kept as written: %v, %v", document, err)
	}
}

// S78: the error code in a body is bounded and sanitised; whatever is no code is none.
func TestErrorCode(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"code":"QuotaExceeded"}}`:                   "QuotaExceeded",
		`{"error":{"code":"a.b_c-1"}}`:                         "a.b_c-1",
		`{"error":{"code":"two words"}}`:                       "",
		`{"error":{"code":"` + strings.Repeat("x", 64) + `"}}`: strings.Repeat("x", 64),
		`{"error":{"code":"` + strings.Repeat("x", 65) + `"}}`: "",
		`{"error":{"code":7}}`:                                 "",
		`{"error":"QuotaExceeded"}`:                            "",
		`{}`:                                                   "",
		`<html>`:                                               "",
	} {
		if got := wire.ErrorCode([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
