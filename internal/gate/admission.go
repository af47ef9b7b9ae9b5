package gate

import (
	"time"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// FloorRule is the name under which denials for weak integrity are reported and counted.
const FloorRule = "integrity-floor"

func floorVerdict(f integrity.Floor) policy.Verdict {
	return policy.Verdict{Rule: FloorRule, Reason: "its listing has no digest of " + f.String() + " or stronger, so the file cannot be verified"}
}

// admission is which versions of a public document the rules admit now, and until when that stays
// so.
type admission struct {
	keep  []bool
	count int
	until time.Time // zero: for ever
}

// admit is verdict over a whole document, without the words.
func (g *Gate) admit(now time.Time, set *policy.Set, name string, e *documents.Document) admission {
	versions := e.Versions()
	a := admission{keep: make([]bool, len(versions))}
	for i := range versions {
		if e.Elsewhere(i) {
			continue
		}
		if !g.opts.MinPublic.Meets(versions[i]) {
			g.opts.Metrics.Denial(FloorRule)
			continue
		}
		ok, rule, at := set.Admits(now, policy.Subject{Package: g.pkg(name), Version: versions[i]})
		a.keep[i] = ok
		if ok {
			a.count++
			continue
		}
		g.opts.Metrics.Denial(rule)
		if !at.IsZero() && (a.until.IsZero() || at.Before(a.until)) {
			a.until = at
		}
	}
	return a
}

// deniedListing explains a listing with nothing to serve by the version that will be admitted
// first, or else by the last one.
func (g *Gate) deniedListing(now time.Time, set *policy.Set, name string, e *documents.Document) error {
	versions := e.Versions()
	if len(versions) == e.CountElsewhere() {
		if e.Dropped()+e.CountElsewhere() > 0 {
			return &BadUpstream{Reason: "the public registry's document contains no usable version"}
		}
		return &NotFound{What: "any version of " + name}
	}
	var best policy.Verdict
	what := name
	for i, v := range versions {
		if e.Elsewhere(i) {
			continue
		}
		verdict := g.verdict(now, set, name, v)
		sooner := !verdict.AdmittedAt.IsZero() && (best.AdmittedAt.IsZero() || verdict.AdmittedAt.Before(best.AdmittedAt))
		if sooner || best.AdmittedAt.IsZero() {
			best, what = verdict, name+"@"+v.Version
		}
	}
	return &Denied{What: what, Verdict: best}
}

// verdict is the one admission of a public version: its integrity, then the rules.
func (g *Gate) verdict(now time.Time, set *policy.Set, name string, v registry.Version) policy.Verdict {
	if !g.opts.MinPublic.Meets(v) {
		return floorVerdict(g.opts.MinPublic)
	}
	return set.Evaluate(now, policy.Subject{Package: g.pkg(name), Version: v})
}

func (g *Gate) admitVersion(now time.Time, name string, v registry.Version) error {
	verdict := g.verdict(now, g.Rules(), name, v)
	if verdict.Admit {
		return nil
	}
	g.opts.Metrics.Denial(verdict.Rule)
	return &Denied{What: name + "@" + v.Version, Verdict: verdict}
}
