//go:build !amd64 || purego

package listing

import "unsafe"

// mark sets a bit in marks for each quote, backslash and control character of doc. len(marks)*8
// bytes of doc are read, a multiple of block. It reports whether any of them is not ASCII.
func mark(marks []byte, doc string) (nonASCII bool) {
	return markWords(marks, unsafe.Slice(unsafe.StringData(doc), len(doc)))
}
