package registry

import "strings"

// Advisory is what the advisory data says about one version. Records that name each other as
// aliases are one Advisory.
type Advisory struct {
	// ID is the record's identifier ("GHSA-…", "PYSEC-…", "MAL-…"); of aliased records, the first
	// in the order of malware reports, then the highest score, then the alphabet.
	ID string
	// Aliases are the other identifiers of the same finding, sorted.
	Aliases []string
	// Malware reports that the package itself is reported as hostile.
	Malware bool
	// Scored reports whether the data gives a severity; Score is then the CVSS base score, 0 to 10.
	// A severity that is given but cannot be read counts as 10.
	Scored bool
	Score  float64
	// Affects reports that the version is affected. Fixes reports that the record names exactly
	// this version as a fix. One of them is true; both are, when aliased records disagree.
	Affects, Fixes bool
	// FixedIn is the version that ends the affected range, or empty when the data names none.
	FixedIn string
}

// CanonicalName spells a package's name as its ecosystem compares names: PyPI ignores case and
// takes runs of "-", "_" and "." for one "-" (PEP 503); npm takes names as they are.
func CanonicalName(ecosystem, name string) string {
	if ecosystem != "pypi" || !strings.ContainsFunc(name, func(r rune) bool { return r == '_' || r == '.' || r == '-' || 'A' <= r && r <= 'Z' }) {
		return name
	}
	var b strings.Builder
	b.Grow(len(name))
	for i := range len(name) {
		switch c := name[i]; {
		case c == '-' || c == '_' || c == '.':
			if i == 0 || !isSeparator(name[i-1]) {
				b.WriteByte('-')
			}
		case 'A' <= c && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isSeparator(c byte) bool { return c == '-' || c == '_' || c == '.' }
