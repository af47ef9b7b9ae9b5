package gate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// ArtifactRequest asks for one file.
type ArtifactRequest struct {
	// Method is GET or HEAD.
	Method string
	Name   string
	File   string
	// Authorization is the caller's credential; only the private upstream sees it.
	Authorization string
}

// Artifact is an answer for a file: the file, or a throttled answer that is handed on (R50). The caller closes Body; a Read that
// fails means that the client must not take what it got for the whole file.
type Artifact struct {
	Status int
	Header http.Header
	Body   io.ReadCloser
	// Relayed tells that this is the upstream's own refusal, Throttled that it started a cooldown.
	Relayed, Throttled bool
}

// Artifact gives one file under the same verdict as the listing (C11). Its errors are those of Listing.
func (g *Gate) Artifact(ctx context.Context, r ArtifactRequest) (*Artifact, error) {
	a, err := g.artifact(ctx, r)
	if err == nil && a.Relayed {
		g.Metrics.Decision(g.Ecosystem.Name, "artifact", "unavailable")
		return a, nil
	}
	g.countDecision("artifact", "artifact", err)
	return a, err
}

func (g *Gate) artifact(ctx context.Context, r ArtifactRequest) (*Artifact, error) {
	version, ok := g.Ecosystem.VersionOfFile(r.Name, r.File)
	if !ok {
		return nil, &NotFound{What: r.File}
	}
	var failed *Unavailable
	if g.Private != nil {
		a, err := g.privateArtifact(ctx, r, version)
		if wait, ok := errors.AsType[*Unavailable](err); ok && g.DegradePrivate {
			failed, err = wait, nil
		} else if ok && !g.firstParty(r.Name) {
			err = longest(wait, g.cooling())
		}
		if a != nil || err != nil {
			return a, err
		}
	}
	if g.firstParty(r.Name) {
		if failed != nil {
			return nil, failed
		}
		return nil, &NotFound{What: r.File}
	}
	facts, err := g.version(ctx, r.Name, version)
	if err != nil {
		return nil, err
	}
	if err := g.admitVersion(time.Now(), r.Name, facts); err != nil {
		return nil, err
	}
	return g.publicArtifact(ctx, r, facts)
}

// version gives the facts of one public version: from a current document, from the selected-version cache, or from a new read of the
// listing, in this order (R47, C12).
func (g *Gate) version(ctx context.Context, name, version string) (registry.Version, error) {
	key, maxAge := versionKey{name, version}, g.TTL
	if kept, ok := g.documents.Get(name); ok && time.Since(kept.checked) < g.TTL {
		if i := kept.doc.Lookup(version); i >= 0 {
			return g.selected(key, kept.doc.Versions()[i]), nil
		}
		maxAge = min(missTTL, g.TTL) // it may just have been published: an absence is believed only when it is news
	} else if v, ok := g.versions.Get(key); ok && time.Since(v.read) < max(versionTTL, g.TTL) {
		return v.version, nil
	}
	got, err := g.publicDocument(ctx, name, maxAge)
	if err != nil {
		return registry.Version{}, err
	}
	if got.entry != nil {
		if i := got.entry.doc.Lookup(version); i >= 0 {
			return g.selected(key, got.entry.doc.Versions()[i]), nil
		}
	}
	g.versions.Delete(key)
	return registry.Version{}, &NotFound{What: name + "@" + version}
}

func (g *Gate) selected(key versionKey, v registry.Version) registry.Version {
	g.versions.Put(key, versionFacts{v, time.Now()}, int64(len(key.name)+len(key.version))+512)
	return v
}

func (g *Gate) publicArtifact(ctx context.Context, r ArtifactRequest, v registry.Version) (*Artifact, error) {
	if len(v.Artifacts) == 0 {
		return nil, &NotFound{What: r.File}
	}
	file := v.Artifacts[0]
	u, ok := g.Public.Owned(file.URL)
	if !ok { // a mirror may list another host's addresses; only this upstream is asked
		var err error
		if u, err = g.Public.Under(g.Ecosystem.ArtifactPath(r.Name, r.File)); err != nil {
			return nil, err
		}
	}
	resp, err := g.Public.Do(ctx, upstream.Request{Method: r.Method, URL: u, Kind: upstream.Artifact})
	if err != nil {
		return nil, fromPublic(err)
	}
	if s := resp.StatusCode; s == http.StatusOK {
		body := io.ReadCloser(resp.Body)
		if r.Method == http.MethodGet {
			body = verify(body, file.Digests)
		}
		return committed(&Artifact{Status: s, Header: artifactHeader(resp.Response), Body: body}, r.Method)
	} else if resp.Throttled || s == http.StatusServiceUnavailable {
		g.Metrics.RelayAnomaly(g.Ecosystem.Name, "artifact", relayReason(resp))
		return &Artifact{
			Status: s, Header: relayHeader(resp.Header), Relayed: true, Throttled: resp.Throttled,
			Body: limitedBody{io.LimitReader(resp.Body, maxRefusal), resp.Body},
		}, nil
	}
	defer resp.Body.Close()
	g.Metrics.RelayAnomaly(g.Ecosystem.Name, "artifact", "status")
	if resp.StatusCode == http.StatusNotFound {
		return nil, &NotFound{What: r.File}
	}
	return nil, &BadUpstream{Reason: fmt.Sprintf("the public registry answered %d to a file", resp.StatusCode)}
}

func relayReason(resp *upstream.Response) string {
	if resp.Throttled {
		return "throttled"
	}
	return "status"
}

type limitedBody struct {
	io.Reader
	io.Closer
}

// committed holds an answer back until its first byte is there, so that a client never sees a success that has no body (C51).
func committed(a *Artifact, method string) (*Artifact, error) {
	if method != http.MethodGet {
		return a, nil
	}
	br := bufio.NewReaderSize(a.Body, 32<<10)
	if _, err := br.Peek(1); err != nil && err != io.EOF { //nolint:errorlint // only the plain end is an empty file
		_ = a.Body.Close()
		if bad, ok := errors.AsType[*BadUpstream](err); ok {
			return nil, bad
		}
		return nil, fromPublic(err)
	}
	a.Body = limitedBody{br, a.Body}
	return a, nil
}
