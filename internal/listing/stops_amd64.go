//go:build !purego

package listing

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// mark sets a bit in marks for each byte of doc that is a quote, a backslash or a control character, for as many as there are bits, in whole blocks.
// It reports whether there are bytes beyond ASCII.
func mark(marks []byte, doc string) (beyond bool) {
	if len(marks) == 0 {
		return false
	}
	doc = doc[:len(marks)*8]
	if !cpu.X86.HasAVX2 {
		return markWords(marks, unsafe.Slice(unsafe.StringData(doc), len(doc)))
	}
	return markVectors(&marks[0], unsafe.StringData(doc), len(doc)/block)
}

// markVectors is mark with AVX2, 64 bytes at a time.
//
//go:noescape
func markVectors(marks, doc *byte, blocks int) (beyond bool)
