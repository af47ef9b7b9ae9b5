// Package documents holds the listings of one mount: it reads them from the upstreams, keeps the
// public ones in memory and on disk with what was rendered from them, and says how far each can be
// relied on. Which of their versions may be served is not its business.
package documents

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/internal/flight"

	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

const (
	// DefaultMaxDocument bounds a listing, unpacked; the largest real ones known have 105 MB.
	DefaultMaxDocument = 128 << 20
	// revalidateTTL bounds how long 304 answers may confirm one body before it is fetched whole
	// again (C61).
	revalidateTTL = 24 * time.Hour
)

// Protocol is what an ecosystem lends to its documents. All functions are pure and safe for
// concurrent use.
type Protocol struct {
	// Name is the ecosystem's name ("npm").
	Name string
	// Accept is sent upstream for a listing, and Path its escaped path below an upstream's base.
	Accept string
	Path   func(name string) string
	// Scan reads a listing; its errors wrap registry.ErrMalformed or registry.ErrTooLarge.
	Scan func(registry.Package, registry.Source) (registry.Document, error)
	// Serial is the upstream's count of changes that a document carries; nil where there is none.
	Serial func(registry.Document) (serial int64, ok bool)
	// ScanIndex reads the list of all packages; nil where there is none.
	ScanIndex func(registry.Source) ([]string, error)
}

// Options make Documents.
type Options struct {
	Protocol Protocol
	Public   *upstream.Public
	// Side is how clients hear of Public.
	Side refusal.Side
	// Private is nil where there is none.
	Private *upstream.Private
	// Owned reports whether a file's address lies at a host that may be asked; nil where it does
	// not matter.
	Owned func(address string) bool
	// Memory is shared by all mounts. Archive keeps documents over restarts; nil keeps none.
	Memory  *Memory
	Archive *Archive
	// MaxStale is how old a document may be while its authority cools (R87); 0 retains none.
	MaxStale time.Duration
	// MaxDocument bounds a listing, unpacked; 0 means the default.
	MaxDocument int64
	// Room is what all documents that are read, unpacked and rendered at once may take; nil bounds
	// nothing.
	Room    *quota.Budget
	Metrics *obs.Metrics
	Logger  *slog.Logger
}

// Documents are the listings of one mount. They are safe for concurrent use.
type Documents struct {
	opts     Options
	fetches  flight.Group[string, *Document] // nil: the upstream says that there is no such package
	restores flight.Group[string, *Document]
	rereads  flight.Group[string, *Document]
	projects atomic.Pointer[projects]
	lists    flight.Group[string, *projects]
}

// New returns the documents of a mount that has read nothing yet.
func New(o Options) *Documents {
	if o.MaxDocument == 0 {
		o.MaxDocument = DefaultMaxDocument
	}
	return &Documents{opts: o}
}

func (d *Documents) key(name string) key { return key{d.opts.Protocol.Name, name} }

func (d *Documents) pkg(name string) registry.Package {
	return registry.Package{Ecosystem: d.opts.Protocol.Name, Name: name}
}
