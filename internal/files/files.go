// Package files brings one file to a client: from the store or from an upstream, hashed on its way,
// and with an upstream's refusal handed on to one caller. Whether a file may be served, and where
// it lies, is decided before.
package files

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// Bounds of foreign input.
const (
	maxRefusal   = 1 << 20  // a relayed refusal's body
	maxCompanion = 16 << 20 // a companion, unpacked
	// refusalTime bounds how long the body of an upstream's refusal is waited for.
	refusalTime = 2 * time.Second
)

// Artifact is an answer for a file: the file, or a throttled answer that is handed on (R50). The
// caller closes Body; a Read that fails means that the client must not take what it got for the
// whole file.
type Artifact struct {
	Status int
	Header http.Header
	Body   io.ReadCloser
	// Relayed tells that this is the upstream's own refusal, Throttled that it started a cooldown.
	Relayed, Throttled bool
}

// Files brings the public files of one mount.
type Files struct {
	Ecosystem string       // in metrics
	Store     *cache.Files // keeps verified files; nil keeps none
	Metrics   *obs.Metrics
}

// Request is what is asked of a file.
type Request struct {
	Method string // GET or HEAD
	Kind   upstream.Kind
	// What names the file in an error.
	What string
	// Worker is the mirror: an upstream's throttled answer is left to a client that waits for the
	// same file (R50).
	Worker bool
}

// Place is where a public file lies, and what it must hash to.
type Place struct {
	Upstream *upstream.Public
	// Side is how clients hear of Upstream.
	Side    refusal.Side
	URL     *url.URL
	Digests []registry.Digest
}

// GetPrivate gives one file of the private upstream, asked for with the caller's credential. Nil
// without an error is an absence.
func GetPrivate(
	ctx context.Context, from *upstream.Private, req upstream.Request, authorization string, digests []registry.Digest,
) (*Artifact, error) {
	resp, err := from.Do(ctx, req, authorization)
	if err != nil {
		return nil, refusal.FromPrivate(err)
	}
	if resp.StatusCode == http.StatusOK {
		body := resp.Body
		if req.Method == http.MethodGet {
			body = integrity.Verify(body, digests)
		}
		return committed(&Artifact{Status: http.StatusOK, Header: artifactHeader(resp), Body: body}, req.Method)
	}
	defer resp.Body.Close()
	return nil, refusal.PrivateStatus(resp)
}

// Relay hands on an answer as it came, its body up to a bound.
func Relay(resp *http.Response) *Artifact {
	return &Artifact{
		Status: resp.StatusCode, Header: relayHeader(resp.Header), Relayed: true,
		Body: limitedBody{io.LimitReader(resp.Body, maxRefusal), resp.Body},
	}
}

type limitedBody struct {
	io.Reader
	io.Closer
}

// committed holds an answer back until its first byte is there, so that a client never sees a
// success that has no body (C51).
func committed(a *Artifact, method string) (*Artifact, error) {
	if method != http.MethodGet {
		return a, nil
	}
	br := bufio.NewReaderSize(a.Body, 32<<10)
	if _, err := br.Peek(1); err != nil && err != io.EOF {
		_ = a.Body.Close()
		return nil, refusal.FromPublic(err)
	}
	a.Body = limitedBody{br, a.Body}
	return a, nil
}
