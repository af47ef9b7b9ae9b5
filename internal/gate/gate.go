// Package gate is the pipeline between a client's request and the upstreams: private first, public
// under the rules, one admission for listings and artifacts, and an honest answer while a public
// authority cools. It knows no protocol: an Ecosystem lends it paths, documents and renderings.
package gate

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// Bounds of foreign input.
const (
	maxDocument  = 64 << 20 // a listing, unpacked; the largest real packuments have about 40 MB
	maxRefusal   = 1 << 20  // a relayed refusal's body
	maxCompanion = 16 << 20 // a companion, unpacked
)

// Times that have no configuration key.
const (
	// versionTTL is how long the facts of one version serve artifact requests without a new listing
	// read: what a registry says of a published version does not change.
	versionTTL = 10 * time.Minute
	// revalidateTTL bounds how long 304 answers may confirm one body before it is fetched whole
	// again (C61).
	revalidateTTL = 24 * time.Hour
	// missTTL is how young a document must be for the absence of a version in it to be believed
	// without asking again.
	missTTL = 5 * time.Second
	// refusalTime bounds how long the body of an upstream's refusal is waited for.
	refusalTime = 2 * time.Second
)

// Ecosystem is what one protocol lends to the pipeline. All functions are pure and safe for
// concurrent use.
type Ecosystem struct {
	// Name is the ecosystem's name in metrics and policy ("npm").
	Name string
	// ListingAccept is sent upstream for a listing.
	ListingAccept string
	// ListingPath is the escaped path of a listing below an upstream's base.
	ListingPath func(name string) string
	// ArtifactPath is the conventional path of a file below a base, for listings that name none or
	// another host's; nil where the protocol has no convention and only links count.
	ArtifactPath func(name, file string) string
	// KeyOfFile gives the key of the document's entry that a file belongs to
	// (registry.Document.Lookup).
	KeyOfFile func(name, file string) (key string, ok bool)
	// Scan reads a document; its errors wrap registry.ErrMalformed or registry.ErrTooLarge.
	Scan func(registry.Package, registry.Source) (registry.Document, error)
	// Render splices a listing.
	Render func(registry.View) (registry.Rendering, error)
	// RenderVersion renders one version of a view, by number or dist-tag; false says that the view
	// does not hold it. Nil where the protocol has no such document.
	RenderVersion func(v registry.View, selector string) (registry.Rendering, bool, error)
	// Serial is the upstream's count of changes that a document carries; nil where the protocol has
	// none.
	Serial func(registry.Document) (serial int64, ok bool)
	// ScanIndex reads the list of all packages; nil where the protocol has none.
	ScanIndex func(registry.Source) ([]string, error)
}

// Options make a Gate.
type Options struct {
	Ecosystem Ecosystem
	Public    *upstream.Public
	// Files are the public upstreams that hold files; links to any other host are not served. Empty
	// means Public alone.
	Files   []*upstream.Public
	Private *upstream.Private // nil: there is none
	// Publish is where first-party packages are published; nil: publishing is off.
	Publish *upstream.Target
	// DegradePrivate serves what resolved when the private upstream fails, instead of refusing
	// (R93).
	DegradePrivate bool
	// FirstParty names packages that resolve privately only.
	FirstParty []policy.Pattern
	Policy     *policy.Set
	// MinPublic and MinTrusted are the weakest integrity that public and private versions may have.
	MinPublic, MinTrusted integrity.Floor
	// Store keeps verified public files; nil keeps none.
	Store *cache.Files
	// Documents holds what all mounts keep in memory, under one bound; see NewDocuments. It must
	// not be in use yet.
	Documents *Documents
	// Archive keeps public documents over restarts; nil keeps none.
	Archive *Archive
	// TTL is how long a public document is served without asking again; MaxStale how old it may be
	// while its authority cools (R87; 0 is off).
	TTL, MaxStale time.Duration
	Metrics       *obs.Metrics
	Logger        *slog.Logger
}

// Rules are the rules in force.
func (g *Gate) Rules() *policy.Set { return g.policy.Load() }

func (g *Gate) docKey(name string) docKey { return docKey{g.Ecosystem.Name, name} }

// Gate is one mount. It is safe for concurrent use.
type Gate struct {
	Options
	policy atomic.Pointer[policy.Set]
	offer  atomic.Pointer[func(name, version, file string)] // to the mirror

	documents *cache.Store[docKey, *entry]
	fetches   cache.Flight[string, fetched]
	restores  cache.Flight[string, *entry]
	versions  *cache.Store[versionKey, versionFacts]
	projects  atomic.Pointer[index]
	indexes   cache.Flight[string, *index]
}

// versionKey names one entry of a document by its package and its key there.
type versionKey struct{ name, key string }

type versionFacts struct {
	version registry.Version
	read    time.Time
}

// New returns a gate that has fetched nothing yet.
func New(o Options) *Gate {
	if len(o.Files) == 0 {
		o.Files = []*upstream.Public{o.Public}
	}
	g := &Gate{
		Options:   o,
		documents: o.Documents.store,
		versions:  cache.NewStore[versionKey, versionFacts](o.Documents.versions),
	}
	o.Documents.scans[o.Ecosystem.Name] = o.Ecosystem.Scan
	g.policy.Store(o.Policy)
	return g
}

// SetPolicy changes the rules for every request from now on; what is cached are documents, not
// verdicts.
func (g *Gate) SetPolicy(p *policy.Set) { g.policy.Store(p) }

func (g *Gate) pkg(name string) registry.Package {
	return registry.Package{Ecosystem: g.Ecosystem.Name, Name: name}
}

func (g *Gate) firstParty(name string) bool {
	for _, p := range g.FirstParty {
		if p.MatchPackage(g.Ecosystem.Name, name) {
			return true
		}
	}
	return false
}
