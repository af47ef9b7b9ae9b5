package gate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ecluse-gate/ecluse/internal/files"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// Copy is a public file on its way into the mirror, admitted as it would be for a client. The
// caller closes Body.
type Copy struct {
	// Version holds the facts that the rules admitted; Artifacts[0] is the file with the digests
	// that the body must have.
	Version registry.Version
	// Manifest is the version's object as the listing has it, its links below the base that was
	// asked for; nil where the protocol has none.
	Manifest []byte
	// Size is the length that the upstream announces, or -1.
	Size int64
	// Body is the file. It ends with a *Mismatch when it is not the one that the listing names.
	Body io.ReadCloser
}

// Fetch is the public part of Artifact for the mirror: the same admission over the same facts, the
// same cooled client, and a body that is checked against the digest of the listing that admitted
// it. Names that resolve privately only are not found, whoever asks. Base is the mirror's address,
// below which the manifest's links are put. Beside the errors of Artifact it gives *Mismatch, in
// Body, and *Refused; a throttled answer is an *Unavailable with the cooldown that it started
// (R58).
func (g *Gate) Fetch(ctx context.Context, name, file, base string) (*Copy, error) {
	ctx = upstream.Background(ctx)
	key, ok := g.opts.Ecosystem.KeyOfFile(name, file)
	if !ok || g.privateOnly(name) {
		return nil, &NotFound{What: file}
	}
	r := ArtifactRequest{Method: http.MethodGet, Name: name, File: file, worker: true}
	out, err := g.copyOf(ctx, r, key, base)
	if is[*Mismatch](err) {
		if _, differ := g.distrusted(ctx, r, key, out.Version); differ {
			return g.copyOf(ctx, r, key, base)
		}
	}
	return out, err
}

// copyOf makes a copy from what is known now. With a *Mismatch it tells of which version.
func (g *Gate) copyOf(ctx context.Context, r ArtifactRequest, key, base string) (*Copy, error) {
	e, err := g.find(ctx, r.Name, r.File, holding(key, func(v registry.Version) bool { return g.listed(r, v) }))
	if err != nil {
		return nil, err
	}
	i := e.Lookup(key)
	out := &Copy{Version: e.Versions()[i]}
	if err := g.admitVersion(time.Now(), r.Name, out.Version); err != nil {
		return nil, err
	}
	if out.Manifest, err = g.manifest(r.Name, base, e.Document, i); err != nil {
		return nil, err
	}
	return out, g.open(ctx, r, key, out)
}

func (g *Gate) manifest(name, base string, doc registry.Document, i int) ([]byte, error) {
	if g.opts.Ecosystem.RenderVersion == nil {
		return nil, nil
	}
	keep := make([]bool, len(doc.Versions()))
	keep[i] = true
	view := registry.View{Package: g.pkg(name), Base: base, Parts: []registry.Part{{Document: doc, Keep: keep}}}
	r, ok, err := g.opts.Ecosystem.RenderVersion(view, doc.Versions()[i].Version)
	if err == nil && !ok {
		err = &NotFound{What: name + "@" + doc.Versions()[i].Version}
	}
	return r.Body, err
}

// open asks for the file as a client's request does, from the store of files first, and fills in
// the copy.
func (g *Gate) open(ctx context.Context, r ArtifactRequest, key string, out *Copy) error {
	p, err := g.locate(r, out.Version)
	if err != nil {
		return err
	}
	a, err := g.public(ctx, r, out.Version)
	if e, ok := errors.AsType[*files.Relayed](err); ok { // never a throttled one
		return &Unavailable{Wait: refusal.TransientWait, Reason: e.Error()}
	}
	if e, ok := errors.AsType[*BadUpstream](err); ok && e.Status >= 300 && e.Status < 500 && e.Status != http.StatusRequestTimeout {
		return &Refused{Status: e.Status}
	}
	if files.Wrong(err) {
		return &Mismatch{File: r.File}
	}
	if err != nil {
		return err
	}
	out.Size = -1
	if n, err := strconv.ParseInt(a.Header.Get("Content-Length"), 10, 64); err == nil {
		out.Size = n
	}
	out.Body = files.Judged(integrity.Verify(a.Body, p.Digests), func(error) error {
		if _, differ := g.distrusted(ctx, r, key, out.Version); differ {
			return &Unavailable{Wait: refusal.TransientWait, Reason: "the listing had another digest for the file, and was read anew"}
		}
		return &Mismatch{File: r.File}
	})
	return nil
}

// SetMirror lets every public file that a client gets be offered to the mirror. The function must
// not wait. nil takes it away.
func (g *Gate) SetMirror(offer func(name, version, file string)) {
	if offer == nil {
		g.offer.Store(nil)
		return
	}
	g.offer.Store(&offer)
}

// offerFile offers a file that is on its way to a client. A throttled answer and a refusal offer
// nothing (R53), nor does a HEAD.
func (g *Gate) offerFile(r ArtifactRequest, v registry.Version) {
	if offer := g.offer.Load(); offer != nil && r.Method == http.MethodGet && !r.Companion {
		(*offer)(r.Name, v.Version, r.File)
	}
}

// FilesOf lists the entries of the public listing whose version is the one that is meant, each with
// its file, whatever the rules say: a file is admitted when it is fetched.
func (g *Gate) FilesOf(ctx context.Context, name string, meant func(version string) bool) ([]registry.Version, error) {
	ctx = upstream.Background(ctx)
	if g.privateOnly(name) {
		return nil, &NotFound{What: name}
	}
	asked := func(v registry.Version) bool { return len(v.Artifacts) > 0 && meant(v.Version) }
	e, err := g.find(ctx, name, "that version of "+name, func(d registry.Document) bool { return slices.ContainsFunc(d.Versions(), asked) })
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(e.Versions()), func(v registry.Version) bool { return !asked(v) }), nil
}
