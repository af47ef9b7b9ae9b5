// Package cooldownhttp puts a cooldown in front of an http.RoundTripper: while an authority asks to be left alone, nothing is sent to it,
// and after that one request finds out for all whether it is well again.
//
//	table := cooldown.New(cooldown.Options{})
//	client := &http.Client{Transport: &cooldownhttp.Transport{Table: table}}
//	response, err := client.Get(url)
//	if refusal, ok := cooldown.AsRefusal(err); ok {
//		// nothing was sent; ask again in refusal.Wait
//	}
//
// The transport never retries, never waits, never follows a redirect, and hands every response on as it came, body unread. The client's
// own redirects pass through it again, each judged by the authority that it dials.
package cooldownhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// Transport is a RoundTripper that asks a Table before each request and reports to it what came back. It is safe for concurrent use, as
// are the functions it is given. The fields must not change after the first request.
type Transport struct {
	// Base sends the requests. Nil means http.DefaultTransport. It must not retry throttled requests by itself.
	Base http.RoundTripper
	// Table holds the state. It is required, and shared by everything that talks to the same authorities.
	Table *cooldown.Table
	// OnTransition is called for each change that a response made, before the response is handed on, with the request's context.
	// It is the place for log lines. Nil tells nobody. Changes learned from other processes go to cooldown.Options.OnShared.
	OnTransition func(context.Context, cooldown.Transition)
	// OnAttempt is called once for each request that was handed to Base, when its status or its failure is known, with the request's
	// context. It is the place for counters. Refusals are not attempts. Nil tells nobody.
	OnAttempt func(context.Context, Attempt)
	// Now is the clock, for tests. Nil means time.Now.
	Now func() time.Time
}

// Attempt is one request that was really sent, counted from dialling.
type Attempt struct {
	Authority cooldown.Authority
	Method    string
	// Status is the response's status, 0 when there was no response.
	Status int
	// Err is why there was no response, nil when there was one. ErrAborted stands for a panic in Base.
	Err error
	// Throttled reports that the response asked to be left alone.
	Throttled bool
	// Probe reports that this was the probe after a cooldown.
	Probe bool

	gone error // why the request's context had ended when there was no response
}

// ErrAborted is the failure of an attempt during which Base panicked or ended the goroutine.
var ErrAborted = errors.New("the transport was aborted")

var errNoResponse = errors.New("cooldownhttp: Base returned neither a response nor an error")

// ErrNoTable is returned for a Transport without a Table.
var ErrNoTable = errors.New("cooldownhttp: Transport.Table is nil")

// RoundTrip implements http.RoundTripper. A refusal is returned as a *cooldown.Refusal, before any connection is used; the client wraps
// it, and cooldown.AsRefusal finds it again. Errors of Base are returned as they are.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	permit, err := t.ask(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // the contract of RoundTripper; nothing was read from it
		}
		return nil, err
	}
	return t.send(r, permit)
}

// ask decides whether the request is sent at all.
func (t *Transport) ask(r *http.Request) (cooldown.Permit, error) {
	switch {
	case t.Table == nil:
		return cooldown.Permit{}, ErrNoTable
	case r.URL == nil:
		return cooldown.Permit{}, errors.New("cooldownhttp: the request has no URL")
	case r.Context().Err() != nil: // nobody waits for it any more, so it shall not be the probe
		return cooldown.Permit{}, context.Cause(r.Context())
	}
	authority, err := cooldown.AuthorityOf(r.URL)
	if err != nil {
		return cooldown.Permit{}, fmt.Errorf("cooldownhttp: %v", err)
	}
	permit, refusal := t.Table.Ask(t.now(), authority)
	if refusal != nil {
		return cooldown.Permit{}, refusal
	}
	return permit, nil
}

// send sends the request and settles the permit on every way out: a response, an error, a panic of Base.
func (t *Transport) send(r *http.Request, permit cooldown.Permit) (*http.Response, error) {
	attempt := Attempt{Authority: permit.Authority(), Method: r.Method, Err: ErrAborted, Probe: permit.Probe()}
	defer func() {
		if attempt.Err != nil {
			permit.Release(t.now())
			attempt.gone = r.Context().Err()
			t.count(r, attempt)
		}
	}()
	response, err := t.base().RoundTrip(r)
	switch {
	case err != nil:
		attempt.Err = err
		return response, err
	case response == nil:
		attempt.Err = errNoResponse
		return nil, errNoResponse
	}
	attempt.Err, attempt.Status = nil, response.StatusCode
	transition := cooldown.Transition{}
	if attempt.Probe || mayThrottle(response.StatusCode) {
		now := t.now()
		header := retryAfter(response, now)
		transition = permit.Finish(now, response.StatusCode, header)
		attempt.Throttled = cooldown.Throttles(response.StatusCode, header)
	} else {
		permit.Finish(time.Time{}, response.StatusCode, retryafter.Report{}) // changes nothing, so the clock need not be read
	}
	t.count(r, attempt)
	if transition.Kind != cooldown.TransitionNone && t.OnTransition != nil {
		t.OnTransition(r.Context(), transition)
	}
	return response, nil
}

// mayThrottle reports whether it takes a look at Retry-After to know what the response means.
func mayThrottle(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// retryAfter reads the field. Names are compared in any case, as header fields that did not come over the wire may
// not be in canonical form.
func retryAfter(response *http.Response, now time.Time) retryafter.Report {
	const name = "Retry-After"
	values := response.Header.Values(name)
	for key, more := range response.Header {
		if key != name && strings.EqualFold(key, name) {
			values = append(slices.Clip(values), more...)
		}
	}
	return retryafter.Parse(values, now)
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
