package server

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/documents"
)

// encodingFor is the encoding that a client likes best of those that a listing has (RFC 9110
// section 12.5.3). Where it likes two equally, the smaller wins: Zstandard, then gzip, then none.
// Zstandard is for clients that name it; "*" may come from one that only wants to say that it does
// not care. One that refuses everything, plain bodies too, gets the plain one.
func encodingFor(h http.Header) documents.Encoding {
	const unsaid = -1
	zstd, gzip, plain, star := float64(unsaid), float64(unsaid), float64(unsaid), float64(unsaid)
	for _, line := range h.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(part, ";")
			q := quality(params)
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "zstd":
				zstd = max(zstd, q)
			case "gzip", "x-gzip":
				gzip = max(gzip, q)
			case "identity":
				plain = max(plain, q)
			case "*":
				star = max(star, q)
			}
		}
	}
	if gzip == unsaid {
		gzip = star
	}
	if plain == unsaid {
		plain = star
	}
	switch {
	case zstd > 0 && zstd >= gzip && zstd >= plain:
		return documents.Zstd
	case gzip > 0 && gzip >= plain:
		return documents.Gzip
	}
	return documents.Identity
}

func quality(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		if v, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(p)), "q="); ok {
			q, err := strconv.ParseFloat(v, 64)
			if err != nil || q < 0 || q > 1 {
				return 0
			}
			return q
		}
	}
	return 1
}

// matches reports whether an If-None-Match field names the entity tag, by the weak comparison of
// RFC 9110 section 13.1.2.
func matches(h http.Header, etag string) bool {
	for _, line := range h.Values("If-None-Match") {
		if strings.TrimSpace(line) == "*" {
			return true
		}
		for rest := line; rest != ""; {
			rest = strings.TrimLeft(rest, " \t,")
			rest = strings.TrimPrefix(rest, "W/")
			if !strings.HasPrefix(rest, `"`) {
				break
			}
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				break
			}
			if rest[:end+2] == etag {
				return true
			}
			rest = rest[end+2:]
		}
	}
	return false
}
