package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/documents"
)

func TestEncodingFor(t *testing.T) {
	for field, want := range map[string]documents.Encoding{
		"":                        documents.Identity,
		"gzip":                    documents.Gzip,
		"x-gzip":                  documents.Gzip,
		"GZIP;Q=0.5":              documents.Gzip,
		"gzip, deflate":           documents.Gzip, // npm
		"gzip,deflate":            documents.Gzip,
		"gzip, br":                documents.Gzip, // uv
		"gzip, deflate, br, zstd": documents.Zstd, // bun
		"zstd":                    documents.Zstd,
		"ZSTD ; q=0.001":          documents.Zstd,
		"zstd;q=0":                documents.Identity,
		"zstd;q=0, gzip":          documents.Gzip,
		"zstd;q=0.5, gzip":        documents.Gzip,
		"zstd;q=0.5, gzip;q=0.5":  documents.Zstd,
		"gzip;q=0.9, zstd":        documents.Zstd,
		"zstd, *;q=0":             documents.Zstd,
		"zstd;q=0.5, *":           documents.Gzip,
		// never zstd for one that does not name it
		"*":                                documents.Gzip,
		"*;q=0":                            documents.Identity,
		"*;q=0, gzip":                      documents.Gzip,
		"gzip;q=0":                         documents.Identity,
		"gzip;q=0, *":                      documents.Identity,
		"gzip;q=0, zstd":                   documents.Zstd,
		"identity":                         documents.Identity,
		"identity, gzip":                   documents.Gzip,
		"identity;q=0.5, gzip;q=0.4":       documents.Identity,
		"identity;q=0.5, zstd;q=0.5":       documents.Zstd,
		"identity, gzip;q=0.9, zstd;q=0.9": documents.Identity,
		"identity;q=0, gzip;q=0.1":         documents.Gzip,
		"identity;q=0, *;q=0.1":            documents.Gzip,
		"identity;q=0":                     documents.Identity, // there is nothing that it takes
		"br":                               documents.Identity,
		"gzip;q=2":                         documents.Identity,
		"gzip;q=nan":                       documents.Identity,
		"zstd;q=, gzip":                    documents.Gzip,
		", ,gzip,,":                        documents.Gzip,
	} {
		if got := encodingFor(http.Header{"Accept-Encoding": {field}}); got != want {
			t.Errorf("%q: %q, want %q", field, got, want)
		}
		if lines := strings.Split(field, ","); encodingFor(http.Header{"Accept-Encoding": lines}) != want {
			t.Errorf("%q in lines of their own: not %q", field, want)
		}
	}
	if got := encodingFor(http.Header{}); got != documents.Identity {
		t.Errorf("without the field: %q", got)
	}
}
