package pypi

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	pep440 "github.com/aquasecurity/go-pep440-version"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// pep440Version is a version of PEP 440. Most are plain releases, numbers and dots, which are
// compared here; the library, which takes some microseconds for a comparison, is asked about all
// others.
type pep440Version struct {
	release []uint64 // of a plain release, without zeros at the end; else nil

	text string
	once sync.Once // guards the reading of full from text
	full pep440.Version
}

func parsePEP440(text string) (registry.Comparable, error) {
	public, local, has := strings.Cut(text, "+")
	if has { // the library knows only one of the three separators of a local version
		text = public + "+" + strings.NewReplacer("-", ".", "_", ".").Replace(local)
	}
	v := &pep440Version{text: text, release: plainRelease(text)}
	if v.release != nil {
		return v, nil
	}
	var err error
	v.once.Do(func() { v.full, err = pep440.Parse(text) })
	return v, err
}

// Compare implements registry.Comparable.
func (v *pep440Version) Compare(other registry.Comparable) int {
	o, _ := other.(*pep440Version) // one package's versions are of one ecosystem
	if v.release != nil && o.release != nil {
		return slices.Compare(v.release, o.release)
	}
	return v.whole().Compare(o.whole())
}

func (v *pep440Version) whole() pep440.Version {
	v.once.Do(func() { v.full, _ = pep440.Parse(v.text) }) // a plain release is a version
	return v.full
}

// plainRelease reads numbers separated by dots, and drops the zeros at the end but one; nil for
// anything else.
func plainRelease(text string) []uint64 {
	release := make([]uint64, 0, 4)
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil || part[0] == '+' {
			return nil
		}
		release = append(release, n)
	}
	for len(release) > 1 && release[len(release)-1] == 0 {
		release = release[:len(release)-1]
	}
	return release
}
