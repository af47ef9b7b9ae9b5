package files

import (
	"net/http"
	"net/textproto"
	"strings"
)

// artifactHeader is what a file's answer keeps of the upstream's: no encodings, no cookies, nothing
// that would let another cache answer past the rules. Intermediaries must not touch the bytes
// (C30).
func artifactHeader(resp *http.Response) http.Header {
	h := http.Header{}
	for _, name := range []string{"Content-Length", "Content-Type", "Etag", "Last-Modified"} {
		if v := resp.Header.Get(name); v != "" {
			h.Set(name, v)
		}
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/octet-stream")
	}
	h.Set("Cache-Control", "private, no-transform")
	return h
}

// hopByHop are the fields that concern one connection only (RFC 9110 section 7.6.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// relayHeader is an upstream's header without its hop-by-hop fields (R50).
func relayHeader(from http.Header) http.Header {
	h := from.Clone()
	for _, line := range h.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
	return h
}
