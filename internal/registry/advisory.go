package registry

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

// Finding is an advisory with all versions that it affects.
type Finding struct {
	Advisory
	Affected []Interval
}

// Interval is a range of versions. An end that is empty is open; WithLow and WithHigh tell that the
// version of that end belongs to it.
type Interval struct {
	Low, High         string
	WithLow, WithHigh bool
}
