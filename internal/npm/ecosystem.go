package npm

import (
	"github.com/Masterminds/semver/v3"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Definition is npm as an ecosystem. Names are compared as they are. Versions are semantic ones; a
// pre-release is lower than its release, and build metadata does not count.
func Definition() registry.Ecosystem {
	return registry.Ecosystem{
		Name: Ecosystem, OSVName: "npm", HasScopes: true,
		Canonical:    func(name string) string { return name },
		ParseVersion: parseOrdered,
	}
}

type orderedVersion struct{ *semver.Version }

func parseOrdered(text string) (registry.Comparable, error) {
	v, err := semver.NewVersion(text)
	return orderedVersion{v}, err
}

// Compare implements registry.Comparable.
func (v orderedVersion) Compare(other registry.Comparable) int {
	o, _ := other.(orderedVersion)
	return v.Version.Compare(o.Version)
}
