package gate

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/files"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// ArtifactRequest asks for one file.
type ArtifactRequest struct {
	// Method is GET or HEAD.
	Method string
	Name   string
	File   string
	// Companion asks for the file's companion instead (PEP 658); the file's verdict decides for
	// both.
	Companion bool
	// Authorization is the caller's credential; only the private upstream sees it.
	Authorization string

	// the mirror's: an upstream's throttled answer is left to a client that waits for the same file
	// (R50)
	worker bool
}

func (r ArtifactRequest) kind() upstream.Kind {
	if r.Companion {
		return upstream.Companion
	}
	return upstream.Artifact
}

// what names the file in an error.
func (r ArtifactRequest) what() string {
	if r.Companion {
		return r.File + files.CompanionSuffix
	}
	return r.File
}

// Artifact is an answer for a file.
type Artifact = files.Artifact

// Artifact gives one file under the same verdict as the listing (C11). Its errors are those of
// Listing.
func (g *Gate) Artifact(ctx context.Context, r ArtifactRequest) (*Artifact, error) {
	a, err := g.artifact(ctx, r)
	if e, ok := errors.AsType[*files.Relayed](err); ok {
		g.opts.Metrics.Decision(g.opts.Ecosystem.Name, string(r.kind()), "unavailable")
		return e.Artifact(), nil
	}
	g.countDecision(string(r.kind()), string(r.kind()), err)
	return a, err
}

func (g *Gate) artifact(ctx context.Context, r ArtifactRequest) (*Artifact, error) {
	key, ok := g.opts.Ecosystem.KeyOfFile(r.Name, r.File)
	if !ok {
		return nil, &NotFound{What: r.what()}
	}
	var failed *Unavailable
	if g.opts.Private != nil {
		a, listed, err := g.privateArtifact(ctx, r, key)
		if wait, ok := errors.AsType[*Unavailable](err); ok && g.opts.DegradePrivate && !listed {
			failed, err = wait, nil
		} else if ok && !g.privateOnly(r.Name) {
			err = refusal.Longest(wait, g.cooling())
		}
		if a != nil || err != nil {
			return a, err
		}
	}
	if g.privateOnly(r.Name) {
		return nil, orFailed(failed, &NotFound{What: r.what()})
	}
	facts, err := g.admitted(ctx, r, key)
	if err != nil {
		return nil, orFailed(failed, err)
	}
	a, err := g.public(ctx, r, facts)
	if files.Wrong(err) {
		if other, differ := g.distrusted(ctx, r, key, facts); differ {
			facts = other
			a, err = g.public(ctx, r, facts)
		}
	}
	if err != nil {
		return nil, orFailed(failed, err)
	}
	g.offerFile(r, facts)
	return g.watched(ctx, a, r.Name, key), nil
}

// admitted gives the facts of a public file that the rules admit.
func (g *Gate) admitted(ctx context.Context, r ArtifactRequest, key string) (registry.Version, error) {
	facts, err := g.version(ctx, r.Name, key, r.Name+" "+key, anything)
	if err == nil {
		err = g.admitVersion(time.Now(), r.Name, facts)
	}
	if err != nil || g.listed(r, facts) {
		return facts, err
	}
	// it may have come since
	facts, err = g.version(ctx, r.Name, key, r.what(), func(v registry.Version) bool { return g.listed(r, v) })
	if err == nil {
		err = g.admitVersion(time.Now(), r.Name, facts)
	}
	return facts, err
}

// version gives the facts of one public entry in which want finds what is wanted: from a current
// document, from the selected-version cache, or from a new read of the listing, in this order (R47,
// C12, C44).
func (g *Gate) version(ctx context.Context, name, entryKey, what string, want func(registry.Version) bool) (registry.Version, error) {
	key := versionKey{name, entryKey}
	if !g.documents.Held(name, g.opts.TTL) {
		if v, ok := g.versions.Get(key); ok && time.Since(v.read) < max(versionTTL, g.opts.TTL) && want(v.version) {
			return v.version, nil
		}
	}
	e, err := g.find(ctx, name, what, holding(entryKey, want))
	if is[*NotFound](err) {
		g.versions.Delete(key)
	}
	if err != nil {
		return registry.Version{}, err
	}
	return g.selected(key, e.Versions()[e.Lookup(entryKey)], e.Checked()), nil
}

// selected keeps the facts of one entry, and them alone: as the document has them, they would hold
// all of its text in memory.
func (g *Gate) selected(key versionKey, v registry.Version, read time.Time) registry.Version {
	own, size := v.Clone()
	// the key's and the value's place in the store
	const fixed = 256
	// they are parts of a request's address, which may be long
	key = versionKey{strings.Clone(key.name), strings.Clone(key.key)}
	g.versions.Put(key, versionFacts{own, read}, int64(len(key.name)+len(key.key))+size+fixed)
	return own
}

// public gives a public file that is admitted.
func (g *Gate) public(ctx context.Context, r ArtifactRequest, v registry.Version) (*Artifact, error) {
	p, err := g.locate(r, v)
	if err != nil {
		return nil, err
	}
	return g.files.Get(ctx, files.Request{Method: r.Method, Kind: r.kind(), What: r.what(), Worker: r.worker}, p)
}

// locate finds the place of a public file that is listed. An address of another host is never
// asked; where the protocol has a convention, the upstream itself is asked at the conventional
// place instead, since mirrors list other hosts' addresses.
func (g *Gate) locate(r ArtifactRequest, v registry.Version) (files.Place, error) {
	if len(v.Artifacts) == 0 || r.Companion && v.Artifacts[0].Companion == nil {
		return files.Place{}, &NotFound{What: r.what()}
	}
	file := v.Artifacts[0]
	p := files.Place{Digests: file.Digests}
	var ok bool
	if p.Upstream, p.URL, ok = g.owner(file.URL); !ok {
		if g.opts.Ecosystem.ArtifactPath == nil {
			return files.Place{}, &NotFound{What: r.what()}
		}
		var err error
		p.Upstream = g.opts.Public
		if p.URL, err = g.opts.Public.Under(g.opts.Ecosystem.ArtifactPath(r.Name, r.File)); err != nil {
			return files.Place{}, err
		}
	}
	if r.Companion {
		p.URL, p.Digests = files.CompanionOf(p.URL), file.Companion.Digests
	}
	p.Side = g.side(p.Upstream)
	return p, nil
}
