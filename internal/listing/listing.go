// Package listing is the span engine under every ecosystem's listings: one strict scan of a JSON
// document, facts and spans kept instead of decoded values, and views of the document assembled by
// splicing those spans.
//
// The package knows JSON and nothing about any registry: which members matter, and what they mean,
// is said by the ecosystem's package, which drives a [Scanner]. Everything that the driver does not
// enter is validated and skipped, so unknown fields reach a rendering byte for byte, and nothing is
// ever decoded into maps.
package listing

import (
	"fmt"
	"unsafe"
)

// MaxBytes is the longest document that can be scanned, since a span has 32 bits. What may come
// from an upstream is bounded below that, by who reads it.
const MaxBytes = 1 << 30

// MaxDepth bounds how deeply arrays and objects may be nested. It is at most 64: the scanner keeps
// its stack in one word.
const MaxDepth = 64

// Span is a half-open range of bytes of a document. The zero Span is empty and stands for "absent".
type Span struct{ Start, End uint32 }

// Len is the number of bytes.
func (s Span) Len() int { return int(s.End - s.Start) }

// Empty reports whether the span holds no byte.
func (s Span) Empty() bool { return s.End == s.Start }

// Of returns the bytes that the span covers in doc.
func (s Span) Of(doc string) string { return doc[s.Start:s.End] }

// Error says why and where a document was refused.
type Error struct {
	// Offset is the position of the offending byte.
	Offset int
	// Reason says what is wrong, in words.
	Reason string
	// Limit is set when the document may be good JSON but breaks a bound.
	Limit bool
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }

// text views bytes as a string without copying them. It is sound as long as nobody writes to doc
// afterwards, which [NewScanner] demands of its caller.
func text(doc []byte) string { return unsafe.String(unsafe.SliceData(doc), len(doc)) }
