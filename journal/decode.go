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

// Decode reads one JSON object strictly into v, a pointer to a struct or map: at most [MaxBytes], [MaxDepth] levels and [MaxNodes] values,
// valid UTF-8, no duplicate member, no number that a double cannot hold, nothing after the object; no unknown member, none in another
// spelling of upper and lower case, no null where v has no room for it. Every error is a [*DecodeError].
func Decode(data []byte, v any) error { return strictjson.Decode(data, v) }

// DecodeExact is [Decode] for records that only this program writes: every member of v must be there, as this program would write it.
func DecodeExact(data []byte, v any) error { return strictjson.DecodeExact(data, v) }

// Canonical is the RFC 8785 form of v, which may be raw JSON or any value that encoding/json can write.
func Canonical(v any) ([]byte, error) { return strictjson.Canonical(v) }

// Digest is "sha256:" and the hex SHA-256 of v's canonical form.
func Digest(v any) (string, error) { return strictjson.Digest(v) }

// DigestBytes is "sha256:" and the hex SHA-256 of the bytes as they are; URL digests are made this way.
func DigestBytes(b []byte) string { return strictjson.DigestBytes(b) }

// IsDigest tells whether s has the form that [Digest] gives.
func IsDigest(s string) bool { return strictjson.IsDigest(s) }
