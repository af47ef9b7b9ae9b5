// Package config is the configuration of the gate: its layers (defaults, file, environment, flags),
// its defaults, and every problem in one report. It starts nothing and opens no connection; what it
// cannot know comes through Options.
package config

import (
	"context"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Config is a whole and checked configuration. Its fields are the keys of the file, with their
// units in the types.
type Config struct {
	Listen    string   // host:port of the gate; port 0 picks a free one
	PublicURL *url.URL // where clients reach the gate; nil: derived from the address it listens on
	Admin     string   // host:port of status page, API and metrics; "" turns them off
	// AdminTokenFile holds the token that Admin asks for; "" = none
	AdminTokenFile string
	AdminToken     Secret // read from AdminTokenFile
	DataDir        string
	Auth           Auth
	Mounts         []*Mount      // one for each ecosystem
	Rules          []policy.Spec // the enabled rules, by name
	Cache          Cache
	Artifacts      Artifacts
	Integrity      Integrity
	Serve          Serve
	Egress         Egress
	Queue          Queue
	Budgets        map[cooldown.Authority]Budget
	Log            Log
	Telemetry      Telemetry

	// Advisories is where the data comes from that some rules read.
	Advisories Advisories

	// Warnings are settings that are allowed and probably not meant.
	Warnings []string

	settings []Setting
	known    registry.Ecosystems
}

// Settings are all settings with the layer that each came from, in the order of the documentation.
// Secrets are not among them: those stand in files of their own.
func (c *Config) Settings() []Setting { return slices.Clone(c.settings) }

// Auth says who may use the gate.
type Auth struct {
	TokensFile string
	Tokens     []Token // read from TokensFile; empty = open to all
}

// Token is one line of the tokens file.
type Token struct {
	Name   string
	Secret Secret
	// ReadOnly says that its holder may not publish.
	ReadOnly bool
}

// Mount is what stands in front of the registries of one ecosystem.
type Mount struct {
	Ecosystem string
	// false: the gate answers as if there were no such mount, and the rest of it means nothing
	Enabled bool
	Public  *url.URL // never nil when enabled
	// hosts that hold files beside Public; links to any other are not served
	Files        []*url.URL
	Private      *url.URL // nil: there is none
	PrivateLogin Login    // the gate's own, for Private
	// PrivateAnonymous says that Private asks for no credential.
	PrivateAnonymous bool
	PrivateFailure   PrivateFailure
	PrivateRules     PrivateRules
	Overlap          Overlap
	FirstParty       []policy.Pattern // packages that resolve privately only
	Mirror           Mirror
	Publish          Publish
	ScopedPath       ScopedPath
}

// Mount is the mount of an ecosystem; one that is not known is off.
func (c *Config) Mount(ecosystem string) *Mount {
	for _, m := range c.Mounts {
		if m.Ecosystem == ecosystem {
			return m
		}
	}
	return &Mount{Ecosystem: ecosystem}
}

// enabled are the mounts that are not switched off.
func (c *Config) enabled() []*Mount {
	return slices.DeleteFunc(slices.Clone(c.Mounts), func(m *Mount) bool { return !m.Enabled })
}

func newConfig(known registry.Ecosystems) *Config {
	c := &Config{known: known}
	for _, e := range known {
		c.Mounts = append(c.Mounts, &Mount{Ecosystem: e.Name})
	}
	return c
}

// key is the full name of one of the mount's keys.
func (m *Mount) key(name string) string { return "mounts." + m.Ecosystem + "." + name }

// PrivateRules says which rules judge the private versions that are not first-party (R105).
type PrivateRules string

// The values of PrivateRules.
const (
	DenyRules PrivateRules = "deny"
	AllRules  PrivateRules = "all"
)

// Overlap says what a name means that both the private and the public registry have.
type Overlap string

// The two meanings: the versions of both, or those of the private registry alone.
const (
	Merge  Overlap = "merge"
	Shadow Overlap = "shadow"
)

// PrivateFailure says what a failing private upstream means for a listing (spec R93).
type PrivateFailure string

// The two ways to take a failing private upstream.
const (
	Refuse  PrivateFailure = "refuse"
	Degrade PrivateFailure = "degrade"
)

// ScopedPath says how each upstream spells the slash of a scoped name: encoded ("/@scope%2fname")
// or literal.
type ScopedPath struct{ Public, Private string }

// The spellings of ScopedPath.
const (
	PathEncoded = "encoded"
	PathLiteral = "literal"
)

// Cache bounds what is kept of public documents.
type Cache struct {
	TTL      time.Duration // how long a public document is served without asking again
	MaxBytes ByteSize
	// documents kept on disk, below the data folder, for the next start; 0 = none
	DiskBytes ByteSize
	// a listing, unpacked
	MaxDocument ByteSize
	// of all listings that are read and rendered at once; 0 = a part of what the process may have
	MaxFetching ByteSize
	// how much older a document may get while its upstream cools; 0 = never served stale
	MaxStale time.Duration
}

// Integrity is the weakest digest that versions may be served with.
type Integrity struct {
	MinPublic  integrity.Floor // never below SHA-256
	MinTrusted integrity.Floor // of private versions
}

// Artifacts bounds what is kept of public files.
type Artifacts struct {
	MaxBytes ByteSize // on disk, below the data folder; 0 = nothing is kept
}

// Serve bounds what the gate takes on.
type Serve struct {
	MaxInFlight int           // requests at once; 0 = as many as the machine bears
	Wait        time.Duration // how long a request may wait for its turn
	// how long a request may wait for the end of a cooldown; 0 = not at all
	Hold        time.Duration
	Drain       time.Duration // how long a stopping gate lets requests finish
	HelpMessage string        // added to every refusal: where a person finds help
	// TrustedProxies are whose X-Forwarded-Host and X-Forwarded-Proto are believed.
	TrustedProxies []netip.Prefix
}

// Egress guards the way out.
type Egress struct {
	CAFile    string   // PEM certificates trusted beside the system's
	CAPem     []byte   // the content of CAFile, checked
	AllowHTTP []string // host:port that may be spoken to in plain http, in canonical form
	// AllowInternal are public upstreams that lie on an internal network on purpose; those of
	// AllowHTTP may as well.
	AllowInternal []cooldown.Authority
	BlockedRanges []netip.Prefix // never dialled for a public upstream
	Proxy         *url.URL       // for all upstreams; nil: those of Proxies
	Proxies       Proxies
}

// Log shapes the log.
type Log struct {
	Format string // auto, json or text
	Level  string // debug, info, warn or error
}

// Telemetry says where traces go.
type Telemetry struct {
	OTLP *url.URL // nil: nowhere
}

// Options are the layers above the defaults, and what Load may ask.
type Options struct {
	File    string            // path of the YAML file; "" = none
	Environ []string          // "KEY=value" lines; only ECLUSE_ variables and proxies are looked at
	Flags   map[string]string // by key path, only those given
	// Ecosystems are those that mounts and rules may speak of.
	Ecosystems registry.Ecosystems
	// ReadFile reads the configuration file and the files it names; nil means os.ReadFile.
	ReadFile func(string) ([]byte, error)
	// Stat looks at the mode of files that hold secrets; nil means os.Stat.
	Stat func(string) (fs.FileInfo, error)
	// Tools are asked for the public upstream of an ecosystem that has no default, when no layer
	// names one. Without a tool a missing one is a problem.
	Tools map[string]func(context.Context) (string, error)
}

// Load merges the layers and checks the outcome whole. The error, if any, is *Problems and lists
// everything that is wrong. Settings of the returned Config are available even then, for a report;
// nothing else of it may be used.
func Load(ctx context.Context, o Options) (*Config, error) {
	if o.ReadFile == nil {
		o.ReadFile = os.ReadFile
	}
	if o.Stat == nil {
		o.Stat = os.Stat
	}
	l := &loader{opts: o, problems: &Problems{File: o.File}, cfg: newConfig(o.Ecosystems)}
	l.readLayers()
	l.readKeys()
	l.readRules()
	l.readBudgets()
	l.refuseUnknown()
	l.askTools(ctx)
	l.checkWhole()
	l.readSecrets()
	return l.cfg, l.problems.orNil()
}

// loader carries one Load from step to step.
type loader struct {
	opts     Options
	layers   []layer // from the weakest to the strongest
	cfg      *Config
	problems *Problems
	// keys whose own value is wrong: what follows from it is not reported again
	failed map[string]bool
}
