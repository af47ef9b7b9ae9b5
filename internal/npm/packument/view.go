package packument

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// view is a registry.View with its decisions taken.
type view struct {
	parts     []*document
	keep      [][]bool
	picks     []pick
	divergent int
	tags      []tag    // what "dist-tags" says
	stamps    []string // members of "time" that are not versions
	changed   stamp    // the latest of the parts'
	links     links    // how the addresses of artifacts begin, see newLinks
}

// pick is a version that is served.
type pick struct{ part, i int32 }

func newView(v registry.View) (*view, error) {
	if len(v.Parts) == 0 {
		return nil, errors.New("a view without documents")
	}
	w := &view{links: newLinks(v.Base, v.Package.Name)}
	for _, p := range v.Parts {
		d, ok := p.Document.(*document)
		if !ok {
			return nil, errForeign
		}
		if d.name != v.Package.Name {
			return nil, fmt.Errorf("a view of %s with a document of %s", v.Package.Name, d.name)
		}
		w.parts, w.keep = append(w.parts, d), append(w.keep, p.Keep)
	}
	for part, d := range w.parts {
		w.picks = slices.Grow(w.picks, len(d.versions))
		for i := range d.versions {
			if !w.shadowed(part, i) && w.kept(part, i) {
				w.picks = append(w.picks, pick{int32(part), int32(i)})
			}
		}
		if len(w.stamps) == 0 {
			for _, stay := range d.stamps {
				w.stamps = append(w.stamps, stay.Of(d.text))
			}
		}
		// A client that trusts modified ("nothing here is younger") must not be misled about the
		// later parts' versions.
		if d.changed.raw != "" && (w.changed.raw == "" || d.changed.at.After(w.changed.at)) {
			w.changed = d.changed
		}
	}
	w.resolveTags()
	return w, nil
}

func (w *view) kept(part, i int) bool { return i < len(w.keep[part]) && w.keep[part][i] }

// shadowed reports whether an earlier part holds the version, and counts disagreement about its
// bytes.
func (w *view) shadowed(part, i int) bool {
	for _, d := range w.parts[:part] {
		if j := d.Lookup(w.parts[part].versions[i].Version); j >= 0 {
			if differ(d.versions[j].Artifacts[0].Digests, w.parts[part].versions[i].Artifacts[0].Digests) {
				w.divergent++
			}
			return true
		}
	}
	return false
}

// differ reports whether two versions are certainly not the same bytes: by the strongest algorithm
// that both give, no value of the one is among those of the other.
func differ(a, b []registry.Digest) bool {
	shared := ""
	for _, x := range a {
		for _, y := range b {
			switch {
			case x.Algorithm != y.Algorithm || shared != "" && shared != x.Algorithm:
			case slices.Equal(x.Sum, y.Sum):
				return false
			default:
				shared = x.Algorithm
			}
		}
	}
	return shared != ""
}

// find returns the served version of that spelling.
func (w *view) find(version string) (part, i int, ok bool) {
	for part, d := range w.parts {
		if i := d.Lookup(version); i >= 0 {
			return part, i, w.kept(part, i)
		}
	}
	return 0, 0, false
}

// timed reports whether there is anything to say in "time".
func (w *view) timed() bool {
	return len(w.stamps) > 0 || slices.ContainsFunc(w.picks, func(p pick) bool {
		return !w.parts[p.part].entries[p.i].published.Empty()
	})
}

// MirrorTag is the dist-tag under which the mirror publishes: registries require one. It says
// nothing that its publisher said, and is not served.
const MirrorTag = "ecluse-mirror"

// resolveTags decides the dist-tags. A tag is the first part's in which it points to a served
// version. One whose version is withheld moves to the newest served one of the same line that is
// not above it, and is left out where there is none; latest falls back further. No tag is made up,
// but for latest where all that is known of a package is what the mirror copied.
func (w *view) resolveTags() {
	done := map[string]bool{MirrorTag: true}
	for _, d := range w.parts {
		for _, t := range d.tags {
			if done[t.name] {
				continue
			}
			if _, _, ok := w.find(t.version); ok {
				w.tags = append(w.tags, t)
				done[t.name] = true
			}
		}
	}
	for _, d := range w.parts {
		for _, t := range d.tags {
			if done[t.name] || t.name == "latest" || d.Lookup(t.version) < 0 {
				continue
			}
			if moved := w.below(t.version); moved != "" {
				t.version = moved
				w.tags = append(w.tags, t)
				done[t.name] = true
			}
		}
	}
	if !done["latest"] && w.hasLatest() && len(w.picks) > 0 {
		w.tags = append(w.tags, tag{key: `"latest"`, name: "latest", version: w.fallback()})
	}
}

// hasLatest reports whether there is to be a latest at all.
func (w *view) hasLatest() bool {
	for _, d := range w.parts {
		if _, ok := d.tagIndex["latest"]; ok {
			return true
		}
	}
	_, copied := w.parts[0].tagIndex[MirrorTag]
	return copied && len(w.parts) == 1
}

// below is the newest served version of the line of another that is not above it: live before
// deprecated, and the highest of those. Empty means none.
func (w *view) below(version string) string {
	ceilingRank, of := readCore(version).rank(), line(version)
	if ceilingRank == 0 {
		return ""
	}
	var best candidate
	for _, p := range slices.Backward(w.picks) {
		c := w.parts[p.part].candidate(int(p.i), version, ceilingRank)
		if c.rank != 0 && c.worth&worthNotNewer != 0 && line(c.version) == of && c.better(best) {
			best = c
		}
	}
	return best.version
}

// line is what a version belongs to beside its number: nothing for a stable one, else the word that
// its prerelease begins with, such as beta; a prerelease that begins with a number is of the line
// "0".
func line(version string) string {
	version, _, _ = strings.Cut(version, "+")
	_, pre, ok := strings.Cut(version, "-")
	if !ok {
		return ""
	}
	end := strings.IndexFunc(pre, func(r rune) bool { return !unicode.IsLetter(r) })
	switch {
	case end == 0:
		return "0"
	case end > 0:
		return pre[:end]
	}
	return pre
}

// fallback is the version that latest falls to: of the served ones preferably not newer than what
// the first part with an opinion calls latest, preferably stable, preferably not deprecated, and of
// those the highest.
func (w *view) fallback() string {
	var ceiling string
	for _, d := range w.parts {
		if i, ok := d.tagIndex["latest"]; ok {
			ceiling = d.tags[i].version
			break
		}
	}
	ceilingRank := readCore(ceiling).rank()
	var best candidate
	for _, p := range slices.Backward(w.picks) { // newest first, mostly: few become the best
		if c := w.parts[p.part].candidate(int(p.i), ceiling, ceilingRank); c.better(best) {
			best = c
		}
	}
	return best.version
}

// ResolveTag returns the part and the index of the version that a dist-tag of the view points to,
// as its rendering says it.
func ResolveTag(v registry.View, name string) (part, i int, ok bool) {
	w, err := newView(v)
	if err != nil {
		return 0, 0, false
	}
	for _, t := range w.tags {
		if t.name == name {
			return w.find(t.version)
		}
	}
	return 0, 0, false
}

// candidate is a version that "latest" may fall to. The zero candidate is none.
type candidate struct {
	version string
	rank    rank
	worth   int // comes before precedence
}

// The worth of a candidate: not newer than what the upstream calls latest comes first, then stable
// over prerelease, then live over deprecated.
const (
	worthLive = 1 << iota
	worthStable
	worthNotNewer
)

func (c candidate) better(than candidate) bool {
	if than.version == "" || c.worth != than.worth {
		return than.version == "" || c.worth > than.worth
	}
	return older(than.version, than.rank, c.version, c.rank)
}

// candidate judges version i; ceiling is what the upstream calls latest, or empty.
func (d *document) candidate(i int, ceiling string, ceilingRank rank) candidate {
	e := &d.entries[i]
	c := candidate{version: d.versions[i].Version, rank: e.rank}
	if ceilingRank == 0 || !older(ceiling, ceilingRank, c.version, c.rank) {
		c.worth |= worthNotNewer
	}
	if e.flags&flagStable != 0 {
		c.worth |= worthStable
	}
	if e.flags&flagDeprecated == 0 {
		c.worth |= worthLive
	}
	return c
}
