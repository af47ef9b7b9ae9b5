// Package ecosystem lists the ecosystems that the product has. The command takes them from here and
// hands them on; everything below is given what it needs of them, and names none.
package ecosystem

import (
	"github.com/ecluse-gate/ecluse/internal/npm/npmserving"
	"github.com/ecluse-gate/ecluse/internal/pypi/pypiserving"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// All are the ecosystems, in the order in which people see them.
func All() serving.Ecosystems {
	return serving.Ecosystems{
		npmserving.Ecosystem(),
		pypiserving.Ecosystem(),
	}
}
