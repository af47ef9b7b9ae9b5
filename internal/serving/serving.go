// Package serving says what the product has to know of one ecosystem to serve it, beside its names
// and versions: how its protocol is read, what a request asks for, and how a mirror takes a file.
// An ecosystem is one such value, and whoever puts a gate together hands it in with the others.
package serving

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/mirror/lockfile"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// Ecosystem is one ecosystem that can be served, at "/" and its name. The functions are safe for
// concurrent use.
type Ecosystem struct {
	registry.Ecosystem
	// Protocol is what it lends to the gate; its name is Ecosystem.Name.
	Protocol gate.Ecosystem
	// ParseName reads the name of a package that a person wrote, and spells it as Protocol wants
	// it.
	ParseName func(text string) (string, error)
	// VersionKey is a spelling that equal versions share; nil where equal versions are spelled
	// alike.
	VersionKey func(version string) string
	// Read says what a request asks for. The path is the escaped one below the mount.
	Read func(r *http.Request, path string) Ask
	// Refusal is how clients are told why they do not get what they asked for.
	Refusal Refusal
	// PublishHeader are the fields of a publisher's request that the publication target hears,
	// beside Accept and Content-Type.
	PublishHeader []string
	// PublisherHeader are more of them, which go with the publisher's own credential alone.
	PublisherHeader []string
	// Mirror makes a registry of this ecosystem a place that files are copied to.
	Mirror func(Registry) (mirror.Target, error)
	// LockFiles are the lock files of its tools.
	LockFiles []lockfile.Format
	// Words are what people read of it.
	Words Words
	// Upstream asks the ecosystem's own tool on this machine, in an environment, for its public
	// upstream, when no configuration names one; nil where Mount.Public is the default.
	Upstream func(ctx context.Context, environ []string) (string, error)
}

// Words are what people read of an ecosystem.
type Words struct {
	// Upstream is what its public upstream is called ("PyPI index").
	Upstream string
	// Served is what clients find at Entry, a path below the mount ("Python index", "/simple/").
	Served, Entry string
	// Token says where its tools have the token that the gate asks for ("pip: the password").
	Token string
}

// Refusal is the dialect of refusals (R37).
type Refusal struct {
	// Scheme is how a caller is asked for a token, where another spelling than Basic is shown
	// better; its case means nothing to others (RFC 9110, 11.1).
	Scheme      string
	ContentType string
	Body        func(message string) []byte
}

// Registry is a registry as a mirror, as it is configured.
type Registry struct {
	URL   *url.URL
	Index *url.URL // nil: none of its own is configured
	// Authorization is the value of the field of this name that it asks for, empty for none; it may
	// change.
	Authorization func() string
	// Open makes an address one that can be asked.
	Open func(*url.URL) (*upstream.Target, error)
}

// Ecosystems are those that can be served, in the order in which people see them.
type Ecosystems []Ecosystem

// Known are what rules, configuration and advisories know of them.
func (e Ecosystems) Known() registry.Ecosystems {
	out := make(registry.Ecosystems, len(e))
	for i := range e {
		out[i] = e[i].Ecosystem
	}
	return out
}

// LockFiles are the lock files of all their tools.
func (e Ecosystems) LockFiles() (all []lockfile.Format) {
	for i := range e {
		all = append(all, e[i].LockFiles...)
	}
	return all
}

// Mount is an ecosystem with the gate that serves it.
type Mount struct {
	Ecosystem
	Gate *gate.Gate // nil: the mount is off
}

// Mounts are those of all ecosystems, in the order in which people see them.
type Mounts []Mount

// Named is the mount of an ecosystem; of one that there is not it is none.
func (m Mounts) Named(name string) Mount {
	if i := slices.IndexFunc(m, func(x Mount) bool { return x.Name == name }); i >= 0 {
		return m[i]
	}
	return Mount{}
}

// Ecosystems are what is mounted, or would be if it were on.
func (m Mounts) Ecosystems() Ecosystems {
	out := make(Ecosystems, len(m))
	for i := range m {
		out[i] = m[i].Ecosystem
	}
	return out
}
