package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// Public is one public upstream. Every read asks its authority's cooldown first.
type Public struct {
	client    *Client
	base      *url.URL
	authority cooldown.Authority
	spelling  Spelling
	line      *line
	root      string // what plain addresses of this upstream begin with; empty for nothing
}

// Spelling is how an upstream wants an encoded slash in a path (C28).
type Spelling bool

// The spellings. Most registries take both.
const (
	Encoded Spelling = false // "/@scope%2fname", as npm itself sends it
	Literal Spelling = true  // "/@scope/name"
)

func (s Spelling) under(base *url.URL, path string) (*url.URL, error) {
	if s == Literal {
		path = strings.ReplaceAll(path, "%2f", "/")
	}
	return join(base, path)
}

// Public returns the public upstream at a base address. Only that address's authority is ever
// dialled through it.
func (c *Client) Public(base *url.URL, spelling Spelling) (*Public, error) {
	a, err := cooldown.AuthorityOf(base)
	if err != nil {
		return nil, err
	}
	c.guard.trust(a)
	p := &Public{client: c, base: base, authority: a, spelling: spelling, line: c.line(a)}
	root := base.Scheme + "://" + base.Host + "/"
	if _, ok := p.Owned(root); ok {
		p.root = root
	}
	return p, nil
}

// Authority is the destination whose cooldown counts.
func (p *Public) Authority() cooldown.Authority { return p.authority }

// Base is the address that the upstream is configured with.
func (p *Public) Base() string { return p.base.String() }

// Remaining is how long the authority still cools, and whether it is not open. Reading it changes
// nothing but what is known of other processes (tc-072).
func (p *Public) Remaining(now time.Time) (wait time.Duration, closed bool) {
	p.client.opts.Table.Recall(now)
	s := p.client.opts.Table.Look(now, p.authority)
	return s.Remaining, s.Phase != cooldown.PhaseOpen
}

// Refused is the refusal that Do would end with at once, or nil when it may send or wait. It is for
// callers that have work to spare before Do; thousands of refused clients a second cost next to
// nothing that way (C80).
func (p *Public) Refused(ctx context.Context, now time.Time) *cooldown.Refusal {
	s := p.client.opts.Table.Look(now, p.authority)
	if p.client.opts.Hold > 0 || s.Phase != cooldown.PhaseCooling || s.Remaining <= 0 {
		return nil
	}
	permit, refusal := p.client.opts.Table.Ask(ctx, now, p.authority)
	if refusal == nil { // the deadline passed in between
		permit.Release(now)
	}
	return refusal
}

// Request is one read.
type Request struct {
	Method string // GET or HEAD, or POST with a question in Body
	// URL is the address, from Under or Owned.
	URL    *url.URL
	Kind   Kind
	Accept string
	// IfNoneMatch is a validator of an earlier answer, or empty.
	IfNoneMatch string
	// Body is a question that is too long for an address, in JSON; nil for none.
	Body []byte
}

// body is what is sent.
func (r Request) body() io.Reader {
	if r.Body == nil {
		return http.NoBody
	}
	return bytes.NewReader(r.Body)
}

// Under is the address of an escaped path below the base.
func (p *Public) Under(path string) (*url.URL, error) { return p.spelling.under(p.base, path) }

// Owned reads an absolute address that a document names. It is usable only with the scheme and the
// authority of this upstream, since nothing else may be dialled, and without user information.
func (p *Public) Owned(address string) (*url.URL, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != p.base.Scheme || u.User != nil {
		return nil, false
	}
	a, err := cooldown.AuthorityOf(u)
	return u, err == nil && a == p.authority
}

// Owns reports whether Owned would read the address. Most addresses are told by how they begin,
// which matters for listings of thousands.
func (p *Public) Owns(address string) bool {
	if path, ok := strings.CutPrefix(address, p.root); ok && p.root != "" && plain(path) {
		return true
	}
	_, ok := p.Owned(address)
	return ok
}

// plain reports whether a path has no character that means anything to a reader of addresses, or
// that one refuses.
func plain(path string) bool {
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c >= 0x7f || c == '%' || c == '?' || c == '#' {
			return false
		}
	}
	return true
}

// Response is an upstream's answer at its headers; the caller closes Body.
type Response struct {
	*http.Response
	// Throttled tells that this answer started or renewed a cooldown, which now lasts Wait.
	Throttled bool
	Wait      time.Duration
	// RetryAfter is what the field says of a 429 or 503, as of the receipt; the cooldown bounds it,
	// and others may not want to.
	RetryAfter retryafter.Report
}

// Do sends one read, or refuses it with *cooldown.Refusal or *Busy, having sent nothing. An answer
// of any status is no error; no answer is a *Failure. The exchange, body included, ends when ctx
// does. Requests to one authority wait for their turn (R97), and with Hold for the end of its
// cooldown: one that is refused (R89), and one that meets the throttled answer itself, which is
// sent once more (R98). A redirect of metadata within the authority is followed once, by a read
// that is asked for, sent and counted like any other (R103).
func (p *Public) Do(ctx context.Context, r Request) (*Response, error) {
	ctx = withKind(ctx, r.Kind)
	h := &holding{public: p}
	resp, err := p.read(ctx, r, h)
	if err != nil || r.Kind != Metadata || r.Body != nil {
		return resp, err
	}
	next, ok := location(resp.Response)
	if !ok {
		return resp, nil
	}
	if next, ok = p.Owned(next.String()); !ok {
		return resp, nil
	}
	_ = resp.Body.Close()
	next.Host = p.base.Host // in one spelling
	r.URL = next
	return p.read(ctx, r, h)
}

// read sends one read under h.
func (p *Public) read(ctx context.Context, r Request, h *holding) (*Response, error) {
	for repeated := false; ; {
		h.listen()
		resp, attempt, err := p.send(ctx, r)
		refusal, refused := errors.AsType[*cooldown.Refusal](err)
		switch {
		case refused && h.refused(ctx, refusal):
			continue
		case err != nil:
			return nil, err
		case attempt.Throttled && !repeated && h.allows(attempt.Wait) && h.sit():
			_ = resp.Body.Close()
			if !h.wait(ctx, attempt.Wait, nil) {
				return nil, failure(ctx, context.Cause(ctx))
			}
			repeated = true
			continue
		}
		return &Response{Response: resp, Throttled: attempt.Throttled, Wait: attempt.Wait, RetryAfter: attempt.RetryAfter}, nil
	}
}

// send waits for the request's turn, asks the cooldown, and sends it. Without a place in the line a
// request goes only as the probe.
func (p *Public) send(ctx context.Context, r Request) (*http.Response, cooldownhttp.Attempt, error) {
	for {
		at, err := p.line.enter(ctx)
		if err != nil {
			return nil, cooldownhttp.Attempt{}, failure(ctx, err)
		}
		permit, refusal := p.client.opts.Table.Ask(ctx, time.Now(), p.authority)
		switch {
		case refusal != nil:
			at.leave(false)
			return nil, cooldownhttp.Attempt{}, refusal
		case at == nil && !permit.Probe(): // the authority has opened in between
			permit.Release(time.Now())
		default:
			return p.sendAt(ctx, r, at, permit)
		}
	}
}

// sendAt sends a request from its place in the line, which it gives back.
func (p *Public) sendAt(ctx context.Context, r Request, at *place, permit cooldown.Permit) (*http.Response, cooldownhttp.Attempt, error) {
	var attempt cooldownhttp.Attempt
	defer func() { at.leave(good(attempt)) }()
	resp, err := p.client.exchange(ctx, r, "", func(req *http.Request) (resp *http.Response, err error) {
		resp, attempt, err = p.client.public.Send(req, permit)
		return resp, err
	})
	return resp, attempt, err
}

// good reports whether an attempt shows that the authority can take more requests.
func good(a cooldownhttp.Attempt) bool { return a.Status != 0 && a.Status < 500 && !a.Throttled }

// exchange sends one request, with a bound on its time, and types its error.
func (c *Client) exchange(
	ctx context.Context, r Request, authorization string, send func(*http.Request) (*http.Response, error),
) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(metadataTimeout, func() { cancel(errExchangeTimeout) })
	stop := func() { limit.Stop(); cancel(nil) }
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), r.body())
	if err != nil {
		stop()
		return nil, err
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.Accept != "" {
		req.Header.Set("Accept", r.Accept)
	}
	if r.IfNoneMatch != "" {
		req.Header.Set("If-None-Match", r.IfNoneMatch)
	}
	encoding := "identity" // artifacts are sent on as they are (C30)
	if r.Kind == Metadata {
		encoding = "gzip"
	}
	req.Header.Set("Accept-Encoding", encoding)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := send(req)
	if err != nil {
		err = failure(ctx, err)
		stop()
		return nil, err
	}
	if r.Kind != Metadata {
		limit.Stop()
	}
	resp.Body = &boundBody{ReadCloser: resp.Body, ctx: ctx, limit: limit, stop: stop, stalls: r.Kind != Metadata, left: resp.ContentLength}
	return resp, nil
}

// boundBody ends an exchange with its body. A metadata exchange keeps its one limit; an artifact
// may take as long as it wants as long as bytes arrive.
type boundBody struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // the exchange that this body ends
	limit  *time.Timer
	stop   func()
	stalls bool

	busy  sync.Mutex // held by Read, and guards what follows
	left  int64      // of the length that the answer named; negative when it named none
	ended bool
}

func (b *boundBody) Read(p []byte) (int, error) {
	b.busy.Lock()
	defer b.busy.Unlock()
	if b.stalls { // only waiting for the upstream counts, not a client that reads slowly
		b.limit.Reset(stallTimeout)
		defer b.limit.Stop()
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	b.ended = b.ended || err != nil
	if err != nil && err != io.EOF {
		err = &Failure{Outcome: cooldownhttp.OutcomeOf(b.ctx, err), err: err}
	}
	return n, err
}

// Bounds of reading what nobody wants, so that the connection can be used again.
const (
	drainBytes = 64 << 10
	drainTime  = 50 * time.Millisecond
)

// Close ends the exchange, also while a Read waits. The rest of a small body is read first, if it
// is there.
func (b *boundBody) Close() error {
	defer b.stop()
	if b.busy.TryLock() {
		b.drain()
		b.busy.Unlock()
	}
	return b.ReadCloser.Close()
}

// drain reads the rest of a small body. The caller holds busy.
func (b *boundBody) drain() {
	if b.ended || b.left > drainBytes || b.ctx.Err() != nil {
		return
	}
	b.ended = true
	b.limit.Reset(drainTime)
	_, _ = io.CopyN(io.Discard, b.ReadCloser, drainBytes+1)
}
