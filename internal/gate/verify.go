package gate

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // what old packages advertise; floors are a rule's business
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"io"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// artifactHeader is what a file's answer keeps of the upstream's: no encodings, no cookies, nothing that would let another cache
// answer past the rules. Intermediaries must not touch the bytes (C30).
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

// verify checks a body against the strongest digest that the listing advertises. The last piece is held back until the whole is
// known to be right, so that a client never holds a complete bad file. Without a known digest the body passes as it is.
func verify(body io.ReadCloser, digests []registry.Digest) io.ReadCloser {
	for _, d := range digests {
		if h := newHash(d.Algorithm); h != nil && len(d.Sum) == h.Size() {
			return &verifier{ReadCloser: body, hash: h, want: d.Sum}
		}
	}
	return body
}

func newHash(algorithm string) hash.Hash {
	switch algorithm {
	case "sha512":
		return sha512.New()
	case "sha384":
		return sha512.New384()
	case "sha256":
		return sha256.New()
	case "sha1":
		return sha1.New() //nolint:gosec // see above
	}
	return nil
}

type verifier struct {
	io.ReadCloser
	hash  hash.Hash
	want  []byte
	ready []byte    // may be handed out
	held  []byte    // the newest piece, not yet
	bufs  [2][]byte // ready and held lie in these, by turns
	turn  int
	err   error
}

// Read hands out all pieces but the newest; the newest follows when the digest is right.
func (v *verifier) Read(p []byte) (int, error) {
	for len(v.ready) == 0 {
		if v.err != nil {
			return 0, v.err
		}
		v.advance()
	}
	n := copy(p, v.ready)
	v.ready = v.ready[n:]
	return n, nil
}

func (v *verifier) advance() {
	if v.bufs[v.turn] == nil {
		v.bufs[v.turn] = make([]byte, 32<<10)
	}
	n, err := io.ReadFull(v.ReadCloser, v.bufs[v.turn])
	v.hash.Write(v.bufs[v.turn][:n])
	if err == io.ErrUnexpectedEOF && n > 0 || err == io.EOF { //nolint:errorlint // ReadFull's own ends
		err = io.EOF
	}
	v.ready, v.held = v.held, v.bufs[v.turn][:n]
	v.turn = 1 - v.turn
	if err == nil {
		return
	}
	v.err = err
	if err != io.EOF { //nolint:errorlint // see above
		return
	}
	if err := matchDigest(v.hash, v.want); err != nil {
		v.err = err
		return
	}
	v.ready = append(v.ready[:len(v.ready):len(v.ready)], v.held...)
}

// matchDigest judges a whole file.
func matchDigest(h hash.Hash, want []byte) error {
	if bytes.Equal(h.Sum(nil), want) {
		return nil
	}
	return &BadUpstream{Reason: "the file is not the one that the listing names: its digest differs"}
}
