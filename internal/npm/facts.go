package npm

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// finish joins versions and times, drops what cannot be served and builds the facts.
func (s *scan) finish() {
	version := func(i int) string { return s.raw[i].version }
	names := listing.IndexNames(len(s.raw), version, func(first, again int) {
		s.raw[first].bad, s.raw[again].bad = true, true
	})
	published := s.join(names, version)
	kept := 0
	for i := range s.raw {
		if s.raw[i].bad {
			continue
		}
		s.raw[kept], published[kept] = s.raw[i], published[i]
		kept++
	}
	s.doc.dropped = len(s.raw) - kept
	s.raw = s.raw[:kept]
	if s.doc.dropped > 0 {
		names = listing.IndexNames(kept, version, func(_, _ int) {})
	}
	s.doc.names = names
	s.facts(published)
}

// join gives each version its member of "time". A version that has two is marked bad: a reader of the last one and a reader of the
// first one would disagree about its age.
func (s *scan) join(names listing.Names, version func(int) string) []time.Time {
	published := make([]time.Time, len(s.raw))
	var created, unpublished listing.Span
	for _, t := range s.times {
		if i := names.Lookup(t.name, version); i >= 0 {
			r := &s.raw[i]
			r.bad = r.bad || !r.published.Empty()
			r.published = t.span
			published[i] = parseTime(t.value)
			continue
		}
		switch t.name {
		case "modified":
			if t.text {
				s.doc.changed = stamp{raw: s.doc.text[t.start:t.span.End], at: parseTime(t.value)}
			}
		case "created":
			created = t.span
		case "unpublished":
			unpublished = t.span
		}
	}
	for _, stay := range []listing.Span{created, unpublished} {
		if !stay.Empty() {
			s.doc.stamps = append(s.doc.stamps, stay)
		}
	}
	return published
}

// facts builds what rules and the artifact route read, in a few large allocations.
func (s *scan) facts(published []time.Time) {
	n, size := len(s.raw), 0
	prefix := base(s.name) + "-"
	for i := range s.raw {
		size += len(prefix) + len(s.raw[i].version) + len(".tgz")
	}
	var files strings.Builder
	files.Grow(size)
	for i := range s.raw {
		files.WriteString(prefix)
		files.WriteString(s.raw[i].version)
		files.WriteString(".tgz")
	}
	names := files.String()
	d := s.doc
	d.versions, d.entries = make([]registry.Version, n), make([]entry, n)
	artifacts := make([]registry.Artifact, n)
	all := sums{digests: make([]registry.Digest, 0, 2*n), bytes: make([]byte, 0, 84*n)} // a sha512 and a sha1 each
	for i := range s.raw {
		r := &s.raw[i]
		length := len(prefix) + len(r.version) + len(".tgz")
		artifacts[i] = registry.Artifact{File: names[:length], URL: r.address, Digests: all.add(r.integrity, r.shasum)}
		names = names[length:]
		d.entries[i] = r.entry
		d.versions[i] = registry.Version{
			Version: r.version, Published: published[i], InstallScripts: r.flags&flagScripts != 0,
			Artifacts: artifacts[i : i+1 : i+1],
		}
	}
}

// algorithms are the digests that npm advertises, strongest first.
var algorithms = [...]struct {
	name, prefix string
	size         int
}{{"sha512", "sha512-", 64}, {"sha384", "sha384-", 48}, {"sha256", "sha256-", 32}, {"sha1", "sha1-", 20}, {"md5", "md5-", 16}}

// strictBase64 refuses encodings of which there is more than one for the same bytes.
var strictBase64 = base64.StdEncoding.Strict()

// sums keeps the digests of all versions: a few large arrays instead of many small ones.
type sums struct {
	digests []registry.Digest
	bytes   []byte
}

// add reads "integrity" (W3C Subresource Integrity: algorithm-base64, separated by white space, options after "?") and "shasum" (SHA-1
// in hex) and returns the digests, strongest first. Values that are malformed or unknown are left out.
func (a *sums) add(integrity, shasum string) []registry.Digest {
	first := len(a.digests)
	if !a.sri(integrity) { // the common case is one plain value
		for value := range strings.FieldsSeq(integrity) {
			value, _, _ = strings.Cut(value, "?")
			a.sri(value)
		}
	}
	if len(shasum) == 2*20 {
		var encoded [2 * 20]byte
		copy(encoded[:], shasum)
		a.sum(3, func(dst []byte) ([]byte, error) { return hex.AppendDecode(dst, encoded[:]) })
	}
	added := a.digests[first:len(a.digests):len(a.digests)]
	if len(added) > 1 {
		slices.SortStableFunc(added, func(x, y registry.Digest) int { return len(y.Sum) - len(x.Sum) })
	}
	return added
}

// sri adds one algorithm-base64 value and reports whether it was one.
func (a *sums) sri(value string) bool {
	for i, algorithm := range algorithms {
		encoded, ok := strings.CutPrefix(value, algorithm.prefix)
		if !ok {
			continue
		}
		var buf [88]byte
		if len(encoded) != strictBase64.EncodedLen(algorithm.size) {
			return false
		}
		src := buf[:copy(buf[:], encoded)]
		return a.sum(i, func(dst []byte) ([]byte, error) { return strictBase64.AppendDecode(dst, src) })
	}
	return false
}

// sum adds a digest if decoding gives as many bytes as the algorithm has, and reports whether it did.
func (a *sums) sum(algorithm int, decode func(dst []byte) ([]byte, error)) bool {
	start, size := len(a.bytes), algorithms[algorithm].size
	out, err := decode(a.bytes)
	if err != nil || len(out) != start+size {
		return false
	}
	a.bytes = out
	a.digests = append(a.digests, registry.Digest{Algorithm: algorithms[algorithm].name, Sum: out[start:len(out):len(out)]})
	return true
}

// parseTime reads a time of the "time" object: RFC 3339, in any offset and with any fraction. Anything else is unknown, the zero time.
func parseTime(value string) time.Time {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
