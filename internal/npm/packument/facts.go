package packument

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// artifacts are those of the versions that were read, in their order.
func (s *scan) artifacts() []registry.Artifact {
	artifacts := make([]registry.Artifact, len(s.rawVersions))
	digests := make([]registry.Digest, len(s.kinds))
	sums := append(make([]byte, 0, len(s.sums)), s.sums...)
	for i, kind := range s.kinds {
		size := algorithms[kind].size
		digests[i] = registry.Digest{Algorithm: algorithms[kind].name, Sum: sums[:size:size]}
		sums = sums[size:]
	}
	from := uint32(0)
	for i := range s.rawVersions {
		r := &s.rawVersions[i]
		to := r.digests
		artifacts[i] = registry.Artifact{File: r.file, URL: r.address, Digests: digests[from:to:to]}
		if of := digests[from:to]; len(of) > 1 && !slices.IsSortedFunc(of, strongerFirst) {
			slices.SortStableFunc(of, strongerFirst)
		}
		from = to
	}
	return artifacts
}

// finish makes the document of what was read, and drops the versions that cannot be served.
func (s *scan) finish() {
	d, artifacts := s.doc, s.artifacts()
	d.versions, d.entries = make([]registry.Version, len(s.rawVersions)), make([]entry, len(s.rawVersions))
	d.spans = append(make([]listing.Span, 0, len(s.spans)), s.spans...)
	d.names.Grow(len(s.rawVersions))
	for i := range s.rawVersions {
		r := &s.rawVersions[i]
		d.entries[i] = r.entry
		d.versions[i] = registry.Version{
			Version: r.version, InstallScripts: r.scripts, License: r.license, Artifacts: artifacts[i : i+1 : i+1],
		}
		if first, again := d.names.AddHash(r.hash, d.version); again {
			s.spoil(first)
			s.spoil(i)
		}
	}
	s.join()
	if s.bad > 0 {
		s.drop()
		d.entries, d.versions = listing.Fit(d.entries), listing.Fit(d.versions)
	}
	d.top = listing.Fit(d.top)
}

// file is the name of a version's artifact. Mostly the address ends in it: then it takes no memory
// of its own.
func (s *scan) file(version, address string) string {
	if rest, ok := strings.CutSuffix(address, ".tgz"); ok {
		if rest, ok = strings.CutSuffix(rest, version); ok && strings.HasSuffix(rest, s.prefix) {
			return address[len(rest)-len(s.prefix):]
		}
	}
	return s.prefix + version + ".tgz"
}

// drop removes the versions that cannot be served.
func (s *scan) drop() {
	d, kept := s.doc, 0
	d.names = listing.Names{}
	for i := range d.versions {
		if d.entries[i].flags&flagBad != 0 {
			continue
		}
		d.versions[kept], d.entries[kept] = d.versions[i], d.entries[i]
		d.names.Add(d.versions[kept].Version, d.version)
		kept++
	}
	clear(d.versions[kept:])
	d.dropped = s.bad
	d.versions, d.entries = d.versions[:kept], d.entries[:kept]
}

// join gives each version its member of "time". A version that has two is spoiled: a reader of the
// last one and a reader of the first one would disagree about its age.
func (s *scan) join() {
	d, next := s.doc, 0 // times come in the order of the versions, mostly
	for _, t := range s.times {
		i := next
		if i >= len(d.versions) || d.versions[i].Version != t.name {
			i = d.Lookup(t.name)
		}
		if i >= 0 {
			if !d.entries[i].published.Empty() {
				s.spoil(i)
			}
			d.entries[i].published, d.versions[i].Published = t.span, t.at
			next = i + 1
			continue
		}
		switch t.name {
		case "modified":
			if t.text {
				d.changed = stamp{raw: d.text[t.start:t.span.End], at: t.at}
			}
		case "created", "unpublished":
			d.stamps = append(d.stamps, t.span)
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

// digests reads "integrity" (W3C Subresource Integrity: algorithm-base64, separated by white space,
// options after "?") and "shasum" (SHA-1 in hex). Values that are malformed or unknown are left
// out.
func (s *scratch) digests(integrity, shasum string) {
	if !s.sri(integrity) { // the common case is one plain value
		for value := range strings.FieldsSeq(integrity) {
			value, _, _ = strings.Cut(value, "?")
			s.sri(value)
		}
	}
	const sha1 = 3
	if size := algorithms[sha1].size; len(shasum) == 2*size {
		var encoded [40]byte
		copy(encoded[:], shasum)
		sums, err := hex.AppendDecode(s.sums, encoded[:])
		s.sum(sha1, sums, err)
	}
}

func strongerFirst(x, y registry.Digest) int { return len(y.Sum) - len(x.Sum) }

// sri adds one algorithm-base64 value and reports whether it was one.
func (s *scratch) sri(value string) bool {
	for i := range algorithms {
		encoded, ok := strings.CutPrefix(value, algorithms[i].prefix)
		if !ok {
			continue
		}
		if len(encoded) != strictBase64.EncodedLen(algorithms[i].size) {
			return false
		}
		var buf [88]byte
		sums, err := strictBase64.AppendDecode(s.sums, buf[:copy(buf[:], encoded)])
		return s.sum(i, sums, err)
	}
	return false
}

// sum adds what was decoded behind the sums if it is as long as the algorithm's digests, and
// reports whether it was.
func (s *scratch) sum(algorithm int, sums []byte, err error) bool {
	if err != nil || len(sums) != len(s.sums)+algorithms[algorithm].size {
		return false
	}
	s.sums, s.kinds = sums, append(s.kinds, uint8(algorithm))
	return true
}

// parseTime reads a time of the "time" object: RFC 3339, in any offset and with any fraction.
// Anything else is unknown, the zero time.
func parseTime(value string) time.Time {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
