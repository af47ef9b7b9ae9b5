package upstream

import (
	"context"
	"net/http"
	"net/url"

	"github.com/ecluse-gate/ecluse/cooldown"
)

// maxRedirects bounds the hops of a private artifact (R91).
const maxRedirects = 3

// Private is one private upstream. It neither starts nor consults a cooldown, even where it shares
// a host with a public one (R8).
type Private struct {
	client    *Client
	base      *url.URL
	authority cooldown.Authority
	spelling  Spelling
}

// Private returns the private upstream at a base address.
func (c *Client) Private(base *url.URL, spelling Spelling) (*Private, error) {
	a, err := cooldown.AuthorityOf(base)
	if err != nil {
		return nil, err
	}
	return &Private{client: c, base: base, authority: a, spelling: spelling}, nil
}

// Under is the address of an escaped path below the base.
func (p *Private) Under(path string) (*url.URL, error) { return p.spelling.under(p.base, path) }

// Owned reads an absolute address that a private document names; see Public.Owned.
func (p *Private) Owned(address string) (*url.URL, bool) {
	return (&Public{base: p.base, authority: p.authority}).Owned(address)
}

// Do sends one read with the caller's credential. Only artifacts follow redirects: up to three,
// over https, without the credential from the first change of authority on (R91).
func (p *Private) Do(ctx context.Context, r Request, authorization string) (*http.Response, error) {
	transport := p.client.private
	for hop := 0; ; hop++ {
		resp, err := p.client.exchange(ctx, r, authorization, transport.RoundTrip)
		if err != nil || r.Kind == Metadata || hop == maxRedirects {
			return resp, err
		}
		next, ok := redirect(resp)
		if !ok {
			return resp, nil
		}
		_ = resp.Body.Close()
		if a, err := cooldown.AuthorityOf(next); err != nil || a != p.authority {
			authorization, transport = "", p.client.outside
		}
		r.URL = next
	}
}

// redirect reads where a private file's answer points, when it may be followed.
func redirect(resp *http.Response) (*url.URL, bool) {
	next, ok := location(resp)
	if !ok {
		return nil, false
	}
	sameOrigin := next.Scheme == resp.Request.URL.Scheme && next.Host == resp.Request.URL.Host
	return next, next.Scheme == "https" || sameOrigin
}

// location reads where an answer points.
func location(resp *http.Response) (*url.URL, bool) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, false
	}
	next, err := resp.Location()
	return next, err == nil && next.User == nil
}
