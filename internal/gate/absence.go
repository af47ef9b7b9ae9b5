package gate

import (
	"context"
	"errors"
	"time"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// What is not fresh says yes, never no (R99): a version that was published since is not in it.
// Absences of public versions and files are found by find alone, and what a listing or a version
// object is refused for passes through resolved.no.

// find gives the public document of a package in which has finds what was asked for. That it is
// absent is believed of a confirmed document alone; where none can be had, the error says why and
// when it may be. A confirmed absence is a *NotFound.
func (g *Gate) find(ctx context.Context, name, what string, has func(registry.Document) bool) (*documents.Document, error) {
	got, err := g.documents.Get(ctx, name, g.opts.TTL)
	if err == nil && got.Document != nil && !has(got.Document) {
		got, err = g.confirmed(ctx, name, got)
	}
	absent := &NotFound{What: what}
	if wait, ok := errors.AsType[*Unavailable](err); ok {
		return nil, unsure(absent, wait)
	}
	switch {
	case err != nil:
		return nil, err
	case got.Document != nil && has(got.Document):
		return got.Document, nil
	case got.State == documents.Retained:
		return nil, unsure(absent, got.Cooldown)
	}
	return nil, absent
}

// confirmed gives a document in which an absence may be believed, unless it is retained: one that
// was read for this request, or, while the authority is open, within missTTL by this process. What
// an absence makes final, as it does for a mirror job, is believed of the first kind alone.
func (g *Gate) confirmed(ctx context.Context, name string, got documents.Answer) (documents.Answer, error) {
	if got.Confirmed || got.State == documents.Retained {
		return got, nil
	}
	maxAge := min(missTTL, g.opts.TTL)
	if _, closed := g.opts.Public.Remaining(time.Now()); closed || got.Document.Earlier() || upstream.IsBackground(ctx) {
		maxAge = 0
	}
	return g.documents.Get(ctx, name, maxAge)
}

// holding is a has of find: the document has an entry, and want finds in it what is wanted.
func holding(key string, want func(registry.Version) bool) func(registry.Document) bool {
	return func(doc registry.Document) bool {
		i := doc.Lookup(key)
		return i >= 0 && want(doc.Versions()[i])
	}
}

func anything(registry.Version) bool { return true }

// listed reports whether the facts of a version lead to the file that is asked for.
func (g *Gate) listed(r ArtifactRequest, v registry.Version) bool {
	return len(v.Artifacts) > 0 && (!r.Companion || v.Artifacts[0].Companion != nil) &&
		(g.opts.Ecosystem.ArtifactPath != nil || g.owns(v.Artifacts[0].URL))
}

// no is what a client hears instead of err, with which the documents that resolved refuse it. A
// side that failed may hold what was asked for, and a document that is not fresh may lack a version
// that would be admitted: then it is not now, instead of no. A denial of the version that was named
// stays one while its authority cools (R40), since what a registry says of a published version does
// not change; while the private side fails it does not, since a private version would win.
func (res resolved) no(err error, named bool) error {
	if !isDenial(err) && !is[*BadUpstream](err) {
		return err
	}
	wait, transient := errors.AsType[*Unavailable](res.missing)
	switch {
	case named && is[*Denied](err):
		return orFailed(res.failed, err)
	case res.failed != nil:
		return unsure(err, refusal.Longest(wait, res.failed))
	case res.missing == nil:
		return err
	case transient:
		return unsure(err, wait)
	}
	return res.missing
}

// orFailed is what a client hears when the private side, which is asked first, failed, and the
// public one does not serve either.
func orFailed(failed *Unavailable, err error) error {
	wait, transient := errors.AsType[*Unavailable](err)
	switch {
	case failed != nil && transient:
		return refusal.Longest(wait, failed)
	case failed != nil && isDenial(err):
		return unsure(err, failed)
	}
	return err
}

// unsure is the wait for which nobody knows whether something is absent, and says what.
func unsure(err error, wait *Unavailable) *Unavailable {
	absent, ok := errors.AsType[*NotFound](err)
	if !ok {
		return wait
	}
	e := *wait
	e.Reason = "whether " + absent.What + " is in the registry is unknown for now: " + wait.Reason
	return &e
}
