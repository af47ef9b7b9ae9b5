package listing

import "unsafe"

// Beside is about how many bytes of memory a string takes beside the document: none if it is a part
// of it, as most are that hold no escapes.
func Beside(doc, s string) int {
	start, at := uintptr(unsafe.Pointer(unsafe.StringData(doc))), uintptr(unsafe.Pointer(unsafe.StringData(s)))
	if at >= start && at < start+uintptr(len(doc)) {
		return 0
	}
	const step = 16 // the heap rounds sizes up
	return (len(s) + step - 1) / step * step
}

// Fit gives back the room that was reserved for nothing, if it is worth it.
func Fit[T any](s []T) []T {
	if Roomy(s) {
		return append(make([]T, 0, len(s)), s...)
	}
	return s
}

// Roomy reports whether a slice has much more room than it needs.
func Roomy[T any](s []T) bool { return cap(s) > len(s)+len(s)/16 }
