package cooldownhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// exchange is one request from its permit to its verdict: at most one request on the wire. It is
// judged when a connection is at hand (gotConn), which every way of net/http's transport to write a
// request passes through: a new connection, a kept one, a resend, a retried stream.
type exchange struct {
	transport *Transport
	request   *http.Request
	ctx       context.Context //nolint:containedctx // the exchange's own, whose end is its end
	cancel    context.CancelCauseFunc
	fresh     bool // only a new connection will do
	began     time.Time
	wrote     chan struct{} // closed when the request is written
	judged    chan struct{} // closed when the table knows what became of it

	mu       sync.Mutex // guards all below
	permit   cooldown.Permit
	settled  bool
	conn     net.Conn // the one that has it, if nobody else uses that
	traced   bool     // Base speaks httptrace, so what follows can be believed
	reused   bool     // that connection had served before
	dropping bool     // the connection at hand was closed before anything could be written
	written  bool     // it was written
	flushed  bool     // its first bytes are on the wire; known of connections of DialContext alone
	returned int      // how often an HTTP/2 server gave it back
	answered bool     // the first byte of an answer has arrived
	// why nothing may be written any more: a *cooldown.Refusal, errResent or ErrHiddenAnswer
	stopped error
}

// errResent stops a transport that would write a request again by itself.
var errResent = errors.New("cooldownhttp: the connection was lost before a response")

func newExchange(t *Transport, r *http.Request, permit cooldown.Permit) *exchange {
	return &exchange{transport: t, request: r, permit: permit, began: t.now(), wrote: make(chan struct{}), judged: make(chan struct{})}
}

// roundTrip hands the request to Base and settles the permit on every way out: a response, an
// error, a refusal at the last moment, a panic of Base.
func (e *exchange) roundTrip() (*http.Response, Attempt, error) {
	ctx, cancel := context.WithCancelCause(e.request.Context())
	e.cancel = cancel
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: e.getConn, GotConn: e.gotConn, WroteHeaders: e.wroteHeaders, GotFirstResponseByte: e.firstByte,
	})
	e.ctx = ctx
	returned := false
	defer func() {
		if !returned {
			_, _ = e.failed(ErrAborted) // the panic goes on
		}
	}()
	go e.watch(ctx)
	response, err := e.transport.base().RoundTrip(e.request.WithContext(ctx))
	returned = true
	if err == nil && response == nil {
		err = errNoResponse
	}
	if err != nil {
		attempt, err := e.failed(err)
		cancel(nil)
		return nil, attempt, err
	}
	attempt := e.answer(response)
	response.Request = e.request
	if response.Body == nil || response.Body == http.NoBody {
		cancel(nil)
	} else if response.StatusCode != http.StatusSwitchingProtocols {
		response.Body = &ending{response.Body, cancel}
	}
	return response, attempt, nil
}

// ending is a response's body, at whose end the exchange's context ends too.
type ending struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (b *ending) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

func (e *exchange) getConn(string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.traced = true
}

// gotConn judges the request at the moment of the act. What may not be written is cancelled, which
// HTTP/2 looks at just before it writes; HTTP/1 does not, so there the connection, which nobody
// else uses, is closed as well.
func (e *exchange) gotConn(info httptrace.GotConnInfo) {
	shared := e.multiplexed(info.Conn)
	if !shared {
		e.await(info.Conn)
	}
	if shared && e.givenBack() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.traced, e.dropping = true, false
	switch {
	case e.stopped != nil:
	case e.answered:
		e.stopped = ErrHiddenAnswer
	case e.written:
		e.stopped = errResent
	case e.fresh && info.Reused && !shared:
		e.dropping = true
		// nothing is written to it, so that the transport goes on to the next by itself
		drop(info.Conn)
		return
	default:
		if e.judge() {
			e.reused = info.Reused
			if !shared {
				e.hold(info.Conn)
			}
			return
		}
	}
	e.dropping = true
	e.cancel(e.stopped)
	if !shared {
		drop(info.Conn)
	}
}

// maxReturned bounds how often a request is written again that HTTP/2 servers gave back. net/http
// waits between these writes, for seven seconds in all.
const maxReturned = 4

// givenBack judges a request anew that an HTTP/2 server gave back unread (GOAWAY, REFUSED_STREAM),
// and that net/http, which knows of what it does, is about to write again: it may while the
// authority is open. What was written before is an attempt of its own. A probe is never written
// again.
func (e *exchange) givenBack() bool {
	e.mu.Lock()
	if !e.written || e.answered || e.stopped != nil || e.returned == maxReturned || e.permit.Probe() || !e.judge() {
		e.mu.Unlock()
		return false
	}
	e.returned++
	before := Attempt{
		Authority: e.permit.Authority(), Method: e.request.Method, Err: errResent, Began: e.began, Ended: e.transport.now(),
	}
	e.began, e.written, e.wrote = before.Ended, false, make(chan struct{})
	e.mu.Unlock()
	e.transport.count(e.request, before)
	go e.watch(e.ctx)
	return true
}

// await waits for the verdict of the exchange that had the connection before: net/http gives a
// connection on when an answer without a body has been read, which can be before the table has
// heard of that answer.
func (e *exchange) await(c net.Conn) {
	if !reflect.TypeOf(c).Comparable() {
		return
	}
	found, _ := e.transport.connections.Load(c)
	if before, ok := found.(*exchange); ok && before != e {
		select {
		case <-before.judged:
		case <-e.request.Context().Done():
		}
	}
}

// hold notes that an HTTP/1 connection writes the request now. The caller holds mu.
func (e *exchange) hold(c net.Conn) {
	e.conn = c
	if own, ok := connOf(c); ok {
		own.exchange.Store(e)
	}
	if reflect.TypeOf(c).Comparable() {
		e.transport.connections.Store(c, e)
	}
}

// done tells whoever waits that the table knows. It comes before the caller's hooks, which may send
// requests themselves.
func (e *exchange) done() {
	close(e.judged)
	if e.conn != nil && reflect.TypeOf(e.conn).Comparable() {
		e.transport.connections.CompareAndDelete(e.conn, e)
	}
}

// judge asks the table whether the permit still holds. The caller holds mu.
func (e *exchange) judge() bool {
	permit, refusal := e.permit.Recheck(e.transport.now())
	if refusal != nil {
		e.stopped, e.settled = refusal, true
		return false
	}
	e.permit = permit
	return true
}

// multiplexed reports whether a connection carries other requests too.
func (e *exchange) multiplexed(c net.Conn) bool {
	if c, ok := c.(interface{ ConnectionState() tls.ConnectionState }); ok {
		return c.ConnectionState().NegotiatedProtocol == "h2"
	}
	base, ok := e.transport.base().(*http.Transport)
	return ok && base.Protocols != nil && base.Protocols.UnencryptedHTTP2() && !base.Protocols.HTTP1()
}

// drop closes a connection without a word to the other side, which could take time.
func drop(c net.Conn) {
	_ = below(c).Close()
}

func (e *exchange) wroteHeaders() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dropping || e.written {
		return
	}
	e.written = true
	close(e.wrote)
}

func (e *exchange) firstByte() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answered = true
}

// watch ends the wait of a request whose permit is withdrawn before it was written: for a
// connection, for a handshake, for a stream.
func (e *exchange) watch(ctx context.Context) {
	for {
		e.mu.Lock()
		withdrawn, wrote := e.permit.Withdrawn(), e.wrote
		e.mu.Unlock()
		select {
		case <-withdrawn:
			if e.withdraw() {
				return
			}
		case <-wrote:
			return
		case <-ctx.Done():
			return
		}
	}
}

// withdraw stops the exchange unless it is too late or the permit holds after all, and reports
// whether there is nothing more to watch.
func (e *exchange) withdraw() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.traced || e.conn != nil || e.written || e.settled || e.stopped != nil {
		return true
	}
	if e.judge() {
		return false
	}
	e.cancel(e.stopped)
	return true
}

// failed settles an exchange that brought no response, counts it if anything was sent, and gives
// the error that the caller hears.
func (e *exchange) failed(err error) (Attempt, error) {
	gone := goneOf(e.request.Context())
	now := e.transport.now()
	e.mu.Lock()
	if !e.settled {
		e.permit.Release(now)
		e.settled = true
	}
	permit, written, stopped := e.permit, e.written, e.stopped
	e.mu.Unlock()
	e.done()
	if stopped != nil && gone == "" {
		err = stopped
	}
	if _, refused := cooldown.AsRefusal(stopped); refused && !written {
		return Attempt{}, err
	}
	a := Attempt{
		Authority: permit.Authority(), Method: e.request.Method, Err: err, Probe: permit.Probe(),
		Began: e.began, Ended: now, gone: gone,
	}
	e.transport.count(e.request, a)
	return a, err
}

// answer settles an exchange that was answered.
func (e *exchange) answer(response *http.Response) Attempt {
	e.mu.Lock()
	permit, settled := e.permit, e.settled
	e.settled = true
	e.mu.Unlock()
	t := e.transport
	a := Attempt{
		Authority: permit.Authority(), Method: e.request.Method, Status: response.StatusCode, Probe: permit.Probe(),
		Began: e.began, Ended: t.now(),
	}
	if mayThrottle(response.StatusCode) {
		a.RetryAfter = retryafter.ParseHeader(response.Header, a.Ended)
		a.Throttled = cooldown.Throttles(a.Status, a.RetryAfter)
	}
	if !settled {
		a.Transition = permit.Finish(a.Ended, a.Status, a.RetryAfter)
	}
	if a.Throttled {
		a.Wait = t.Table.Look(a.Ended, a.Authority).Remaining
	}
	e.done()
	t.count(e.request, a)
	if a.Transition.Kind != cooldown.TransitionNone && t.OnTransition != nil {
		t.OnTransition(e.request.Context(), a.Transition)
	}
	return a
}

// diedIdle reports whether the request met a connection that had died before it, and may be
// repeated: one that had served before, and that brought not one byte of an answer. The transport's
// own wish to send it again says so as well.
func (e *exchange) diedIdle(err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case errors.Is(e.stopped, errResent):
		return e.returned == 0
	case e.stopped != nil, e.request.Context().Err() != nil, timedOut(err):
		return false
	}
	return e.reused && !e.answered && e.returned == 0
}
