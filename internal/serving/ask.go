package serving

import "io"

// Ask is what a request asks of a mount: one of Listing, Version, File, Index, Publish, Redirect,
// Reply and Refuse.
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
