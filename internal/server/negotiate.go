package server

import (
	"net/http"
	"strconv"
	"strings"
)

// acceptsGzip reports whether a client takes gzip (RFC 9110 section 12.5.3): named, or covered by "*", with a quality above zero.
func acceptsGzip(h http.Header) bool {
	best, star := -1.0, -1.0
	for _, line := range h.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(part, ";")
			q := quality(params)
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "gzip", "x-gzip":
				best = max(best, q)
			case "*":
				star = max(star, q)
			}
		}
	}
	if best < 0 {
		best = star
	}
	return best > 0
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

// matches reports whether an If-None-Match field names the entity tag, by the weak comparison of RFC 9110 section 13.1.2.
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
