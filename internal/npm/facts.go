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

// finish joins versions and times, drops what cannot be served and completes the facts.
func (s *scan) finish() {
	s.join()
	s.facts()
	if s.bad > 0 {
		s.drop()
	}
	d := s.doc
	d.entries, d.versions, d.runs, d.top = listing.Fit(d.entries), listing.Fit(d.versions), listing.Fit(d.runs), listing.Fit(d.top)
}

// facts gives each version that this scan has read itself its artifact. What lives as long as the document is put into arrays of the right size.
func (s *scan) facts() {
	artifacts, digests := listing.Fit(s.artifacts), s.digests.fit()
	var from ends
	for i := range artifacts {
		to, a := s.ends[i], &artifacts[i]
		a.File = tail(a.URL, s.files[from.files:to.files])
		a.Digests = digests[from.digests:to.digests:to.digests]
		s.doc.versions[i].Artifacts = artifacts[i : i+1 : i+1]
		from = to
	}
}

// tail is the end of an address if it is what is wanted, as it mostly is: then it takes no memory of its own.
func tail(address string, want []byte) string {
	if at := len(address) - len(want); at >= 0 && address[at:] == string(want) {
		return address[at:]
	}
	return string(want)
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

// join gives each version its member of "time". A version that has two is spoiled: a reader of the last one and a reader of the first
// one would disagree about its age.
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

// digests are those of all versions, one after the other.
type digests struct {
	all  []registry.Digest
	sums []byte
}

// add reads "integrity" (W3C Subresource Integrity: algorithm-base64, separated by white space, options after "?") and "shasum" (SHA-1
// in hex), strongest first. Values that are malformed or unknown are left out.
func (a *digests) add(integrity, shasum string) {
	first := len(a.all)
	if !a.sri(integrity) { // the common case is one plain value
		for value := range strings.FieldsSeq(integrity) {
			value, _, _ = strings.Cut(value, "?")
			a.sri(value)
		}
	}
	const sha1 = 3
	if size := algorithms[sha1].size; len(shasum) == 2*size {
		var encoded [40]byte
		copy(encoded[:], shasum)
		sums, err := hex.AppendDecode(a.sums, encoded[:])
		a.sum(sha1, sums, err)
	}
	added := a.all[first:]
	if len(added) > 1 && !slices.IsSortedFunc(added, strongerFirst) {
		slices.SortStableFunc(added, strongerFirst)
	}
}

// fit gives the digests in arrays of the right size. When the sums have grown, the first ones still hold what was outgrown.
func (a *digests) fit() []registry.Digest {
	all := listing.Fit(a.all)
	if len(all) == 0 || !listing.Roomy(a.sums) && &all[0].Sum[0] == &a.sums[0] {
		return all
	}
	sums := make([]byte, 0, len(a.sums))
	for i := range all {
		start := len(sums)
		sums = append(sums, all[i].Sum...)
		all[i].Sum = sums[start:len(sums):len(sums)]
	}
	return all
}

func strongerFirst(x, y registry.Digest) int { return len(y.Sum) - len(x.Sum) }

// sri adds one algorithm-base64 value and reports whether it was one.
func (a *digests) sri(value string) bool {
	for i := range algorithms {
		encoded, ok := strings.CutPrefix(value, algorithms[i].prefix)
		if !ok {
			continue
		}
		if len(encoded) != strictBase64.EncodedLen(algorithms[i].size) {
			return false
		}
		var buf [88]byte
		sums, err := strictBase64.AppendDecode(a.sums, buf[:copy(buf[:], encoded)])
		return a.sum(i, sums, err)
	}
	return false
}

// sum adds what was decoded behind a.sums if it is as long as the algorithm's digests, and reports whether it was.
func (a *digests) sum(algorithm int, sums []byte, err error) bool {
	start := len(a.sums)
	if err != nil || len(sums) != start+algorithms[algorithm].size {
		return false
	}
	a.sums = sums
	a.all = append(a.all, registry.Digest{Algorithm: algorithms[algorithm].name, Sum: sums[start:len(sums):len(sums)]})
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
