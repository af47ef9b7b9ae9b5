package registry

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"
)

// Clone returns facts that share no memory with the document that they come from, and the bytes of
// memory that they take.
func (v Version) Clone() (own Version, size int64) {
	size = int64(unsafe.Sizeof(v))
	text := func(s string) string {
		size += int64(len(s))
		return strings.Clone(s)
	}
	digests := func(list []Digest) []Digest {
		list = slices.Clone(list)
		for i := range list {
			size += int64(unsafe.Sizeof(list[i])) + int64(len(list[i].Sum))
			list[i].Sum = bytes.Clone(list[i].Sum)
		}
		return list
	}
	v.Version, v.License = text(v.Version), text(v.License)
	v.Artifacts = slices.Clone(v.Artifacts)
	for i := range v.Artifacts {
		a := &v.Artifacts[i]
		size += int64(unsafe.Sizeof(*a))
		a.File, a.URL, a.Digests = text(a.File), text(a.URL), digests(a.Digests)
		if a.Companion != nil {
			size += int64(unsafe.Sizeof(*a.Companion))
			a.Companion = &Companion{Digests: digests(a.Companion.Digests)}
		}
	}
	return v, size
}
