// Package cooldownhttp puts a cooldown in front of an http.RoundTripper: while an authority
// throttles, nothing is sent to it, and after that one request probes whether it has recovered.
//
//	table := cooldown.New(cooldown.Options{})
//	client := &http.Client{Transport: &cooldownhttp.Transport{Table: table}}
//	response, err := client.Get(url)
//	if refusal, ok := cooldown.AsRefusal(err); ok {
//		// nothing was sent; ask again in refusal.Wait
//	}
//
// The transport never waits, never follows a redirect, never repeats a write, and returns every
// response as it came, body unread. The client's own redirects pass through it again, each judged
// by the authority that it dials.
//
// # What Base must allow
//
// A request is judged when it is written, not only when it is asked for. That works with every Base
// that is an *http.Transport or passes requests on to one with their context, as instrumenting
// wrappers do: the package listens to [httptrace] and stops a request that may no longer be sent,
// over HTTP/1 and HTTP/2; [DialContext] closes the last gap of HTTP/1. A Base that sends a second
// request by itself after it has been answered is detected, and gets [ErrHiddenAnswer] instead of a
// connection. Of a Base that is not built on net/http none of this can be observed: it must write
// each request at once, and once.
//
// # Stability
//
// The names here stay as they are within a major version. New fields may be added to a [Transport];
// their zero value changes nothing.
package cooldownhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// Transport is a RoundTripper that asks a Table before each request and reports to it what came
// back. It is safe for concurrent use, as are the functions it is given. The fields must not change
// after the first request.
type Transport struct {
	// Base sends the requests. Nil means http.DefaultTransport. See the package's documentation for
	// what it must allow.
	Base http.RoundTripper
	// Table holds the state. It is required, and shared by everything that talks to the same
	// authorities.
	Table *cooldown.Table
	// OnTransition is called for each change that a response made, before the response is returned,
	// with the request's context. It is the place for log lines. It may be nil. Changes learned
	// from other processes go to cooldown.Options.OnShared.
	OnTransition func(context.Context, cooldown.Transition)
	// OnAttempt is called once for each request that was sent, counted from dialling, when its
	// status or its failure is known, with the request's context. It is the place for counters.
	// Refusals are not attempts, also when they come after a connection was made. It may be nil.
	OnAttempt func(context.Context, Attempt)
	// Now is the clock, for tests. Nil means time.Now.
	Now func() time.Time

	connections sync.Map // net.Conn to the *exchange that has it
}

// Attempt is one request that was sent, counted from dialling.
type Attempt struct {
	Authority cooldown.Authority
	Method    string
	// Status is the response's status, 0 when there was no response.
	Status int
	// Err is why there was no response, nil when there was one. ErrAborted stands for a panic in
	// Base.
	Err error
	// Throttled reports that the response throttles.
	Throttled bool
	// Probe reports that this was the probe after a cooldown.
	Probe bool
	// Began is when the request was passed to Base, and Ended when its status or its failure was
	// known.
	Began, Ended time.Time
	// RetryAfter is what the response's header says, as of Ended (retryafter.ParseHeader); read for
	// the statuses that may throttle.
	RetryAfter retryafter.Report
	// Transition is what the response changed.
	Transition cooldown.Transition
	// Wait is how long nothing may be sent to the authority, as of Ended; 0 when the response did
	// not throttle.
	Wait time.Duration

	gone string // the outcome when the request's context had ended before there was a response
}

// ErrAborted is the failure of an attempt during which Base panicked or ended the goroutine.
var ErrAborted = errors.New("the transport was aborted")

var errNoResponse = errors.New("cooldownhttp: Base returned neither a response nor an error")

// ErrHiddenAnswer is returned when Base, or something below it, sends a request again after an
// answer that it does not return: the answer may have started a cooldown that goes unnoticed. Put
// layers that retry outside of this transport.
var ErrHiddenAnswer = errors.New("cooldownhttp: Base repeats requests by itself after an answer; put the retrying layer outside")

// ErrNoTable is returned for a Transport without a Table.
var ErrNoTable = errors.New("cooldownhttp: Transport.Table is nil")

// RoundTrip implements http.RoundTripper. A refusal is returned as a *cooldown.Refusal; the client
// wraps it, and cooldown.AsRefusal finds it again. Errors of Base are returned as they are.
//
// The table is asked twice: before any connection is made or waited for, and again when the request
// is about to be written. A permit that no longer holds by then is a refusal, and nothing is
// written. Base never writes a request again by itself; a read on a connection that was closed
// while idle is repeated once, on a new connection, and one that an HTTP/2 server returned
// unprocessed (GOAWAY, REFUSED_STREAM) is written again by net/http. Each time the table is asked
// again, and only while the authority is open is anything repeated.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	permit, err := t.ask(r)
	if err != nil {
		closeUnread(r)
		return nil, err
	}
	response, _, err := t.Send(r, permit)
	return response, err
}

// Send is RoundTrip for a caller that has asked the table itself, to do something between the
// permit and the request, or to learn what the response meant. It settles the permit, which must be
// for the authority of the request's URL. Its response and error are those of RoundTrip; the
// attempt is the one that OnAttempt receives, and the zero Attempt when nothing was sent.
func (t *Transport) Send(r *http.Request, permit cooldown.Permit) (*http.Response, Attempt, error) {
	if err := t.fits(r, permit); err != nil {
		permit.Release(t.now())
		closeUnread(r)
		return nil, Attempt{}, err
	}
	e := newExchange(t, r, permit)
	for repeated := false; ; repeated = true {
		response, attempt, err := e.roundTrip()
		if err == nil || repeated || !e.diedIdle(err) {
			return response, attempt, err
		}
		again, ok := repeatable(r)
		if !ok {
			return nil, attempt, err
		}
		permit, refusal := t.Table.Ask(r.Context(), t.now(), permit.Authority())
		if refusal != nil {
			return nil, attempt, refusal
		}
		if permit.Probe() { // a probe is one request on the wire; the next caller's will be it
			permit.Release(t.now())
			return nil, attempt, err
		}
		e = newExchange(t, again, permit)
		e.fresh = true
	}
}

// closeUnread keeps the contract of RoundTripper for a request that is not sent.
func closeUnread(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// repeatable is a request that may be written a second time without changing anything: a read,
// whose body, if it has one, can be had again.
func repeatable(r *http.Request) (*http.Request, bool) {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
	default:
		return nil, false
	}
	if r.Body == nil || r.Body == http.NoBody {
		return r, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, false
	}
	again := r.Clone(r.Context())
	again.Body = body
	return again, true
}

// ask decides whether the request is sent at all.
func (t *Transport) ask(r *http.Request) (cooldown.Permit, error) {
	authority, err := t.authorityOf(r)
	if err != nil {
		return cooldown.Permit{}, err
	}
	permit, refusal := t.Table.Ask(r.Context(), t.now(), authority)
	if refusal != nil {
		return cooldown.Permit{}, refusal
	}
	return permit, nil
}

// authorityOf is where the request goes, if it can be sent at all.
func (t *Transport) authorityOf(r *http.Request) (cooldown.Authority, error) {
	switch {
	case t.Table == nil:
		return cooldown.Authority{}, ErrNoTable
	case r.URL == nil:
		return cooldown.Authority{}, errors.New("cooldownhttp: the request has no URL")
	case r.Context().Err() != nil: // nobody waits for it any more, so it shall not be the probe
		return cooldown.Authority{}, context.Cause(r.Context())
	}
	authority, err := cooldown.AuthorityOf(r.URL)
	if err != nil {
		return cooldown.Authority{}, fmt.Errorf("cooldownhttp: %v", err)
	}
	return authority, nil
}

// fits checks that the permit is for the request.
func (t *Transport) fits(r *http.Request, permit cooldown.Permit) error {
	authority, err := t.authorityOf(r)
	if err == nil && authority != permit.Authority() {
		err = fmt.Errorf("cooldownhttp: the permit is for %s, the request for %s", permit.Authority(), authority)
	}
	return err
}

// mayThrottle reports whether it takes a look at Retry-After to know what the response means.
func mayThrottle(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

func (t *Transport) count(r *http.Request, a Attempt) {
	if t.OnAttempt != nil {
		t.OnAttempt(r.Context(), a)
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}

func (t *Transport) now() time.Time {
	if t.Now != nil {
		return t.Now()
	}
	return time.Now()
}

// CloseIdleConnections passes the call of http.Client.CloseIdleConnections on to Base.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}
