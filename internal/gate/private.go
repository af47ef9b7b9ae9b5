package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// privateDocument reads a listing from the private upstream with the caller's credential. It is
// never kept nor shared. A nil document without an error is an absence.
func (g *Gate) privateDocument(ctx context.Context, name, authorization string) (registry.Document, error) {
	u, err := g.Private.Under(g.Ecosystem.ListingPath(name))
	if err != nil {
		return nil, err
	}
	resp, err := g.Private.Do(ctx, upstream.Request{
		Method: http.MethodGet, URL: u, Kind: upstream.Metadata, Accept: g.Ecosystem.ListingAccept,
	}, authorization)
	if err != nil {
		return nil, fromPrivate(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, privateStatus(resp)
	}
	body, err := upstream.ReadBody(resp, maxDocument)
	if err != nil {
		return nil, fromPrivate(err)
	}
	doc, err := g.Ecosystem.Scan(g.pkg(name), source(resp, body))
	if err != nil {
		return nil, fromPrivate(err)
	}
	return doc, nil
}

// privateStatus types an answer that is not the document; nil is an absence.
func privateStatus(resp *http.Response) error {
	switch s := resp.StatusCode; {
	case s == http.StatusNotFound || s == http.StatusGone:
		return nil
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return &Forbidden{Status: s}
	case s == http.StatusTooManyRequests || s == http.StatusRequestTimeout || s >= 500:
		wait := transientWait
		if d, ok := retryafter.Parse(resp.Header.Values("Retry-After"), time.Now()).Delay(); ok {
			wait = max(wait, d)
		}
		return &Unavailable{Wait: wait, Reason: fmt.Sprintf("the private registry answered with status %d", s)}
	default:
		return &BadUpstream{Reason: fmt.Sprintf("the private registry answered with status %d", s)}
	}
}

func fromPrivate(err error) error {
	if f, ok := errors.AsType[*upstream.Failure](err); ok {
		return &Unavailable{Wait: transientWait, Reason: "the private registry did not answer (" + f.Outcome + ")"}
	}
	if errors.Is(err, registry.ErrMalformed) || errors.Is(err, registry.ErrTooLarge) {
		return &BadUpstream{Reason: "the private registry sent an unusable document: " + err.Error()}
	}
	return err
}

// privateArtifact serves a file that the private listing names, verified against what it says. Nil
// without an error is an absence. Listed tells that the private listing names the file: what is
// private must never be replaced by a public file of the same name, also when it cannot be had now,
// so the listing decides and not a lucky path.
func (g *Gate) privateArtifact(ctx context.Context, r ArtifactRequest, key string) (a *Artifact, listed bool, err error) {
	doc, err := g.privateDocument(ctx, r.Name, r.Authorization)
	if doc == nil || err != nil {
		return nil, false, err
	}
	i := doc.Lookup(key)
	if i < 0 {
		return nil, false, nil
	}
	a, err = g.listedFile(ctx, r, doc.Versions()[i])
	return a, true, err
}

// listedFile is the file of a version that the private listing names.
func (g *Gate) listedFile(ctx context.Context, r ArtifactRequest, v registry.Version) (*Artifact, error) {
	if err := g.floor(r.Name, v, g.MinTrusted); err != nil {
		return nil, err
	}
	if len(v.Artifacts) == 0 || r.Companion && v.Artifacts[0].Companion == nil {
		return nil, &NotFound{What: r.what()}
	}
	file := v.Artifacts[0]
	u, ok := g.Private.Owned(file.URL)
	switch {
	case ok:
	case g.Ecosystem.ArtifactPath == nil:
		return nil, &BadUpstream{Reason: "the private registry links to a file on another host, which is not contacted"}
	default: // a registry behind a proxy may name itself by another address
		under, err := g.Private.Under(g.Ecosystem.ArtifactPath(r.Name, r.File))
		if err != nil {
			return nil, err
		}
		u = under
	}
	digests := file.Digests
	if r.Companion {
		u, digests = companionOf(u), file.Companion.Digests
	}
	a, err := g.fetchPrivate(ctx, upstream.Request{Method: r.Method, URL: u, Kind: r.kind()}, r.Authorization, digests)
	if a == nil && err == nil {
		return nil, &NotFound{What: r.what()}
	}
	return a, err
}

func (g *Gate) fetchPrivate(ctx context.Context, req upstream.Request, authorization string, digests []registry.Digest) (*Artifact, error) {
	resp, err := g.Private.Do(ctx, req, authorization)
	if err != nil {
		return nil, fromPrivate(err)
	}
	if resp.StatusCode == http.StatusOK {
		body := resp.Body
		if req.Method == http.MethodGet {
			body = integrity.Verify(body, digests)
		}
		return committed(&Artifact{Status: http.StatusOK, Header: artifactHeader(resp), Body: body}, req.Method)
	}
	defer resp.Body.Close()
	return nil, privateStatus(resp)
}
