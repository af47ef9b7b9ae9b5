package npm

import (
	"encoding/base64"
	"encoding/hex"
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
	artifacts, digests := make([]registry.Artifact, n), make([]registry.Digest, 0, 2*n)
	sums := make([]byte, 0, 84*n) // a sha512 and a sha1 each
	for i := range s.raw {
		r := &s.raw[i]
		length := len(prefix) + len(r.version) + len(".tgz")
		first := len(digests)
		digests, sums = appendDigests(digests, sums, r.integrity, r.shasum)
		artifacts[i] = registry.Artifact{File: names[:length], URL: r.address, Digests: digests[first:len(digests):len(digests)]}
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
	name string
	size int
}{{"sha512", 64}, {"sha384", 48}, {"sha256", 32}, {"sha1", 20}, {"md5", 16}}

// appendDigests reads "integrity" (W3C Subresource Integrity: space-separated algorithm-base64, options after "?") and "shasum" (hex
// SHA-1) into digests, strongest first; the raw sums go to sums. Values that are malformed or unknown are left out, and a shasum that
// repeats the integrity's own SHA-1 too.
func appendDigests(digests []registry.Digest, sums []byte, integrity, shasum string) ([]registry.Digest, []byte) {
	add := func(name string, sum []byte) {
		start := len(sums)
		sums = append(sums, sum...)
		digests = append(digests, registry.Digest{Algorithm: name, Sum: sums[start:len(sums):len(sums)]})
	}
	sha1, hexErr := hex.DecodeString(shasum)
	var buf [66]byte
	for _, a := range algorithms {
		for value := range strings.FieldsSeq(integrity) {
			encoded, ok := strings.CutPrefix(value, a.name+"-")
			if !ok {
				continue
			}
			encoded, _, _ = strings.Cut(encoded, "?")
			if len(encoded) != base64.StdEncoding.EncodedLen(a.size) {
				continue
			}
			if n, err := base64.StdEncoding.Strict().Decode(buf[:], []byte(encoded)); err == nil && n == a.size {
				add(a.name, buf[:n])
			}
		}
		if a.name == "sha1" && hexErr == nil && len(sha1) == a.size {
			add(a.name, sha1)
		}
	}
	return digests, sums
}

// parseTime reads a time of the "time" object: RFC 3339, in any offset and with any fraction. Anything else is unknown, the zero time.
func parseTime(value string) time.Time {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
