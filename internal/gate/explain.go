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
	// Private reports that the private registry has it: clients get it from there, or not at all.
	Private bool
	// Hidden reports a public version that clients do not meet, since the private registry has one
	// of the same name.
	Hidden bool
	policy.Verdict
}

// Explain judges the versions of a package as Listing and Artifact do, on both sides: the private
// registry is read with the credential that is given, and what it does not show so is not judged. A
// version limits it to that one. No public upstream is asked about a name that resolves privately
// only. Its errors are those of Listing.
func (g *Gate) Explain(ctx context.Context, name, version, authorization string) ([]Explanation, error) {
	if g.firstParty(name) {
		return []Explanation{{Version: cmp.Or(version, "*"), Private: true, Verdict: policy.Verdict{
			Admit: true, Rule: "first-party", Reason: "a first-party name comes from the private registry only; no rule judges it",
		}}}, nil
	}
	what, asked := name, anything
	if version != "" {
		what, asked = name+"@"+version, func(v registry.Version) bool { return v.Version == version }
	}
	var private registry.Document
	if g.opts.Private != nil {
		private, _ = g.privateListing(ctx, name, authorization) // it may want a client's credential
	}
	if g.privateOnly(name) { // shadowed
		if out := g.explainPrivate(resolved{private: private}, name, asked); out != nil {
			return out, nil
		}
		return []Explanation{{Version: cmp.Or(version, "*"), Private: true, Verdict: policy.Verdict{
			Admit: true, Rule: "overlap", Reason: "this name comes from the private registry only, which does not show it here",
		}}}, nil
	}
	doc, err := g.find(ctx, name, what, func(d registry.Document) bool { return slices.ContainsFunc(d.Versions(), asked) })
	if err != nil && (private == nil || !slices.ContainsFunc(private.Versions(), asked)) {
		return nil, err
	}
	res := resolved{private: private, public: doc, missing: err}
	out := g.explainPrivate(res, name, asked)
	if doc == nil {
		return out, nil
	}
	now, set := time.Now(), g.Rules()
	for i, v := range doc.Versions() {
		if !asked(v) {
			continue
		}
		e := Explanation{Version: v.Version, File: g.fileOf(v), Verdict: g.verdict(now, set, name, v), Hidden: has(private, v)}
		if doc.Elsewhere(i) {
			e.Verdict = policy.Verdict{Rule: "unreachable", Reason: "its file is on a host that is not configured"}
		}
		out = append(out, e)
	}
	return out, nil
}

// explainPrivate judges what the private registry has.
func (g *Gate) explainPrivate(res resolved, name string, asked func(registry.Version) bool) []Explanation {
	if res.private == nil {
		return nil
	}
	now, set := time.Now(), g.Rules()
	var out []Explanation
	for _, v := range res.private.Versions() {
		if !asked(v) {
			continue
		}
		e := Explanation{Version: v.Version, File: g.fileOf(v), Private: true, Verdict: policy.Verdict{
			Admit: true, Rule: "private", Reason: "the private registry has it, and no rule refuses it",
		}}
		if denial, _ := g.judgedPrivate(now, set, name, res.published(v)); denial != nil {
			e.Verdict = *denial
			e.Reason = "the private registry has it: " + e.Reason
		}
		out = append(out, e)
	}
	return out
}

// fileOf is the file of an entry where a version may have several.
func (g *Gate) fileOf(v registry.Version) string {
	if g.opts.Ecosystem.ArtifactPath == nil && len(v.Artifacts) > 0 {
		return v.Artifacts[0].File
	}
	return ""
}

// has reports whether a document has an entry of the same name as another's.
func has(doc registry.Document, v registry.Version) bool {
	if doc == nil {
		return false
	}
	return doc.Lookup(v.Version) >= 0 || len(v.Artifacts) > 0 && doc.Lookup(v.Artifacts[0].File) >= 0
}
