package gate

import (
	"context"
	"time"

	"github.com/ecluse-gate/ecluse/internal/policy"
)

// Explanation is the verdict on one version, with its reason.
type Explanation struct {
	Version string
	// File is set where one version has several files, each with a verdict of its own.
	File string
	policy.Verdict
}

// Explain judges the public versions of a package as Listing and Artifact do; a version limits it to that one. Its errors are those of
// Listing.
func (g *Gate) Explain(ctx context.Context, name, version string) ([]Explanation, error) {
	got, err := g.publicDocument(ctx, name, g.TTL)
	if err != nil {
		return nil, err
	}
	if got.entry == nil {
		return nil, &NotFound{What: name}
	}
	now, set := time.Now(), g.policy.Load()
	var out []Explanation
	for i, v := range got.entry.doc.Versions() {
		if version != "" && v.Version != version {
			continue
		}
		e := Explanation{Version: v.Version, Verdict: g.verdict(now, set, name, v)}
		if got.entry.elsewhere[i] {
			e.Verdict = policy.Verdict{Rule: "unreachable", Reason: "its file lies on a host that is not configured"}
		}
		if g.Ecosystem.ArtifactPath == nil && len(v.Artifacts) > 0 {
			e.File = v.Artifacts[0].File
		}
		out = append(out, e)
	}
	if len(out) == 0 {
		return nil, &NotFound{What: name + "@" + version}
	}
	return out, nil
}
