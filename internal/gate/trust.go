package gate

import (
	"context"
	"time"

	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// What the private registry holds under a name that is not first-party may be a copy of a public
// version, and a copy is judged like the original: deny rules, freeze dates and advisories hold
// wherever a version comes from (R105). Rules that admit, and with them the age, trust the registry
// unless Options.JudgePrivate says otherwise.

// judgedPrivate gives the verdict on a version of the private registry; dated tells that its
// publish time decided, which for a copy is that of the copying. A nil verdict is none against it.
func (g *Gate) judgedPrivate(now time.Time, set *policy.Set, name string, v registry.Version) (verdict *policy.Verdict, dated bool) {
	if !g.opts.MinTrusted.Meets(v) {
		floor := floorVerdict(g.opts.MinTrusted)
		return &floor, false
	}
	if g.firstParty(name) {
		return nil, false
	}
	subject := policy.Subject{Package: g.pkg(name), Version: v}
	if g.opts.JudgePrivate {
		if all := set.Evaluate(now, subject); !all.Admit {
			return &all, true
		}
		return nil, false
	}
	denial, dated, denied := set.Denies(now, subject)
	if !denied {
		return nil, false
	}
	return &denial, dated
}

// published is a private version as it is judged: with the publish time of the public one that it
// may be a copy of, where that is known.
func (res resolved) published(v registry.Version) registry.Version {
	if res.public == nil {
		return v
	}
	i := res.public.Lookup(v.Version)
	if i < 0 && len(v.Artifacts) > 0 { // where each file is an entry
		i = res.public.Lookup(v.Artifacts[0].File)
	}
	if i >= 0 && !res.public.Versions()[i].Published.IsZero() {
		v.Published = res.public.Versions()[i].Published
	}
	return v
}

// trusted is which private versions may be served; denied hears of the rules against the others.
func (g *Gate) trusted(now time.Time, set *policy.Set, name string, res resolved, denied func(rule string)) (keep []bool, count int) {
	versions := res.private.Versions()
	keep = make([]bool, len(versions))
	for i, v := range versions {
		if verdict, _ := g.judgedPrivate(now, set, name, res.published(v)); verdict != nil {
			denied(verdict.Rule)
			continue
		}
		keep[i] = true
		count++
	}
	return keep, count
}

// deniedPrivate is the verdict against a version that the private registry has; nil when there is
// none. Where the publish time decides and the public side does not answer, it is that.
func (g *Gate) deniedPrivate(now time.Time, set *policy.Set, name string, res resolved, i int) error {
	v := res.private.Versions()[i]
	verdict, dated := g.judgedPrivate(now, set, name, res.published(v))
	switch {
	case verdict == nil:
		return nil
	case dated && res.public == nil && res.missing != nil:
		return res.missing
	}
	g.opts.Metrics.Denial(verdict.Rule)
	return &Denied{What: name + "@" + v.Version, Verdict: *verdict}
}

// admitPrivate decides about one private version whose file, or whose object, is asked for. Where
// the publish time decides, that of the public version is read first.
func (g *Gate) admitPrivate(ctx context.Context, name, key string, v registry.Version) error {
	now, set := time.Now(), g.Rules()
	verdict, dated := g.judgedPrivate(now, set, name, v)
	if dated && !g.privateOnly(name) {
		public, err := g.version(ctx, name, key, name+" "+key, anything)
		switch {
		case err == nil && !public.Published.IsZero():
			v.Published = public.Published
			verdict, _ = g.judgedPrivate(now, set, name, v)
		case err != nil && !isDenial(err):
			return err // whether it is a copy of an older one is unknown for now
		}
	}
	if verdict == nil {
		return nil
	}
	g.opts.Metrics.Denial(verdict.Rule)
	return &Denied{What: name + "@" + v.Version, Verdict: *verdict}
}
