package registry

import (
	"fmt"
	"slices"
	"strings"
)

// Ecosystem is what the rest of the gate knows of one ecosystem. Its room defines it, and whoever
// puts a gate together hands it in with the others; no other room names it. The functions are pure
// and safe for concurrent use.
type Ecosystem struct {
	// Name is the word for it in the configuration, in patterns, in paths and in metrics ("npm").
	Name string
	// OSVName is its name in advisories, as OSV spells it.
	OSVName string
	// HasScopes tells that a package's name may lie in a scope, "@scope/name".
	HasScopes bool
	// Mount is what the configuration of its mount has beside what all mounts have.
	Mount Mount
	// Canonical spells a package's name as the ecosystem compares names. It does not validate.
	Canonical func(name string) string
	// ParseVersion reads a version for comparison with others.
	ParseVersion func(text string) (Comparable, error)
}

// Mount is what the configuration of an ecosystem's mount has beside what all mounts have.
type Mount struct {
	// Public is the default of the public upstream. Without one it must be configured, or a tool on
	// the machine is asked.
	Public string
	// Files is the default of the hosts that hold files; empty where all files lie with the
	// listings.
	Files string
	// MirrorLogin tells that a mirror is used with a user name and a password, and shows what it
	// holds on an index of its own; else with a token.
	MirrorLogin bool
	// TokenUser is the user name with which clients send a token as the password; without one they
	// send it as a bearer token.
	TokenUser string
}

// Comparable is a version that can be compared with others of its ecosystem; with one of another,
// the outcome means nothing.
type Comparable interface {
	// Compare is negative, zero or positive as the version is lower than, equal to or higher than
	// other.
	Compare(other Comparable) int
}

// Ecosystems are those that a gate knows, in the order in which people see them.
type Ecosystems []Ecosystem

// Named returns the ecosystem of a name, and whether there is one.
func (e Ecosystems) Named(name string) (Ecosystem, bool) {
	i := slices.IndexFunc(e, func(x Ecosystem) bool { return x.Name == name })
	if i < 0 {
		return Ecosystem{}, false
	}
	return e[i], true
}

// Names lists the names.
func (e Ecosystems) Names() []string {
	names := make([]string, len(e))
	for i := range e {
		names[i] = e[i].Name
	}
	return names
}

// Check refuses a name that no ecosystem has.
func (e Ecosystems) Check(name string) error {
	if _, ok := e.Named(name); !ok {
		return fmt.Errorf("unknown ecosystem %q, use %s", name, strings.Join(e.Names(), " or "))
	}
	return nil
}
