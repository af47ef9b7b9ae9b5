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
	// Elapsed is the time from the decision to send until status and header fields, or the failure, arrived.
	Elapsed time.Duration
}

// ErrAborted is the failure of an attempt during which Base panicked or ended the goroutine.
var ErrAborted = errors.New("the transport was aborted")

// ErrNoTable is returned for a Transport without a Table.
var ErrNoTable = errors.New("cooldownhttp: Transport.Table is nil")

// RoundTrip implements http.RoundTripper. A refusal is returned as a *cooldown.Refusal, before any connection is used; the client wraps
// it, and cooldown.AsRefusal finds it again.
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
	if t.Table == nil {
		return cooldown.Permit{}, ErrNoTable
	}
	if err := r.Context().Err(); err != nil { // nobody waits for it any more, so it shall not be the probe
		return cooldown.Permit{}, context.Cause(r.Context())
	}
	if r.URL == nil {
		return cooldown.Permit{}, errors.New("cooldownhttp: the request has no URL")
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
func (t *Transport) send(r *http.Request, permit cooldown.Permit) (response *http.Response, err error) {
	attempt := Attempt{Authority: permit.Authority(), Method: r.Method, Err: ErrAborted, Probe: permit.Probe()}
	start := t.now()
	defer func() {
		if attempt.Err != nil {
			now := t.now()
			permit.Release(now)
			attempt.Elapsed = now.Sub(start)
			t.count(r, attempt)
		}
	}()
	response, err = t.base().RoundTrip(r)
	if err != nil {
		attempt.Err = err
		return response, err
	}
	if response == nil {
		attempt.Err = errors.New("cooldownhttp: Base returned neither a response nor an error")
		return nil, attempt.Err
	}
	now := t.now()
	header := retryAfter(response, now)
	transition := permit.Finish(now, response.StatusCode, header)
	attempt.Err, attempt.Status, attempt.Elapsed = nil, response.StatusCode, now.Sub(start)
	attempt.Throttled = cooldown.Throttles(response.StatusCode, header)
	t.count(r, attempt)
	if transition.Kind != cooldown.TransitionNone && t.OnTransition != nil {
		t.OnTransition(r.Context(), transition)
	}
	return response, nil
}

// retryAfter reads the field where it can matter. Names are compared in any case, as header fields that did not come over the wire may
// not be in canonical form.
func retryAfter(response *http.Response, now time.Time) retryafter.Report {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable {
		return retryafter.Report{Received: now}
	}
	const name = "Retry-After"
	values := response.Header.Values(name)
	for key, more := range response.Header {
		if key != name && strings.EqualFold(key, name) {
			values = append(values[:len(values):len(values)], more...)
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
