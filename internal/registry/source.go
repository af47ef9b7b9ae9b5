package registry

import "net/url"

// Source is one upstream answer as it came: what a listing is read from.
type Source struct {
	// Body is the decompressed body. The scanner keeps it: it must not be changed any more.
	Body []byte
	// ContentType is the media type of the answer, with its parameters; empty when the upstream
	// gave none.
	ContentType string
	// URL is the address that answered. Relative links are read against it; nil when there are none
	// to expect.
	URL *url.URL
}

// Companion is a small file beside an artifact that a listing advertises: the metadata of a wheel
// (PEP 658).
type Companion struct {
	// Digests are the integrity values that the listing advertises for the companion, strongest
	// first; it may give none.
	Digests []Digest
}

// Differ reports whether two files are certainly not the same bytes: by the strongest algorithm
// that both name, no value of the one is among those of the other. Digests must be ordered
// strongest first.
func Differ(a, b []Digest) bool {
	shared := ""
	for _, x := range a {
		for _, y := range b {
			switch {
			case x.Algorithm != y.Algorithm || shared != "" && shared != x.Algorithm:
			case string(x.Sum) == string(y.Sum):
				return false
			default:
				shared = x.Algorithm
			}
		}
	}
	return shared != ""
}
