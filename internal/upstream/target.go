package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
)

// answerTimeout is how long a target may think about a write that it has received whole.
const answerTimeout = 2 * time.Minute

// Target is a registry that is written to: a mirror or a place of publication. It neither starts
// nor consults a cooldown, even where it shares a host with a public upstream (R8). A write is sent
// once and never again: the request's body cannot be rewound (GetBody is nil), and no write shares
// a connection with anything before it, so that a connection that died in between loses none. It is
// safe for concurrent use.
type Target struct {
	client   *Client
	base     *url.URL
	spelling Spelling
	writes   *http.Transport
}

// Target returns the target at a base address.
func (c *Client) Target(base *url.URL, spelling Spelling) (*Target, error) {
	if _, err := cooldown.AuthorityOf(base); err != nil {
		return nil, err
	}
	writes := c.transport(c.guard.dialer.DialContext)
	writes.DisableKeepAlives, writes.ForceAttemptHTTP2 = true, false
	writes.ResponseHeaderTimeout = answerTimeout
	return &Target{client: c, base: base, spelling: spelling, writes: writes}, nil
}

// Under is the address of an escaped path below the base.
func (t *Target) Under(path string) (*url.URL, error) { return t.spelling.under(t.base, path) }

// URL is the base address itself.
func (t *Target) URL() *url.URL { return t.base }

// Read sends one read with the target's own credential; no redirect is followed. No answer is a
// *Failure.
func (t *Target) Read(ctx context.Context, r Request, authorization string) (*http.Response, error) {
	return t.client.exchange(ctx, r, authorization, t.client.private.RoundTrip)
}

// Write is one request that changes something at a target.
type Write struct {
	Method string // PUT or POST
	URL    *url.URL
	// Header is sent as it is, beside User-Agent and Authorization.
	Header http.Header
	// Body is read once, and closed when it is an io.Closer. Length is its number of bytes, or -1
	// when nobody knows.
	Body          io.Reader
	Length        int64
	Authorization string
}

// Write sends one write. No answer is a *Failure, which leaves open whether the target took it:
// whoever wants to know must look (tc-081). The caller closes the answer's body.
func (t *Target) Write(ctx context.Context, w Write) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(stallTimeout+answerTimeout, func() { cancel(errExchangeTimeout) })
	stop := func() { cancel(nil); limit.Stop() } // in this order: see sentBody.Read
	body := &sentBody{ctx: ctx, from: w.Body, limit: limit}
	req, err := http.NewRequestWithContext(ctx, w.Method, w.URL.String(), body)
	if err != nil {
		stop()
		return nil, err
	}
	req.GetBody = nil
	req.ContentLength = w.Length
	if w.Header != nil {
		req.Header = w.Header.Clone()
	}
	req.Header.Set("User-Agent", t.client.opts.UserAgent)
	req.Header.Del("Authorization")
	if w.Authorization != "" {
		req.Header.Set("Authorization", w.Authorization)
	}
	resp, err := t.writes.RoundTrip(req)
	if err != nil {
		if cause := body.failed(); cause != nil {
			err = cause // it was not the target that failed
		} else {
			err = failure(ctx, err)
		}
		stop()
		return nil, err
	}
	resp.Body = &boundBody{ReadCloser: resp.Body, ctx: ctx, limit: limit, stop: stop, stalls: true}
	return resp, nil
}

// ErrBody is wrapped by the error of a write whose body could not be read, so that the target never
// got the whole of it.
var ErrBody = errors.New("the body could not be read completely")
