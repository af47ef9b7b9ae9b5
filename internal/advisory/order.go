package advisory

import (
	"errors"
	"strings"

	"github.com/Masterminds/semver/v3"
	pep440 "github.com/aquasecurity/go-pep440-version"

	"github.com/ecluse-gate/ecluse/internal/advisory/osv"
)

// ordered is a version that can be compared with others of its ecosystem.
type ordered interface{ compare(other ordered) int }

// parseVersion reads a version of an ecosystem: semantic versions for npm (ordering only: a pre-release is lower than its release, and
// build metadata does not count), PEP 440 for PyPI.
func parseVersion(ecosystem, text string) (ordered, error) {
	if len(text) > osv.MaxText {
		return nil, errors.New("version too long")
	}
	if ecosystem == "pypi" {
		public, local, has := strings.Cut(text, "+")
		if has { // the library knows only one of the three separators of a local version
			text = public + "+" + strings.NewReplacer("-", ".", "_", ".").Replace(local)
		}
		v, err := pep440.Parse(text)
		return pep440Version{v}, err
	}
	v, err := semver.NewVersion(text)
	return semverVersion{v}, err
}

type semverVersion struct{ *semver.Version }

func (v semverVersion) compare(other ordered) int { return v.Compare(other.(semverVersion).Version) }

type pep440Version struct{ pep440.Version }

func (v pep440Version) compare(other ordered) int { return v.Compare(other.(pep440Version).Version) }

// osvName is the ecosystem as OSV spells it.
func osvName(ecosystem string) string {
	if ecosystem == "pypi" {
		return "PyPI"
	}
	return ecosystem
}
