package gate

import (
	"fmt"

	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Floor is the weakest integrity that a version may be served with.
type Floor int

// The floors, weakest first. NoFloor serves versions without any digest.
const (
	NoFloor Floor = iota
	SHA1
	SHA256
	SHA384
	SHA512
)

// ParseFloor reads a floor by its algorithm's name; "none" is NoFloor.
func ParseFloor(name string) (Floor, error) {
	if name == "none" {
		return NoFloor, nil
	}
	if f := strength(name); f != NoFloor {
		return f, nil
	}
	return 0, fmt.Errorf("integrity floor %q: use sha512, sha384, sha256, sha1 or none", name)
}

// String is the algorithm's name.
func (f Floor) String() string { return [...]string{"none", "sha1", "sha256", "sha384", "sha512"}[f] }

func strength(algorithm string) Floor {
	for f := SHA1; f <= SHA512; f++ {
		if f.String() == algorithm {
			return f
		}
	}
	return NoFloor
}

// FloorRule is the name under which denials for weak integrity are reported and counted.
const FloorRule = "integrity-floor"

// meets reports whether every file of a version has a digest of at least the floor.
func (f Floor) meets(v registry.Version) bool {
	for _, a := range v.Artifacts {
		best := NoFloor
		for _, d := range a.Digests {
			best = max(best, strength(d.Algorithm))
		}
		if best < f {
			return false
		}
	}
	return true
}

// floor denies a version whose integrity is too weak to be proved.
func (g *Gate) floor(name string, v registry.Version, f Floor) error {
	if f.meets(v) {
		return nil
	}
	g.Metrics.Denial(FloorRule)
	return &Denied{What: name + "@" + v.Version, Verdict: floorVerdict(f)}
}

func floorVerdict(f Floor) policy.Verdict {
	return policy.Verdict{Rule: FloorRule, Reason: "its listing names no digest of at least " + f.String() + ", so the file cannot be proved"}
}
