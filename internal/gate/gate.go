// Package gate is the pipeline between a client's request and the upstreams: private first, public
// under the rules, one admission for listings and artifacts, and an honest answer while a public
// authority cools. It knows no protocol: an Ecosystem lends it paths, documents and renderings.
package gate

import (
	"log/slog"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/files"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/overlap"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// Times that have no configuration key.
const (
	// versionTTL is how long the facts of one version serve artifact requests without a new listing
	// read: what a registry says of a published version does not change.
	versionTTL = 10 * time.Minute
	// missTTL is how young a document must be for the absence of a version in it to be believed
	// without asking again.
	missTTL = 5 * time.Second
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
	// Proof is the address of the attestations of an entry of a document, empty for none; nil where
	// the protocol has them at a path of their own.
	Proof func(doc registry.Document, i int) string
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
	// Names is told what the private upstream has, and tells what therefore resolves privately
	// only.
	Names  *overlap.Names
	Policy *policy.Set
	// JudgePrivate applies every rule to private versions that are not first-party; without it
	// those that deny are applied.
	JudgePrivate bool
	// MinPublic and MinTrusted are the weakest integrity that public and private versions may have.
	MinPublic, MinTrusted integrity.Floor
	// Store keeps verified public files; nil keeps none.
	Store *cache.Files
	// Memory holds the documents of all mounts under one bound, and Archive keeps them over
	// restarts; nil keeps none.
	Memory  *documents.Memory
	Archive *documents.Archive
	// TTL is how long a public document is served without asking again; MaxStale how old it may be
	// while its authority cools (R87; 0 is off).
	TTL, MaxStale time.Duration
	// MaxDocument bounds a listing, unpacked; 0 means the default.
	MaxDocument int64
	// Room is what all listings that are read and rendered at once may take; nil bounds nothing.
	Room    *quota.Budget
	Metrics *obs.Metrics
	Logger  *slog.Logger
}

// Gate is one mount. It is safe for concurrent use.
type Gate struct {
	opts   Options // but for Policy
	policy atomic.Pointer[policy.Set]
	offer  atomic.Pointer[func(name, version, file string)] // to the mirror

	documents *documents.Documents
	files     *files.Files
	versions  *cache.Store[versionKey, versionFacts]
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
		opts: o, versions: cache.NewStore[versionKey, versionFacts](max(o.Memory.Bound()/32, 1<<20)),
		files: &files.Files{Ecosystem: o.Ecosystem.Name, Store: o.Store, Metrics: o.Metrics},
	}
	g.policy.Store(o.Policy)
	g.opts.Policy = nil // the pointer alone has it: SetPolicy changes it
	e := o.Ecosystem
	d := documents.Options{
		Protocol: documents.Protocol{
			Name: e.Name, Accept: e.ListingAccept, Path: e.ListingPath, Scan: e.Scan, Serial: e.Serial, ScanIndex: e.ScanIndex,
		},
		Public: o.Public, Side: g.side(o.Public), Private: o.Private, Memory: o.Memory, Archive: o.Archive,
		MaxStale: o.MaxStale, MaxDocument: o.MaxDocument, Room: o.Room, Metrics: o.Metrics, Logger: o.Logger,
	}
	if e.ArtifactPath == nil {
		d.Owned = g.owns
	}
	g.documents = documents.New(d)
	return g
}

// Ecosystem is the name of the ecosystem that the gate serves.
func (g *Gate) Ecosystem() string { return g.opts.Ecosystem.Name }

// Rules are the rules in force.
func (g *Gate) Rules() *policy.Set { return g.policy.Load() }

// SetPolicy changes the rules for every request from now on; what is cached are documents, not
// verdicts.
func (g *Gate) SetPolicy(p *policy.Set) { g.policy.Store(p) }

func (g *Gate) pkg(name string) registry.Package {
	return registry.Package{Ecosystem: g.opts.Ecosystem.Name, Name: name}
}

func (g *Gate) firstParty(name string) bool {
	for _, p := range g.opts.FirstParty {
		if p.MatchPackage(g.opts.Ecosystem.Name, name) {
			return true
		}
	}
	return false
}

// privateOnly reports whether a name resolves privately only: it is a first-party one, or shadowed.
func (g *Gate) privateOnly(name string) bool {
	return g.firstParty(name) || g.opts.Names.Hide(name)
}

// side is a public upstream as clients hear of it.
func (g *Gate) side(u *upstream.Public) refusal.Side {
	part := "registry"
	switch {
	case u != g.opts.Public:
		part = "files"
	case g.opts.Ecosystem.ScanIndex != nil:
		part = "index"
	}
	return refusal.Side{Authority: u.Authority().String(), Part: part}
}

// owns reports whether owner would find an upstream.
func (g *Gate) owns(address string) bool {
	return slices.ContainsFunc(g.opts.Files, func(f *upstream.Public) bool { return f.Owns(address) })
}

// owner finds the upstream that may be asked for an address.
func (g *Gate) owner(address string) (*upstream.Public, *url.URL, bool) {
	for _, f := range g.opts.Files {
		if u, ok := f.Owned(address); ok {
			return f, u, true
		}
	}
	return nil, nil, false
}
