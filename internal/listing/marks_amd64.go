//go:build !purego

package listing

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// mark sets a bit in marks for each quote, backslash and control character of doc. len(marks)*8
// bytes of doc are read, a multiple of block. It reports whether any of them is not ASCII.
func mark(marks []byte, doc string) (nonASCII bool) {
	if len(marks) == 0 {
		return false
	}
	doc = doc[:len(marks)*8]
	if !cpu.X86.HasAVX2 {
		return markWords(marks, unsafe.Slice(unsafe.StringData(doc), len(doc)))
	}
	return markVectors(&marks[0], unsafe.StringData(doc), len(doc)/block)
}

// markVectors is mark in AVX2 instructions, one block at a time; blocks is at least 1.
//
//go:noescape
func markVectors(marks, doc *byte, blocks int) (nonASCII bool)
