package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// privateDocument reads a listing from the private upstream with the caller's credential. It is never kept nor shared. A nil
// document without an error is an absence.
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
		return &Unavailable{Wait: wait, Reason: fmt.Sprintf("the private registry answered %d", s)}
	default:
		return &BadUpstream{Reason: fmt.Sprintf("the private registry answered %d", s)}
	}
}

func fromPrivate(err error) error {
	if f, ok := errors.AsType[*upstream.Failure](err); ok {
		return &Unavailable{Wait: transientWait, Reason: "the private registry did not answer (" + f.Outcome + ")"}
	}
	if errors.Is(err, registry.ErrMalformed) || errors.Is(err, registry.ErrTooLarge) {
		return &BadUpstream{Reason: "the private registry's document cannot be used: " + err.Error()}
	}
	return err
}

// privateArtifact looks for a file in the private upstream: at its conventional place, where the protocol has one, and where that is
// empty, at the place that the private listing names. Nil without an error is an absence.
func (g *Gate) privateArtifact(ctx context.Context, r ArtifactRequest, key string) (*Artifact, error) {
	asked := ""
	if g.Ecosystem.ArtifactPath != nil {
		u, err := g.Private.Under(g.Ecosystem.ArtifactPath(r.Name, r.File))
		if err != nil {
			return nil, err
		}
		asked = u.String()
		a, err := g.fetchPrivate(ctx, upstream.Request{Method: r.Method, URL: u, Kind: r.kind()}, r.Authorization)
		if a != nil || err != nil {
			return a, err
		}
	}
	doc, err := g.privateDocument(ctx, r.Name, r.Authorization)
	if doc == nil || err != nil {
		return nil, err
	}
	i := doc.Lookup(key)
	if i < 0 || len(doc.Versions()[i].Artifacts) == 0 {
		return nil, nil
	}
	// From here on the file is private: a public one of the same name must not stand in for it.
	u, ok := g.Private.Owned(doc.Versions()[i].Artifacts[0].URL)
	if !ok {
		return nil, &BadUpstream{Reason: "the private registry names a file at another host, which is not asked"}
	}
	if r.Companion {
		u = companionOf(u)
	}
	var a *Artifact
	if u.String() != asked {
		a, err = g.fetchPrivate(ctx, upstream.Request{Method: r.Method, URL: u, Kind: r.kind()}, r.Authorization)
	}
	if a == nil && err == nil {
		return nil, &NotFound{What: r.what()}
	}
	return a, err
}

func (g *Gate) fetchPrivate(ctx context.Context, req upstream.Request, authorization string) (*Artifact, error) {
	resp, err := g.Private.Do(ctx, req, authorization)
	if err != nil {
		return nil, fromPrivate(err)
	}
	if resp.StatusCode == http.StatusOK {
		return committed(&Artifact{Status: http.StatusOK, Header: artifactHeader(resp), Body: resp.Body}, req.Method)
	}
	defer resp.Body.Close()
	return nil, privateStatus(resp)
}
