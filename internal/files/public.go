package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/payload"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// Get gives one public file that is admitted. A refusal of the upstream that is for this caller is
// a *Relayed; the other errors are those of internal/refusal.
func (f *Files) Get(ctx context.Context, r Request, p Place) (*Artifact, error) {
	if name, digest, ok := integrity.FileName(p.Digests); ok && f.Store != nil && r.Kind == upstream.Artifact {
		return f.stored(ctx, r, p, name, digest)
	}
	return f.passed(ctx, r, p)
}

// passed serves a public file past the store.
func (f *Files) passed(ctx context.Context, r Request, p Place) (*Artifact, error) {
	resp, err := f.ask(ctx, r, p)
	if err != nil {
		return nil, f.relay(r, err)
	}
	return publicFile(r, resp, p)
}

// ask asks an upstream for a file. An answer other than the file is an error, of type *refused
// where it may be handed on.
func (f *Files) ask(ctx context.Context, r Request, p Place) (*upstream.Response, error) {
	resp, err := p.Upstream.Do(ctx, upstream.Request{Method: r.Method, URL: p.URL, Kind: r.Kind})
	if err != nil {
		return nil, p.Side.Unsent(err)
	}
	s := resp.StatusCode
	if s == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.Throttled || s == http.StatusServiceUnavailable {
		header, body := refusalOf(r.Method, resp.Response)
		return nil, &refused{from: p, status: s, header: header, body: body, throttled: resp.Throttled}
	}
	f.Metrics.RelayAnomaly(f.Ecosystem, string(r.Kind), "status")
	if s == http.StatusNotFound {
		return nil, &refusal.NotFound{What: r.What}
	}
	return nil, &refusal.BadUpstream{Status: s, Reason: fmt.Sprintf("the public registry answered a file request with status %d", s)}
}

// refused is an upstream's own refusal of a file. A throttled one is handed to one caller as it
// came (R50); others who waited for the same transfer hear of the cooldown (R51). One that began no
// cooldown is for everybody (R3).
type refused struct {
	from      Place
	status    int
	header    http.Header
	body      []byte
	throttled bool
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
func (f *Files) relay(r Request, err error) error {
	e, ok := errors.AsType[*refused](err)
	if !ok {
		return err
	}
	if e.throttled && (r.Worker || !e.taken.CompareAndSwap(false, true)) {
		// it may have taken long to read the refusal
		left, closed := e.from.Upstream.Remaining(time.Now())
		if !closed || left <= 0 {
			left = refusal.TransientWait
		}
		wait := e.from.Side.Cooled(left)
		wait.Collapsed = true
		return wait
	}
	reason := "status"
	if e.throttled {
		reason = "throttled"
	}
	f.Metrics.RelayAnomaly(f.Ecosystem, string(r.Kind), reason)
	return &Relayed{e}
}

// Relayed is an upstream's refusal on its way to the caller that it is handed to.
type Relayed struct{ *refused }

// Artifact is the refusal as an answer.
func (e *Relayed) Artifact() *Artifact {
	return &Artifact{Status: e.status, Header: e.header, Relayed: true, Throttled: e.throttled, Body: io.NopCloser(bytes.NewReader(e.body))}
}

// stored serves a public file from the store, or through it: fetched once for everybody who waits,
// verified before it is kept, and read while it grows (R88). A kept file needs no request, so a
// cooldown does not concern it.
func (f *Files) stored(ctx context.Context, r Request, p Place, name string, digest registry.Digest) (*Artifact, error) {
	header := http.Header{}
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Cache-Control", "private, no-transform")
	header.Set("Etag", `"`+name+`"`)
	if r.Method == http.MethodHead {
		size, err := f.Store.Stat(ctx, name)
		if err != nil {
			return f.passed(ctx, r, p)
		}
		header.Set("Content-Length", strconv.FormatInt(size, 10))
		return &Artifact{Status: http.StatusOK, Header: header, Body: http.NoBody}, nil
	}
	body, size, err := f.Store.Fetch(ctx, name, func(ctx context.Context) (*cache.Body, error) {
		resp, err := f.ask(ctx, r, p)
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
		return nil, f.relay(r, err)
	}
	if size >= 0 {
		header.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	a := &Artifact{Status: http.StatusOK, Header: header, Body: body}
	if _, kept := body.(*cache.File); kept {
		return a, nil
	}
	return committed(a, r.Method)
}

// publicFile is a public file on its way to a client, hashed as it passes. A companion is text that
// an upstream may pack although it was not asked to; it is small, so it is unpacked and checked
// before anything is sent.
func publicFile(r Request, resp *upstream.Response, p Place) (*Artifact, error) {
	a := &Artifact{Status: resp.StatusCode, Header: artifactHeader(resp.Response), Body: resp.Body}
	if r.Method != http.MethodGet {
		return a, nil
	}
	if r.Kind == upstream.Companion {
		body, err := payload.Read(resp.Response, maxCompanion)
		_ = resp.Body.Close()
		if err != nil {
			return nil, refusal.FromPublic(err)
		}
		a.Body = io.NopCloser(bytes.NewReader(body))
		a.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	a.Body = integrity.Verify(a.Body, p.Digests)
	return committed(a, r.Method)
}
