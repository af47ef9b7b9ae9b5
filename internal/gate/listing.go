package gate

import (
	"context"
	"errors"
	"time"

	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// ListingRequest asks for one representation of a package's listing.
type ListingRequest struct {
	Name string
	Form string
	// Base is the mount's address as this client sees it, without a trailing slash.
	Base string
	// Authorization is the caller's credential; only the private upstream sees it.
	Authorization string
}

// Degradation says why a listing is not the complete and current one.
type Degradation string

// The reasons, which are also the label of the metric.
const (
	Complete Degradation = ""
	// DegradedCooldown: public versions are missing while their authority cools (R43)
	DegradedCooldown Degradation = "cooldown"
	// DegradedRetained: from before the cooldown, and older than its time (R87)
	DegradedRetained Degradation = "retained"
	// DegradedPrivate: the private upstream failed (R93)
	DegradedPrivate Degradation = "private"
	// DegradedTransient: the public upstream failed, and the private one resolved
	DegradedTransient Degradation = "upstream"
)

// Listing is a rendered listing and how to serve it.
type Listing struct {
	*Rendered
	Degraded Degradation
	// Cooldown is the cooldown for which it is degraded; nil when it is not, or for another reason
	// alone.
	Cooldown *Unavailable
}

// As is the listing under another media type that its form may have.
func (l *Listing) As(contentType string) *Listing {
	other := *l
	r := *l.Rendered
	r.contentType = contentType
	other.Rendered = &r
	return &other
}

// Listing gives a package's listing: the private versions, and the public ones that the rules
// admit. Its errors are *NotFound, *Denied, *Forbidden, *Unavailable and *BadUpstream; anything
// else is a fault of ours.
func (g *Gate) Listing(ctx context.Context, r ListingRequest) (*Listing, error) {
	l, err := g.listing(ctx, r)
	if err != nil {
		g.countDecision("listing", "metadata", err)
		return nil, err
	}
	g.countListing(l.Degraded, l.Cooldown)
	return l, nil
}

func (g *Gate) listing(ctx context.Context, r ListingRequest) (*Listing, error) {
	res, err := g.resolve(ctx, r.Name, r.Authorization)
	if err != nil {
		return nil, err
	}
	l := &Listing{Degraded: res.degraded, Cooldown: res.cooldown()}
	if res.private == nil {
		l.Rendered, err = g.renderPublic(r, res.public)
	} else {
		l.Rendered, err = g.renderMerged(r, res)
	}
	if err != nil {
		return nil, res.no(err, false)
	}
	if l.Degraded != Complete && l.Degraded != DegradedRetained {
		l.Rendered = l.Rendered.marked() // never to answer for the complete one (R43, R49)
	}
	return l, nil
}

// Version gives the object of one version, by its number or a dist-tag of the listing, under the
// same rules and with the same errors as Listing.
func (g *Gate) Version(ctx context.Context, r ListingRequest, selector string) (*Listing, error) {
	l, err := g.oneVersion(ctx, r, selector)
	if err != nil {
		g.countDecision("listing", "metadata", err)
		return nil, err
	}
	g.countListing(l.Degraded, l.Cooldown)
	return l, nil
}

func (g *Gate) oneVersion(ctx context.Context, r ListingRequest, selector string) (*Listing, error) {
	res, err := g.resolve(ctx, r.Name, r.Authorization)
	if err != nil {
		return nil, err
	}
	out, named, err := g.pick(r, res, selector)
	// it may have been published since
	if isDenial(err) && !named && res.public != nil && res.missing == nil {
		got, unread := g.confirmed(ctx, r.Name, fetched{entry: res.public, fresh: res.fresh})
		switch {
		case unread != nil:
			res.missing = unread
		case got.entry != res.public || got.stale != nil:
			res = res.with(got)
			out, named, err = g.pick(r, res, selector)
		}
	}
	if err != nil {
		return nil, res.no(err, named)
	}
	return &Listing{Rendered: newRendered(out, nil), Degraded: res.degraded, Cooldown: res.cooldown()}, nil
}

// pick renders one version of what resolved. Named tells that an error is the verdict on that very
// version.
func (g *Gate) pick(r ListingRequest, res resolved, selector string) (out registry.Rendering, named bool, err error) {
	now := time.Now()
	parts, _, err := g.parts(now, g.policy.Load(), r.Name, res)
	if err == nil {
		var ok bool
		if out, ok, err = g.Ecosystem.RenderVersion(g.view(r, parts), selector); ok || err != nil {
			return out, false, err
		}
		err = &NotFound{What: r.Name + "@" + selector}
	}
	if denied := g.deniedVersion(now, r.Name, res, selector); denied != nil {
		return out, true, denied
	}
	return out, false, err
}

// deniedVersion is the verdict on a version that the documents hold, when it is one against it. The
// private one wins.
func (g *Gate) deniedVersion(now time.Time, name string, res resolved, version string) error {
	if res.private != nil {
		if i := res.private.Lookup(version); i >= 0 {
			return g.floor(name, res.private.Versions()[i], g.MinTrusted)
		}
	}
	if res.public != nil {
		if i := res.public.doc.Lookup(version); i >= 0 {
			return g.admitVersion(now, name, res.public.doc.Versions()[i])
		}
	}
	return nil
}

// resolved is what the upstreams hold of a package.
type resolved struct {
	private  registry.Document
	public   *entry
	fresh    bool // public was read for this request
	degraded Degradation
	// failed is the failure of the private side that the mount tolerates, and missing that of the
	// public one, or the cooldown for which its document is not a fresh one. With either, what the
	// documents do not hold is not absent (R99).
	failed  *Unavailable
	missing error
}

// with is res with what a public read gave.
func (res resolved) with(got fetched) resolved {
	res.public, res.fresh = got.entry, got.fresh
	if got.stale != nil {
		res.missing = got.stale
		if res.failed == nil {
			res.degraded = DegradedRetained
		}
	}
	return res
}

// cooldown is the cooldown because of which not everything is there or fresh; nil when there is
// none.
func (res resolved) cooldown() *Unavailable {
	if wait, ok := errors.AsType[*Unavailable](res.missing); ok && wait.Cooldown {
		return wait
	}
	return nil
}

// resolve asks the private upstream, then the public one.
func (g *Gate) resolve(ctx context.Context, name, authorization string) (resolved, error) {
	private, failed, err := g.privatePart(ctx, name, authorization)
	if err != nil {
		return resolved{}, err
	}
	res := resolved{private: private, failed: failed}
	if failed != nil {
		res.degraded = DegradedPrivate
	}
	if !g.firstParty(name) {
		got, err := g.publicDocument(ctx, name, g.TTL)
		if err != nil {
			return g.withoutPublic(res, err)
		}
		res = res.with(got)
	}
	if res.private == nil && res.public == nil {
		return resolved{}, res.no(&NotFound{What: name}, false)
	}
	return res, nil
}

// withoutPublic serves the private versions while the public upstream cannot answer, and says so
// (R43); with none to serve, the client hears of the public trouble, or of the longer wait of two
// (R44).
func (g *Gate) withoutPublic(res resolved, cause error) (resolved, error) {
	_, transient := errors.AsType[*Unavailable](cause)
	_, bad := errors.AsType[*BadUpstream](cause)
	servable := 0
	if res.private != nil {
		_, servable = g.trusted(res.private)
	}
	if servable == 0 || !transient && !bad {
		return resolved{}, orFailed(res.failed, cause)
	}
	res.degraded, res.missing = DegradedTransient, cause
	if res.cooldown() != nil {
		res.degraded = DegradedCooldown
	}
	return res, nil
}

// privatePart reads the private upstream. A failure that the mount tolerates comes back as failed,
// any other as the error, joined with a cooldown that the client will meet anyway (R44).
func (g *Gate) privatePart(ctx context.Context, name, authorization string) (doc registry.Document, failed *Unavailable, err error) {
	if g.Private == nil {
		return nil, nil, nil
	}
	doc, err = g.privateDocument(ctx, name, authorization)
	wait, ok := errors.AsType[*Unavailable](err)
	switch {
	case !ok:
		return doc, nil, err
	case g.DegradePrivate:
		return nil, wait, nil
	case g.firstParty(name):
		return nil, nil, wait
	}
	return nil, nil, longest(wait, g.cooling())
}

// cooling tells of a cooldown without asking for anything.
func (g *Gate) cooling() *Unavailable {
	wait, closed := g.Public.Remaining(time.Now())
	if !closed {
		return nil
	}
	e := g.cooled(g.Public, wait)
	e.Reason += ", and the private one fails"
	return e
}

// admission is which versions of a public document the rules admit now, and until when that stays
// so.
type admission struct {
	keep  []bool
	count int
	until time.Time // zero: for ever
}

// admit is verdict over a whole document, without the words.
func (g *Gate) admit(now time.Time, set *policy.Set, name string, e *entry) admission {
	versions := e.doc.Versions()
	a := admission{keep: make([]bool, len(versions))}
	for i := range versions {
		if e.elsewhere[i] {
			continue
		}
		if !g.MinPublic.Meets(versions[i]) {
			g.Metrics.Denial(FloorRule)
			continue
		}
		ok, rule, at := set.Admits(now, policy.Subject{Package: g.pkg(name), Version: versions[i]})
		a.keep[i] = ok
		if ok {
			a.count++
			continue
		}
		g.Metrics.Denial(rule)
		if !at.IsZero() && (a.until.IsZero() || at.Before(a.until)) {
			a.until = at
		}
	}
	return a
}

// deniedListing explains a listing with nothing to serve by the version that will be admitted
// first, or else by the last one.
func (g *Gate) deniedListing(now time.Time, set *policy.Set, name string, e *entry) error {
	versions := e.doc.Versions()
	if len(versions) == len(e.elsewhere) {
		if e.doc.Dropped()+len(e.elsewhere) > 0 {
			return &BadUpstream{Reason: "the public registry's document contains no usable version"}
		}
		return &NotFound{What: "any version of " + name}
	}
	var best policy.Verdict
	what := name
	for i, v := range versions {
		if e.elsewhere[i] {
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
	if !g.MinPublic.Meets(v) {
		return floorVerdict(g.MinPublic)
	}
	return set.Evaluate(now, policy.Subject{Package: g.pkg(name), Version: v})
}

func (g *Gate) admitVersion(now time.Time, name string, v registry.Version) error {
	verdict := g.verdict(now, g.policy.Load(), name, v)
	if verdict.Admit {
		return nil
	}
	g.Metrics.Denial(verdict.Rule)
	return &Denied{What: name + "@" + v.Version, Verdict: verdict}
}

// countDecision moves the decision and refusal counters, once for each client request (R80, R82).
func (g *Gate) countDecision(kind, read string, err error) {
	decision := "unavailable"
	if err == nil {
		decision = "admit"
	} else if wait, ok := errors.AsType[*Unavailable](err); ok {
		g.countCooldown(read, wait)
	} else if isDenial(err) {
		decision = "deny"
	}
	g.Metrics.Decision(g.Ecosystem.Name, kind, decision)
}

// countListing is countDecision for a listing that is served, although something may be missing
// from it.
func (g *Gate) countListing(degraded Degradation, cooldown *Unavailable) {
	g.Metrics.Decision(g.Ecosystem.Name, "listing", "admit")
	if degraded != Complete {
		g.Metrics.Degraded(g.Ecosystem.Name, string(degraded))
	}
	if cooldown != nil {
		g.countCooldown("metadata", cooldown)
	}
}

// countCooldown counts one client request whose answer is what it is because of a cooldown:
// refused, degraded or retained. The one whose read met the throttled answer is an attempt and no
// refusal (R80).
func (g *Gate) countCooldown(read string, e *Unavailable) {
	if e.Cooldown && !e.Forwarded {
		g.Metrics.Refusal(e.Authority, read)
	}
}

func isDenial(err error) bool { return is[*Denied](err) || is[*Forbidden](err) || is[*NotFound](err) }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
