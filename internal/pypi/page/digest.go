package page

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// algorithms are the digests that an index may advertise and that are known here, strongest first.
var algorithms = [...]struct {
	name string
	size int
}{{"sha512", 64}, {"sha384", 48}, {"sha256", 32}, {"sha224", 28}, {"sha1", 20}, {"md5", 16}}

// sums keeps the digests of all files: a few large arrays instead of many small ones.
type sums struct {
	digests []registry.Digest
	bytes   []byte
}

// add reads one digest in hex. It reports false for a value that the algorithm cannot have: nothing
// could ever match it. An algorithm that is not known here is left out, with any value.
func (a *sums) add(algorithm, value string) bool {
	for _, known := range &algorithms {
		if known.name != algorithm && !strings.EqualFold(known.name, algorithm) {
			continue
		}
		if len(value) != 2*known.size {
			return false
		}
		var encoded [128]byte
		start := len(a.bytes)
		out, err := hex.AppendDecode(a.bytes, encoded[:copy(encoded[:], value)])
		if err != nil {
			return false
		}
		a.bytes = out
		a.digests = append(a.digests, registry.Digest{Algorithm: known.name, Sum: out[start:len(out):len(out)]})
		return true
	}
	return true
}

// since returns the digests that were added from a position on, strongest first. An algorithm that
// was given twice gives none, and false: readers would take different ones.
func (a *sums) since(first int) ([]registry.Digest, bool) {
	added := a.digests[first:len(a.digests):len(a.digests)]
	if len(added) < 2 {
		return added, true
	}
	slices.SortStableFunc(added, func(x, y registry.Digest) int { return len(y.Sum) - len(x.Sum) })
	for i := range added[1:] {
		if added[i].Algorithm == added[i+1].Algorithm {
			return nil, false
		}
	}
	return added, true
}

// fragment chooses the one digest that a link can carry: SHA-256, which every installer reads (PEP
// 503), else the strongest.
func fragment(digests []registry.Digest) *registry.Digest {
	for i := range digests {
		if digests[i].Algorithm == "sha256" {
			return &digests[i]
		}
	}
	if len(digests) > 0 {
		return &digests[0]
	}
	return nil
}

// appendDigest writes algorithm=hex.
func appendDigest(out []byte, g *registry.Digest) []byte {
	out = append(out, g.Algorithm...)
	out = append(out, '=')
	return hex.AppendEncode(out, g.Sum)
}
