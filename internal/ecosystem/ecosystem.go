// Package ecosystem lists the ecosystems that the product has. What puts a gate together takes them
// from here; everything below is handed what it needs of them, and names none.
package ecosystem

import (
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// All are the ecosystems, in the order in which people see them.
func All() registry.Ecosystems {
	return registry.Ecosystems{
		npm.Definition(),
		pypi.Definition(),
	}
}
