package pypi

import (
	"encoding/json"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// finish drops what cannot be served and builds the facts.
func (s *scan) finish() {
	s.releases = make(map[string]uint32, 64)
	s.listReleases()
	versions := make([]string, len(s.raw))
	kinds := make([]string, len(s.raw))
	for i := range s.raw {
		versions[i], kinds[i] = s.place(&s.raw[i])
	}
	file := func(i int) string { return s.raw[i].file }
	var names listing.Names
	for i := range s.raw {
		if first, again := names.Add(s.raw[i].file, file); again {
			s.again(first, i)
		}
	}
	kept := 0
	for i := range s.raw {
		if s.raw[i].bad {
			continue
		}
		s.raw[kept], versions[kept], kinds[kept] = s.raw[i], versions[i], kinds[i]
		kept++
	}
	if dropped := len(s.raw) - kept; dropped > 0 {
		s.doc.dropped += dropped
		s.raw = s.raw[:kept]
		names = listing.Names{}
		for i := range s.raw {
			names.Add(s.raw[i].file, file)
		}
	}
	s.doc.names = names
	s.facts(versions, kinds)
}

// again looks at a file that is there a second time. One that says the same of its bytes is left out; two that differ are both left
// out, because readers of the first one and of the last one would disagree.
func (s *scan) again(first, again int) {
	a, b := &s.raw[first], &s.raw[again]
	if a.bad || b.bad {
		a.bad, b.bad = true, true
		return
	}
	sameBytes := a.address == b.address || len(a.digests) > 0 && len(b.digests) > 0
	a.bad = !sameBytes || registry.Differ(a.digests, b.digests) || !a.published.Equal(b.published)
	b.bad = true
}

// listReleases gives the releases of the page's own list their numbers.
func (s *scan) listReleases() {
	for _, quoted := range s.listed {
		var spelled string
		if err := json.Unmarshal([]byte(quoted), &spelled); err != nil || spelled == "" || len(spelled) > naming.MaxVersion {
			continue
		}
		s.release(naming.EqualKey(spelled), quoted)
	}
}

// release gives the number of a release.
func (s *scan) release(key, quoted string) uint32 {
	i, ok := s.releases[key]
	if !ok {
		i = uint32(len(s.doc.releases))
		s.doc.releases = append(s.doc.releases, release{key, quoted})
		s.releases[key] = i
	}
	return i
}

// place finds the release of a file by the file's name (C68).
func (s *scan) place(r *rawFile) (version, kind string) {
	version, kind, ok := naming.VersionOfFile(s.doc.name, r.file)
	if !ok {
		r.bad = true
		return "", ""
	}
	r.release = s.release(naming.EqualKey(version), `"`+version+`"`)
	return version, kind
}

// facts builds what rules and the file route read, in a few large allocations.
func (s *scan) facts(versions, kinds []string) {
	n := len(s.raw)
	d := s.doc
	d.versions, d.entries = make([]registry.Version, n), make([]entry, n)
	artifacts := make([]registry.Artifact, n)
	for i := range s.raw {
		r := &s.raw[i]
		artifacts[i] = registry.Artifact{File: r.file, URL: r.address, Digests: r.digests, Companion: r.companion}
		d.entries[i] = r.entry
		d.versions[i] = registry.Version{
			Version: versions[i], Published: r.published, InstallScripts: kinds[i] != naming.KindWheel,
			Artifacts: artifacts[i : i+1 : i+1],
		}
	}
	d.patches = slices.Clip(d.patches)
}
