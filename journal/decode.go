package journal

import "github.com/ecluse-gate/ecluse/internal/strictjson"

// The bounds on every document that is read (S96).
const (
	MaxBytes = strictjson.MaxBytes
	MaxDepth = strictjson.MaxDepth
	MaxNodes = strictjson.MaxNodes
)

// DecodeError says where a document breaks the rules. Neither of its fields holds a value of the document, only member names, clipped.
type DecodeError = strictjson.Error

// DecodeExact reads a record that only this program writes: every member of v must be there, as this program would
// write it, and nothing else.
func DecodeExact(data []byte, v any) error {
	canonical, err := strictjson.Check(data)
	if err != nil {
		return err
	}
	return strictjson.Exact(canonical, v)
}

// Canonical is the RFC 8785 form of v, which may be raw JSON or any value that encoding/json can write.
func Canonical(v any) ([]byte, error) { return strictjson.Canonical(v) }

// Digest is "sha256:" and the hex SHA-256 of v's canonical form.
func Digest(v any) (string, error) { return strictjson.Digest(v) }

// DigestBytes is "sha256:" and the hex SHA-256 of the bytes as they are; URL digests are made this way.
func DigestBytes(b []byte) string { return strictjson.DigestBytes(b) }

// IsDigest tells whether s has the form that [Digest] gives.
func IsDigest(s string) bool { return strictjson.IsDigest(s) }
