package npm

import (
	"cmp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// core is the numeric part of a version, cheap to read and to compare. The zero core stands for a spelling that is not semver and is
// lower than every version.
type core struct {
	known               bool
	major, minor, patch uint64
	prerelease          bool
}

// readCore reads the numeric part of a version as strict semver has it. What follows the numbers is not validated.
func readCore(version string) core {
	c := core{known: true}
	rest := version
	for i, into := range [...]*uint64{&c.major, &c.minor, &c.patch} {
		end := 0
		for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
			*into = *into*10 + uint64(rest[end]-'0')
			end++
		}
		if end == 0 || end > 16 || end > 1 && rest[0] == '0' { // 16 digits: what npm's own numbers can hold
			return core{}
		}
		if rest = rest[end:]; i == 2 {
			break
		}
		var dot bool
		if rest, dot = strings.CutPrefix(rest, "."); !dot {
			return core{}
		}
	}
	c.prerelease = strings.HasPrefix(rest, "-")
	if rest != "" && !c.prerelease && rest[0] != '+' {
		return core{}
	}
	return c
}

// compare orders by the numbers only.
func (c core) compare(d core) int {
	if n := cmp.Compare(c.major, d.major); n != 0 {
		return n
	}
	if n := cmp.Compare(c.minor, d.minor); n != 0 {
		return n
	}
	return cmp.Compare(c.patch, d.patch)
}

// older reports whether version v, whose core is c, has lower precedence than w by semver, section 11.
func older(v string, c core, w string, d core) bool {
	if c.known != d.known {
		return d.known
	}
	if n := c.compare(d); n != 0 || !c.known {
		return n < 0
	}
	if c.prerelease != d.prerelease {
		return c.prerelease
	}
	if !c.prerelease {
		return false
	}
	a, errA := semver.StrictNewVersion(v)
	b, errB := semver.StrictNewVersion(w)
	if errA != nil || errB != nil {
		return errB == nil
	}
	return a.LessThan(b)
}

// candidate is a version that "latest" may fall to. The zero candidate is none.
type candidate struct {
	version string
	core    core
	worth   int // comes before precedence
}

// The worth of a candidate: not newer than what the upstream calls latest comes first, then stable over prerelease, then live over
// deprecated.
const (
	worthLive = 1 << iota
	worthStable
	worthNotNewer
)

func (c candidate) better(than candidate) bool {
	if than.version == "" || c.worth != than.worth {
		return than.version == "" || c.worth > than.worth
	}
	return older(than.version, than.core, c.version, c.core)
}

// candidate judges version i; ceiling is what the upstream calls latest, or empty.
func (d *document) candidate(i int, ceiling string, ceilingCore core) candidate {
	c := candidate{version: d.versions[i].Version, core: readCore(d.versions[i].Version)}
	if !ceilingCore.known || !older(ceiling, ceilingCore, c.version, c.core) {
		c.worth |= worthNotNewer
	}
	if c.core.known && !c.core.prerelease {
		c.worth |= worthStable
	}
	if d.entries[i].flags&flagDeprecated == 0 {
		c.worth |= worthLive
	}
	return c
}
