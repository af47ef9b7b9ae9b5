package npm

import (
	"slices"
	"sort"

	"github.com/Masterminds/semver/v3"
)

// precedence returns the document's versions by semver precedence, lowest first; spellings that are not semver come before all.
// It is computed once.
func (d *document) precedence() []int32 {
	d.orderOnce.Do(func() {
		parsed := make([]*semver.Version, len(d.versions))
		d.order = make([]int32, len(d.versions))
		for i := range d.versions {
			d.order[i] = int32(i)
			parsed[i], _ = semver.StrictNewVersion(d.versions[i].Version)
		}
		slices.SortStableFunc(d.order, func(a, b int32) int { return compare(parsed[a], parsed[b]) })
	})
	return d.order
}

// compare orders versions; nil, which stands for a spelling that is not semver, comes first.
func compare(a, b *semver.Version) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return a.Compare(b)
}

// candidate is a version that "latest" may fall to.
type candidate struct {
	version string
	parsed  *semver.Version
	// worth orders candidates before their precedence does, see [worth].
	worth int
}

func (c candidate) better(than candidate) bool {
	return than.version == "" || c.worth > than.worth || c.worth == than.worth && compare(c.parsed, than.parsed) > 0
}

// The worth of a candidate: not newer than what the upstream calls latest comes first, then stable over prerelease, then live over
// deprecated.
const (
	worthLive = 1 << iota
	worthStable
	worthNotNewer
	worthAll = worthNotNewer | worthStable | worthLive
)

// fallback finds the best version of one document among those that admitted reports; ceiling is what the upstream calls latest, or
// nil when that is not known.
func (d *document) fallback(ceiling *semver.Version, admitted func(i int) bool) candidate {
	order := d.precedence()
	parse := func(i int32) *semver.Version {
		v, _ := semver.StrictNewVersion(d.versions[i].Version)
		return v
	}
	newer := len(order)
	if ceiling != nil {
		newer = sort.Search(len(order), func(k int) bool { return compare(parse(order[k]), ceiling) > 0 })
	}
	var best candidate
	for k := len(order) - 1; k >= 0; k-- {
		i := order[k]
		if !admitted(int(i)) {
			continue
		}
		c := candidate{version: d.versions[i].Version, parsed: parse(i)}
		if k < newer {
			c.worth |= worthNotNewer
		}
		if c.parsed != nil && c.parsed.Prerelease() == "" {
			c.worth |= worthStable
		}
		if d.entries[i].flags&flagDeprecated == 0 {
			c.worth |= worthLive
		}
		if c.better(best) {
			best = c
		}
		if best.worth == worthAll {
			break // the rest is older
		}
	}
	return best
}
