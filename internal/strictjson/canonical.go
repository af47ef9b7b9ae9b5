package strictjson

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/gowebpki/jcs"
)

// Canonical is the RFC 8785 form of v, which may be raw JSON or any value that encoding/json can
// write.
func Canonical(v any) ([]byte, error) {
	raw, ok := v.(json.RawMessage)
	if !ok {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return nil, wrong("", "cannot be written as JSON: %v", err)
		}
		raw = b.Bytes()
	}
	out, err := jcs.Transform(raw)
	if err != nil {
		return nil, wrong("", "has no canonical form: %v", err)
	}
	return out, nil
}

// Digest is "sha256:" and the hex SHA-256 of v's canonical form.
func Digest(v any) (string, error) {
	c, err := Canonical(v)
	if err != nil {
		return "", err
	}
	return DigestBytes(c), nil
}

// DigestBytes is "sha256:" and the hex SHA-256 of the bytes as they are; URL digests are made this
// way.
func DigestBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// IsDigest reports whether s has the form that [Digest] gives.
func IsDigest(s string) bool {
	rest, ok := strings.CutPrefix(s, "sha256:")
	return ok && IsHex(rest, 64)
}

// IsHex reports whether s is n lower-case hex digits.
func IsHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }
