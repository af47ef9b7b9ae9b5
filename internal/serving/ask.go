package serving

import (
	"io"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Ask is what a request asks of a mount: one of Listing, Version, File, Proof, Index, Service,
// Search, Audit, Publish, Change, Caller, Redirect, Reply and Refuse.
type Ask struct {
	// Route is what metrics and traces call such a request ("pypi_listing"); empty is "other".
	Route string
	Want  any
}

// Form is the representation of a listing that a client gets.
type Form struct {
	Name string
	// ContentType is what the answer says that it is; empty leaves that to the rendering.
	ContentType string
	// Unacceptable says, to a client that accepts no form, which there are (406).
	Unacceptable string
}

// Listing asks for the listing of a package.
type Listing struct {
	Name string
	Form Form
}

// Version asks for one version's own document, by its number or by a tag.
type Version struct {
	Name, Selector string
	Form           Form
}

// File asks for a file of a package, or for the companion of that file.
type File struct {
	Name, File string
	Companion  bool
}

// Proof asks for the attestations of a file, at the address that the listing has for them.
type Proof struct{ Name, File string }

// Service asks the public registry for something that it has beside listings and files.
type Service struct {
	// What names it in an error.
	What string
	// Path is escaped and below the registry's base.
	Path string
	// Name is the package that it is about; empty for none.
	Name string
}

// Search asks for packages by words.
type Search struct {
	// Path is that of the public registry's search, with the query that it is sent.
	Path string
	// Names are those of packages that the words may mean.
	Names []string
	// Filter takes out of an answer the packages that may not be shown.
	Filter func(body []byte, shown func(name string, newest registry.Version) bool) ([]byte, error)
}

// Audit asks what is known against versions of packages.
type Audit struct {
	// Parse reads the question.
	Parse func(body []byte) (Question, error)
	// Path is where the public registry is asked, with a body of Body for the versions that it may
	// hear of.
	Path string
	Body func(versions map[string][]string) []byte
}

// Question is what an Audit asks.
type Question struct {
	// Versions are those asked about, by package.
	Versions map[string][]string
	// Own renders the answer from the gate's own data, and Relayed from the public registry's
	// answer.
	Own     func(found map[string][]registry.Finding) []byte
	Relayed func(body []byte) ([]byte, error)
}

// Caller asks who the caller is.
type Caller struct {
	// Render writes the name of a token's holder.
	Render func(name string) []byte
	// Path is where the publication target is asked instead, where callers have no tokens of the
	// gate's.
	Path string
}

// Change asks the publication target to read or change something of a first-party package beside
// its versions: tags, owners, access, or to take versions back.
type Change struct {
	// Name is the package; empty where it is about none, which is nothing that the gate relays.
	Name string
	// Path is escaped and below the target.
	Path string
	// Message is the refusal where it is not relayed.
	Message string
	// Check looks at the body, as that of Publish does; nil where there is nothing to look at.
	Check func(body io.Reader) error
}

// Index asks for the list of all packages, and renders their names.
type Index struct {
	Form   Form
	Render func(names []string, form string) []byte
}

// Publish brings a package.
type Publish struct {
	// Method is the one that brings packages; Allow are those that the path has while publishing is
	// off.
	Method, Allow string
	// Name is the package, where the path says it; it is judged before the body is read.
	Name string
	// NameOf finds the package at the beginning of the body, to judge it before the rest is read;
	// it may read more of the body than it needs, and what it does not find is left to Check. Nil
	// where the path says the name.
	NameOf func(body io.Reader) (name string, ok bool)
	// Path is where the package goes, escaped, below the publication target; empty is the target's
	// own address.
	Path string
	// Check looks at a whole body and tells the name of the package in it. An error that is a
	// *BadPackage is the publisher's fault.
	Check func(body io.Reader) (name string, err error)
}

// BadPackage is what is wrong with a package that was brought; the answer is 400.
type BadPackage struct{ Err error }

// Error implements error.
func (e *BadPackage) Error() string { return e.Err.Error() }

// Unwrap gives the error itself.
func (e *BadPackage) Unwrap() error { return e.Err }

// Redirect sends a client to the right spelling of a path, escaped, below the mount.
type Redirect struct{ Path string }

// Reply is an answer that needs no gate, whatever the method.
type Reply struct {
	ContentType string
	Body        []byte
}

// Refuse refuses a request for what it is, whatever the method.
type Refuse struct {
	Status  int
	Message string
}
