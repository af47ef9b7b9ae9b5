package gate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Explanation is the verdict on one version, with its reason.
type Explanation struct {
	Version string
	// File is set where one version has several files, each with a verdict of its own.
	File string
	policy.Verdict
}

// Explain judges the public versions of a package as Listing and Artifact do; a version limits it
// to that one. Nobody is asked about a first-party name. Its errors are those of Listing.
func (g *Gate) Explain(ctx context.Context, name, version string) ([]Explanation, error) {
	if g.firstParty(name) {
		return []Explanation{{Version: cmp.Or(version, "*"), Verdict: policy.Verdict{
			Admit: true, Rule: "first-party", Reason: "a first-party name comes from the private registry only; no rule judges it",
		}}}, nil
	}
	what, asked := name, anything
	if version != "" {
		what, asked = name+"@"+version, func(v registry.Version) bool { return v.Version == version }
	}
	doc, err := g.find(ctx, name, what, func(d registry.Document) bool { return slices.ContainsFunc(d.Versions(), asked) })
	if err != nil {
		return nil, err
	}
	now, set := time.Now(), g.Rules()
	var out []Explanation
	for i, v := range doc.Versions() {
		if !asked(v) {
			continue
		}
		e := Explanation{Version: v.Version, Verdict: g.verdict(now, set, name, v)}
		if doc.Elsewhere(i) {
			e.Verdict = policy.Verdict{Rule: "unreachable", Reason: "its file is on a host that is not configured"}
		}
		if g.opts.Ecosystem.ArtifactPath == nil && len(v.Artifacts) > 0 {
			e.File = v.Artifacts[0].File
		}
		out = append(out, e)
	}
	return out, nil
}
