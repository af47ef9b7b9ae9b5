package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/gate"
)

func TestEncodingFor(t *testing.T) {
	for field, want := range map[string]gate.Encoding{
		"":                                 gate.Identity,
		"gzip":                             gate.Gzip,
		"x-gzip":                           gate.Gzip,
		"GZIP;Q=0.5":                       gate.Gzip,
		"gzip, deflate":                    gate.Gzip, // npm
		"gzip,deflate":                     gate.Gzip,
		"gzip, br":                         gate.Gzip, // uv
		"gzip, deflate, br, zstd":          gate.Zstd, // bun
		"zstd":                             gate.Zstd,
		"ZSTD ; q=0.001":                   gate.Zstd,
		"zstd;q=0":                         gate.Identity,
		"zstd;q=0, gzip":                   gate.Gzip,
		"zstd;q=0.5, gzip":                 gate.Gzip,
		"zstd;q=0.5, gzip;q=0.5":           gate.Zstd,
		"gzip;q=0.9, zstd":                 gate.Zstd,
		"zstd, *;q=0":                      gate.Zstd,
		"zstd;q=0.5, *":                    gate.Gzip,
		"*":                                gate.Gzip, // never zstd for one that does not name it
		"*;q=0":                            gate.Identity,
		"*;q=0, gzip":                      gate.Gzip,
		"gzip;q=0":                         gate.Identity,
		"gzip;q=0, *":                      gate.Identity,
		"gzip;q=0, zstd":                   gate.Zstd,
		"identity":                         gate.Identity,
		"identity, gzip":                   gate.Gzip,
		"identity;q=0.5, gzip;q=0.4":       gate.Identity,
		"identity;q=0.5, zstd;q=0.5":       gate.Zstd,
		"identity, gzip;q=0.9, zstd;q=0.9": gate.Identity,
		"identity;q=0, gzip;q=0.1":         gate.Gzip,
		"identity;q=0, *;q=0.1":            gate.Gzip,
		"identity;q=0":                     gate.Identity, // there is nothing that it takes
		"br":                               gate.Identity,
		"gzip;q=2":                         gate.Identity,
		"gzip;q=nan":                       gate.Identity,
		"zstd;q=, gzip":                    gate.Gzip,
		", ,gzip,,":                        gate.Gzip,
	} {
		if got := encodingFor(http.Header{"Accept-Encoding": {field}}); got != want {
			t.Errorf("%q: %q, want %q", field, got, want)
		}
		if lines := strings.Split(field, ","); encodingFor(http.Header{"Accept-Encoding": lines}) != want {
			t.Errorf("%q in lines of their own: not %q", field, want)
		}
	}
	if got := encodingFor(http.Header{}); got != gate.Identity {
		t.Errorf("without the field: %q", got)
	}
}
