// Package registry is the ecosystem-blind vocabulary of the gate: what a package, a version and an
// artifact are, and what a scanned listing offers. It knows no protocol; npm and PyPI fill it in.
package registry

import (
	"errors"
	"time"
)

// ErrMalformed is wrapped by every error that says that an upstream document cannot be understood.
// The gate answers 502.
var ErrMalformed = errors.New("malformed upstream document")

// ErrTooLarge is wrapped by every error that says that an upstream document breaks a bound on size,
// depth or count.
var ErrTooLarge = errors.New("upstream document over a limit")

// Package names one package of one ecosystem, in the ecosystem's canonical spelling ("@scope/name",
// never percent-encoded).
type Package struct {
	Ecosystem string
	Name      string
}

// String is the spelling of the command line, "npm:@scope/name".
func (p Package) String() string { return p.Ecosystem + ":" + p.Name }

// Digest is one integrity value that a listing advertises for an artifact.
type Digest struct {
	// Algorithm is the lower-case name: "sha512", "sha256", "sha1", "md5".
	Algorithm string
	// Sum is the raw digest, not its hex or base64 spelling.
	Sum []byte
}

// Artifact is one downloadable file of a version.
type Artifact struct {
	// File is the file's name under the mount ("name-1.0.0.tgz").
	File string
	// URL is the absolute address at the upstream, as the listing gives it, or empty when it gives
	// none.
	URL string
	// Digests are the integrity values that the listing advertises, strongest first.
	Digests []Digest
	// Companion is the file beside this one that the listing advertises; nil when it advertises
	// none.
	Companion *Companion
}

// Version holds the facts of one version that rules and the artifact route read.
type Version struct {
	// Version is the version's spelling in the document.
	Version string
	// Published is when the upstream says the version was published; zero when it does not say.
	Published time.Time
	// InstallScripts reports that installing the version runs code of the package.
	InstallScripts bool
	// License is the SPDX license expression as the upstream spells it, not checked; empty when the
	// upstream gives none.
	License string
	// Artifacts are the version's files; one for npm.
	Artifacts []Artifact
}

// Document is one scanned listing. It is immutable and safe for concurrent use; nothing it returns
// may be changed.
type Document interface {
	// Versions returns the facts of every servable version, in the document's order. Versions that
	// the scan had to drop (no artifact, unusable facts) are not among them.
	Versions() []Version
	// Lookup returns the index of a version in Versions, or -1.
	Lookup(version string) int
	// Dropped counts the entries that the scan could not use.
	Dropped() int
	// Source returns the body that the document was read from if the document keeps it, else nil.
	// The same body, with the media type and the address that came with it, gives the same document
	// again.
	Source() []byte
	// Cost is the number of bytes of memory that keeping the document takes.
	Cost() int64
}

// Part is one document of a merged listing with the versions of it that may be served: Keep[i]
// belongs to Versions()[i].
type Part struct {
	Document Document
	Keep     []bool
}

// View asks for one representation of a listing.
type View struct {
	Package Package
	// Form is the representation, in the ecosystem's own words ("full", "abbreviated").
	Form string
	// Base is the mount's address as clients see it, without a trailing slash; artifact links are
	// put under it.
	Base string
	// Parts are merged: where two hold the same version, the earlier part wins. The first part also
	// gives the fields outside the versions.
	Parts []Part
}

// Rendering is one rendered listing.
type Rendering struct {
	// Body is the document.
	Body []byte
	// Cuts are offsets of Body, rising, where a run of it ends that is likely to be the same in
	// another rendering of the document: they lie at the same versions whichever of them are
	// served. A rendering may have none.
	Cuts []int
	// ContentType is its media type.
	ContentType string
	// Versions counts the versions in it.
	Versions int
	// Divergent counts versions that two parts hold with different integrity.
	Divergent int
}
