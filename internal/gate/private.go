package gate

import (
	"context"

	"github.com/ecluse-gate/ecluse/internal/files"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// privateListing reads the private listing of a package, and takes in that there is one.
func (g *Gate) privateListing(ctx context.Context, name, authorization string) (registry.Document, error) {
	doc, err := g.documents.Private(ctx, name, authorization)
	g.opts.Names.Private(name, doc)
	return doc, err
}

// privateArtifact serves a file that the private listing names, verified against what it says. Nil
// without an error is an absence. Listed tells that the private listing names the file: what is
// private must never be replaced by a public file of the same name, also when it cannot be had now,
// so the listing decides and not a lucky path.
func (g *Gate) privateArtifact(ctx context.Context, r ArtifactRequest, key string) (a *Artifact, listed bool, err error) {
	doc, err := g.privateListing(ctx, r.Name, r.Authorization)
	if doc == nil || err != nil {
		return nil, false, err
	}
	i := doc.Lookup(key)
	if i < 0 {
		return nil, false, nil
	}
	a, err = g.listedFile(ctx, r, key, doc.Versions()[i])
	return a, true, err
}

// listedFile is the file of a version that the private listing names.
func (g *Gate) listedFile(ctx context.Context, r ArtifactRequest, key string, v registry.Version) (*Artifact, error) {
	if err := g.admitPrivate(ctx, r.Name, key, v); err != nil {
		return nil, err
	}
	if len(v.Artifacts) == 0 || r.Companion && v.Artifacts[0].Companion == nil {
		return nil, &NotFound{What: r.what()}
	}
	file := v.Artifacts[0]
	u, ok := g.opts.Private.Owned(file.URL)
	switch {
	case ok:
	case g.opts.Ecosystem.ArtifactPath == nil:
		return nil, &BadUpstream{Reason: "the private registry links to a file on another host, which is not contacted"}
	default: // a registry behind a proxy may name itself by another address
		under, err := g.opts.Private.Under(g.opts.Ecosystem.ArtifactPath(r.Name, r.File))
		if err != nil {
			return nil, err
		}
		u = under
	}
	digests := file.Digests
	if r.Companion {
		u, digests = files.CompanionOf(u), file.Companion.Digests
	}
	a, err := files.GetPrivate(ctx, g.opts.Private, upstream.Request{Method: r.Method, URL: u, Kind: r.kind()}, r.Authorization, digests)
	if a == nil && err == nil {
		return nil, &NotFound{What: r.what()}
	}
	return a, err
}
