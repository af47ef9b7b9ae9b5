package gate

import (
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// FloorRule is the name under which denials for weak integrity are reported and counted.
const FloorRule = "integrity-floor"

// floor denies a version whose integrity is too weak to verify its file.
func (g *Gate) floor(name string, v registry.Version, f integrity.Floor) error {
	if f.Meets(v) {
		return nil
	}
	g.Metrics.Denial(FloorRule)
	return &Denied{What: name + "@" + v.Version, Verdict: floorVerdict(f)}
}

func floorVerdict(f integrity.Floor) policy.Verdict {
	return policy.Verdict{Rule: FloorRule, Reason: "its listing has no digest of " + f.String() + " or stronger, so the file cannot be verified"}
}
