package packument

import (
	"cmp"

	"github.com/Masterminds/semver/v3"
)

// core is the numeric part of a version, cheap to read and to compare. The zero core stands for a
// spelling that is not semver and is lower than every version.
type core struct {
	known               bool
	major, minor, patch uint64
	prerelease          bool
}

// readCore reads the numeric part of a version as strict semver has it. What follows the numbers is
// not validated.
func readCore(version string) core {
	var c core
	var ok [3]bool
	rest := version
	c.major, rest, ok[0] = number(rest, true)
	c.minor, rest, ok[1] = number(rest, true)
	c.patch, rest, ok[2] = number(rest, false)
	if ok != [3]bool{true, true, true} || rest != "" && rest[0] != '-' && rest[0] != '+' {
		return core{}
	}
	c.known = true
	c.prerelease = rest != "" && rest[0] == '-'
	return c
}

// number reads a number of a version and the dot that is due behind it: no leading zero, and no
// more than JavaScript can hold.
func number(s string, dot bool) (n uint64, rest string, ok bool) {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' && n < 1<<53 {
		n = n*10 + uint64(s[i]-'0')
		i++
	}
	ok = i > 0 && n < 1<<53 && (i == 1 || s[0] != '0')
	if dot {
		if i >= len(s) || s[i] != '.' {
			return n, "", false
		}
		i++
	}
	return n, s[i:], ok
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

// rank orders versions by precedence as far as so few bits can: a lower rank is of lower
// precedence, and the same rank says nothing. A version's rank is taken while its spelling is in
// the near cache, so that those of a whole listing can be compared without it. Zero is the rank of
// what is not semver.
type rank uint64

// rank leaves out all that follows a number that is too large to be told from larger ones.
func (c core) rank() rank {
	if !c.known {
		return 0
	}
	r := rank(1)
	for i, n := range [...]uint64{c.major, c.minor, c.patch} {
		const bits = 20
		if most := uint64(1<<bits - 1); n >= most {
			return (r<<bits | rank(most)) << (bits*(2-i) + 1)
		}
		r = r<<bits | rank(n)
	}
	r <<= 1
	if !c.prerelease {
		r++
	}
	return r
}

// older reports whether version v, whose rank is r, has lower precedence than w, whose rank is q,
// by semver, section 11.
func older(v string, r rank, w string, q rank) bool {
	if r != q || r == 0 {
		return r < q
	}
	c, d := readCore(v), readCore(w)
	if n := c.compare(d); n != 0 {
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
