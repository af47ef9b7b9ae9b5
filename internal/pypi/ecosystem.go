package pypi

import (
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Definition is the Python index as an ecosystem. Names are compared as PEP 503 says, versions as
// PEP 440 does.
func Definition() registry.Ecosystem {
	return registry.Ecosystem{
		Name: Ecosystem, OSVName: "PyPI",
		Mount:        registry.Mount{Public: "https://pypi.org/simple/", Files: "https://files.pythonhosted.org", MirrorLogin: true, TokenUser: "__token__"},
		Canonical:    naming.Normalize,
		ParseVersion: parsePEP440,
	}
}
