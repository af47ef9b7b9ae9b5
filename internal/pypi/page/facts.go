package page

import (
	"encoding/json"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// finish drops what cannot be served and builds the facts.
func (s *scan) finish() {
	s.releases = make(map[string]uint32, 64)
	s.listReleases()
	placed := s.place()
	var names listing.Names
	var at []int // the files that names has
	for i := range s.raw {
		if s.raw[i].bad {
			continue
		}
		first, again := names.Add(s.raw[i].file, func(i int) string { return s.raw[at[i]].file })
		if at = append(at, i); again {
			distinguish(&s.raw[at[first]], &s.raw[i])
		}
	}
	kept := 0
	for i := range s.raw {
		if !s.raw[i].bad {
			s.raw[kept], placed[kept] = s.raw[i], placed[i]
			kept++
		}
	}
	if dropped := len(s.raw) - kept; dropped > 0 {
		s.doc.dropped += dropped
		s.raw = s.raw[:kept]
		names = listing.Names{}
		for i := range s.raw {
			names.Add(s.raw[i].file, func(i int) string { return s.raw[i].file })
		}
	}
	s.doc.names = names
	s.facts(placed)
}

// place is what a file's name says of it.
type place struct{ version, kind string }

// place reads the names of all files (C68) and gives each its release.
func (s *scan) place() []place {
	placed := make([]place, len(s.raw))
	for i := range s.raw {
		r := &s.raw[i]
		version, kind, ok := naming.VersionOfFile(s.doc.name, r.file)
		if r.bad = r.bad || !ok; r.bad {
			continue
		}
		placed[i] = place{version, kind}
		if i > 0 && placed[i-1].version == version { // files of a release come together, mostly
			placed[i].version, r.release = placed[i-1].version, s.raw[i-1].release
		} else {
			r.release = s.releaseOf(version)
		}
	}
	return placed
}

// distinguish looks at a file that is there a second time. When both say the same of its bytes and
// its age, the first one stays; else neither does, because readers of the first one and of the last
// one would disagree.
func distinguish(first, again *rawFile) {
	known := first.address == again.address || len(first.digests) > 0 && len(again.digests) > 0
	if !known || registry.Differ(first.digests, again.digests) || !first.published.Equal(again.published) {
		first.bad = true
	}
	again.bad = true
}

// listReleases gives the releases of the page's own list their numbers.
func (s *scan) listReleases() {
	for _, quoted := range s.listed {
		var spelled string
		if err := json.Unmarshal([]byte(quoted), &spelled); err != nil || spelled == "" || len(spelled) > naming.MaxVersion {
			continue
		}
		if key := naming.EqualKey(spelled); !s.released(key) {
			s.addRelease(key, quoted)
		}
	}
}

func (s *scan) released(key string) bool {
	_, ok := s.releases[key]
	return ok
}

func (s *scan) addRelease(key, quoted string) {
	s.releases[key] = uint32(len(s.doc.releases))
	s.doc.releases = append(s.doc.releases, release{key, quoted})
}

// releaseOf gives the number of the release with a version.
func (s *scan) releaseOf(version string) uint32 {
	key := naming.EqualKey(version)
	if !s.released(key) {
		s.addRelease(key, `"`+version+`"`)
	}
	return s.releases[key]
}

// facts builds what rules and the file route read, in a few large allocations.
func (s *scan) facts(placed []place) {
	n := len(s.raw)
	d := s.doc
	d.versions, d.entries = make([]registry.Version, n), make([]entry, n)
	artifacts, own := make([]registry.Artifact, n), s.room()
	for i := range s.raw {
		r := &s.raw[i]
		artifacts[i] = registry.Artifact{File: r.file, URL: r.address, Digests: own.keep(r.digests), Companion: own.companion(r.companion)}
		d.entries[i] = r.entry
		d.versions[i] = registry.Version{
			Version: placed[i].version, Published: r.published, InstallScripts: placed[i].kind != naming.KindWheel,
			Artifacts: artifacts[i : i+1 : i+1],
		}
	}
	d.patches, d.releases, d.top = listing.Fit(d.patches), listing.Fit(d.releases), listing.Fit(d.top)
}

// room is arrays of the right size for what stays as long as the document. Those of the scan have
// grown, and digests would hold the outgrown ones as well.
type room struct {
	digests    []registry.Digest
	sums       []byte
	companions []registry.Companion
}

func (s *scan) room() *room {
	digests, sums, companions := 0, 0, 0
	count := func(list []registry.Digest) {
		digests += len(list)
		for i := range list {
			sums += len(list[i].Sum)
		}
	}
	for i := range s.raw {
		count(s.raw[i].digests)
		if c := s.raw[i].companion; c != nil {
			companions++
			count(c.Digests)
		}
	}
	return &room{make([]registry.Digest, 0, digests), make([]byte, 0, sums), make([]registry.Companion, 0, companions)}
}

func (r *room) keep(list []registry.Digest) []registry.Digest {
	from := len(r.digests)
	for _, d := range list {
		start := len(r.sums)
		r.sums = append(r.sums, d.Sum...)
		r.digests = append(r.digests, registry.Digest{Algorithm: d.Algorithm, Sum: r.sums[start:len(r.sums):len(r.sums)]})
	}
	return r.digests[from:len(r.digests):len(r.digests)]
}

func (r *room) companion(c *registry.Companion) *registry.Companion {
	if c == nil {
		return nil
	}
	r.companions = append(r.companions, registry.Companion{Digests: r.keep(c.Digests)})
	return &r.companions[len(r.companions)-1]
}
