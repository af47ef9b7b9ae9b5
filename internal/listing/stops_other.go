//go:build !amd64 || purego

package listing

import "unsafe"

// mark sets a bit in marks for each byte of doc that is a quote, a backslash or a control character, for as many as there are bits, in whole blocks.
// It reports whether there are bytes beyond ASCII.
func mark(marks []byte, doc string) (beyond bool) {
	return markWords(marks, unsafe.Slice(unsafe.StringData(doc), len(doc)))
}
