package gate

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

func (g *Gate) publicArtifact(ctx context.Context, r ArtifactRequest, v registry.Version) (*Artifact, error) {
	p, err := g.locate(r, v)
	if err != nil {
		return nil, err
	}
	if name, digest, ok := storeName(p.digests); ok && g.opts.Store != nil && !r.Companion {
		return g.storedFile(ctx, r, p, name, digest)
	}
	resp, err := g.askFile(ctx, r, p)
	if err != nil {
		return nil, g.relay(r, err)
	}
	return g.publicFile(r, resp, p)
}

// askFile asks an upstream for a file. An answer other than the file is an error, of type *refused
// where it may be handed on.
func (g *Gate) askFile(ctx context.Context, r ArtifactRequest, p place) (*upstream.Response, error) {
	resp, err := p.upstream.Do(ctx, upstream.Request{Method: r.Method, URL: p.url, Kind: r.kind()})
	if err != nil {
		return nil, g.side(p.upstream).Unsent(err)
	}
	s := resp.StatusCode
	if s == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.Throttled || s == http.StatusServiceUnavailable {
		header, body := refusalOf(r.Method, resp.Response)
		return nil, &refused{from: p.upstream, status: s, header: header, body: body, throttled: resp.Throttled, wait: resp.Wait}
	}
	g.opts.Metrics.RelayAnomaly(g.opts.Ecosystem.Name, string(r.kind()), "status")
	if s == http.StatusNotFound {
		return nil, &NotFound{What: r.what()}
	}
	return nil, &BadUpstream{Status: s, Reason: fmt.Sprintf("the public registry answered a file request with status %d", s)}
}

// refused is an upstream's own refusal of a file. A throttled one is handed to one caller as it
// came (R50); others who waited for the same transfer hear of the cooldown (R51). One that began no
// cooldown is for everybody (R3).
type refused struct {
	from      *upstream.Public
	status    int
	header    http.Header
	body      []byte
	throttled bool
	wait      time.Duration
	taken     atomic.Bool
}

// refusalOf reads a refusal that may be handed on. What counts are its status and its fields (R50):
// a body that is too large, is cut or comes too slowly is left out, with the fields that describe
// it, rather than hide them behind a broken transfer.
func refusalOf(method string, resp *http.Response) (http.Header, []byte) {
	header := relayHeader(resp.Header)
	if method == http.MethodHead {
		return header, nil
	}
	slow := time.AfterFunc(refusalTime, func() { _ = resp.Body.Close() })
	defer slow.Stop()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal+1))
	if err != nil || len(body) > maxRefusal {
		body = nil
		for _, name := range []string{"Content-Digest", "Content-Encoding", "Content-Md5", "Content-Range", "Digest", "Etag", "Repr-Digest"} {
			header.Del(name)
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	return header, body
}

// Error implements error.
func (e *refused) Error() string {
	return fmt.Sprintf("the public registry answered with status %d", e.status)
}

// relay turns a refusal into what one caller gets; other errors pass.
func (g *Gate) relay(r ArtifactRequest, err error) error {
	e, ok := errors.AsType[*refused](err)
	if !ok {
		return err
	}
	if e.throttled && (r.worker || !e.taken.CompareAndSwap(false, true)) {
		left, closed := e.from.Remaining(time.Now()) // it may have taken long to read the refusal
		if !closed || left <= 0 {
			left = refusal.TransientWait
		}
		wait := g.side(e.from).Cooled(left)
		wait.Collapsed = true
		return wait
	}
	reason := "status"
	if e.throttled {
		reason = "throttled"
	}
	g.opts.Metrics.RelayAnomaly(g.opts.Ecosystem.Name, string(r.kind()), reason)
	return &relayed{e}
}

// relayed is a refusal on its way to the caller that it is handed to.
type relayed struct{ *refused }

func (e *relayed) artifact() *Artifact {
	return &Artifact{Status: e.status, Header: e.header, Relayed: true, Throttled: e.throttled, Body: io.NopCloser(bytes.NewReader(e.body))}
}

// storeName is the name under which a file is kept: its strongest digest. Only digests that nobody
// can forge are names.
func storeName(digests []registry.Digest) (name string, d registry.Digest, ok bool) {
	d, ok = integrity.Strongest(digests, integrity.SHA256)
	return d.Algorithm + "-" + hex.EncodeToString(d.Sum), d, ok
}

// storedFile serves a public file from the store, or through it: fetched once for everybody who
// waits, verified before it is kept, and read while it grows (R88). A kept file needs no request,
// so a cooldown does not concern it.
func (g *Gate) storedFile(ctx context.Context, r ArtifactRequest, p place, name string, digest registry.Digest) (*Artifact, error) {
	header := http.Header{}
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Cache-Control", "private, no-transform")
	header.Set("Etag", `"`+name+`"`)
	if r.Method == http.MethodHead {
		file, size, err := g.opts.Store.Open(name)
		if err != nil {
			resp, err := g.askFile(ctx, r, p)
			if err != nil {
				return nil, g.relay(r, err)
			}
			return g.publicFile(r, resp, p)
		}
		_ = file.Close()
		header.Set("Content-Length", strconv.FormatInt(size, 10))
		return &Artifact{Status: http.StatusOK, Header: header, Body: http.NoBody}, nil
	}
	body, size, err := g.opts.Store.Fetch(ctx, name, func(ctx context.Context) (*cache.Body, error) {
		resp, err := g.askFile(ctx, r, p)
		if err != nil {
			return nil, err
		}
		h := integrity.NewHash(digest.Algorithm)
		return &cache.Body{
			ReadCloser: limitedBody{io.TeeReader(resp.Body, h), resp.Body}, Size: resp.ContentLength,
			Check: func() error { return integrity.Match(h, digest.Sum) },
		}, nil
	})
	if err != nil {
		return nil, g.relay(r, err)
	}
	if size >= 0 {
		header.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	a := &Artifact{Status: http.StatusOK, Header: header, Body: body}
	if _, kept := body.(*os.File); kept {
		return a, nil
	}
	return committed(a, r.Method)
}

// publicFile is a public file on its way to a client, hashed as it passes. A companion is text that
// an upstream may pack although it was not asked to; it is small, so it is unpacked and checked
// before anything is sent.
func (g *Gate) publicFile(r ArtifactRequest, resp *upstream.Response, p place) (*Artifact, error) {
	a := &Artifact{Status: resp.StatusCode, Header: artifactHeader(resp.Response), Body: resp.Body}
	if r.Method != http.MethodGet {
		return a, nil
	}
	if r.Companion {
		body, err := upstream.ReadBody(resp.Response, maxCompanion)
		_ = resp.Body.Close()
		if err != nil {
			return nil, refusal.FromPublic(err)
		}
		a.Body = io.NopCloser(bytes.NewReader(body))
		a.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	a.Body = integrity.Verify(a.Body, p.digests)
	return committed(a, r.Method)
}
