// Package ecosystemtest gives the rooms that name no ecosystem some to be tested with.
package ecosystemtest

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// All are two ecosystems that the product has, without what only serving needs: the rooms that are
// tested with them lie below that.
func All() registry.Ecosystems {
	return registry.Ecosystems{npm.Definition(), pypi.Definition()}
}

// Named is one of All. It panics when there is none of that name.
func Named(name string) registry.Ecosystem {
	e, ok := All().Named(name)
	if !ok {
		panic("no ecosystem " + name)
	}
	return e
}

// Toy is an ecosystem that the product does not have, unlike all that it has: names do not know
// capitals, and versions are letters, "a" the highest.
func Toy() registry.Ecosystem {
	return registry.Ecosystem{
		Name: "toy", OSVName: "ToyBox",
		Canonical:    strings.ToLower,
		ParseVersion: parseLetter,
	}
}

type letter string

func parseLetter(text string) (registry.Comparable, error) {
	if len(text) != 1 || text < "a" || text > "z" {
		return nil, fmt.Errorf("%q is not one letter", text)
	}
	return letter(text), nil
}

// Compare implements registry.Comparable.
func (v letter) Compare(other registry.Comparable) int {
	o, _ := other.(letter)
	return cmp.Compare(o, v)
}
