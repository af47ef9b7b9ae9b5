package cooldownhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
)

// R80 R81: each request really sent is told of once, in one of eight classes; refusals are not.
func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, cooldown.Options{}, script("200", "304", "404", "302", "500", "503", "refused", "429:5", "200"))
		for range 7 {
			if response, err := g.client.Get(registry); err == nil {
				response.Body.Close()
			}
		}
		g.get(registry, 429)
		for range 50 {
			g.refused(registry, 5*time.Second, false)
		}
		time.Sleep(5 * time.Second)
		g.get(registry, 200) // the probe is one attempt
		if got, want := g.outcomes(), "success not_modified client_error server_error server_error server_error connection throttled success"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if g.count() != len(g.attempts) {
			t.Errorf("%d sent and %d counted", g.count(), len(g.attempts))
		}
		for i, a := range g.attempts {
			if a.Authority.String() != "registry.example:443" || a.Method != "GET" || a.Probe != (i == 8) || (a.Err != nil) != (a.Status == 0) {
				t.Errorf("%d: %+v", i, a)
			}
		}
	})
}

func TestOutcome(t *testing.T) {
	for _, test := range []struct {
		attempt cooldownhttp.Attempt
		want    string
	}{
		{cooldownhttp.Attempt{Status: 101}, "success"},
		{cooldownhttp.Attempt{Status: 206}, "success"},
		{cooldownhttp.Attempt{Status: 300}, "server_error"},
		{cooldownhttp.Attempt{Status: 307}, "server_error"},
		{cooldownhttp.Attempt{Status: 400}, "client_error"},
		{cooldownhttp.Attempt{Status: 410}, "client_error"},
		{cooldownhttp.Attempt{Status: 503}, "server_error"},
		{cooldownhttp.Attempt{Status: 503, Throttled: true}, "throttled"},
		{cooldownhttp.Attempt{Status: 429, Throttled: true}, "throttled"},
		{cooldownhttp.Attempt{Err: errors.New("refused")}, "connection"},
		{cooldownhttp.Attempt{Err: cooldownhttp.ErrAborted}, "connection"},
		{cooldownhttp.Attempt{Err: fmt.Errorf("get: %w", context.Canceled)}, "cancelled"},
		{cooldownhttp.Attempt{Err: fmt.Errorf("get: %w", context.DeadlineExceeded)}, "timeout"},
		{cooldownhttp.Attempt{Err: &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}}, "timeout"},
		{cooldownhttp.Attempt{Err: &net.DNSError{IsNotFound: true}}, "connection"},
	} {
		if got := test.attempt.Outcome(); got != test.want {
			t.Errorf("%+v: %s, want %s", test.attempt, got, test.want)
		}
	}
}

// R81: a context that has ended says who gave up, and its cause, if it was the clock; whatever the
// error is that it led to.
func TestOutcomeOf(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		cause error // nil for a context that goes on
		err   error
		want  string
	}{
		{nil, broken, "connection"},
		{nil, os.ErrDeadlineExceeded, "timeout"},
		{context.Canceled, broken, "cancelled"},
		{broken, os.ErrDeadlineExceeded, "cancelled"},
		{os.ErrDeadlineExceeded, broken, "timeout"},
		{os.ErrDeadlineExceeded, context.Canceled, "timeout"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if test.cause != nil {
			cancel(test.cause)
		}
		if got := cooldownhttp.OutcomeOf(ctx, test.err); got != test.want {
			t.Errorf("%v because of %v: %s, want %s", test.err, test.cause, got, test.want)
		}
		cancel(nil)
	}
}

type key struct{}

// The hooks get the request's context, before the response is handed on; without hooks all goes the
// same way.
func TestHooks(t *testing.T) {
	g := newRig(t, cooldown.Options{}, script("429:5"))
	var order []string
	g.transport.OnAttempt = func(ctx context.Context, a cooldownhttp.Attempt) {
		order = append(order, fmt.Sprint("attempt ", a.Outcome(), " ", ctx.Value(key{})))
	}
	g.transport.OnTransition = func(ctx context.Context, tr cooldown.Transition) {
		order = append(order, fmt.Sprint("transition ", tr.Kind, " ", ctx.Value(key{})))
	}
	r := request(t, context.WithValue(context.Background(), key{}, "mine"), http.MethodGet, registry, nil)
	response, err := g.transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := fmt.Sprint(order); got != "[attempt throttled mine transition entered mine]" {
		t.Errorf("%s", got)
	}
	silent := &cooldownhttp.Transport{Base: roundTripper(script("429:5", "connection reset")), Table: cooldown.New(cooldown.Options{})}
	if response, err := silent.RoundTrip(r); err != nil || response.StatusCode != 429 {
		t.Errorf("%v", err)
	}
	if _, err := silent.RoundTrip(request(t, context.Background(), http.MethodGet, "https://other.example", nil)); err == nil {
		t.Error("no error")
	}
}

// The clock can be given.
func TestClock(t *testing.T) {
	now := time.Now()
	g := newRig(t, cooldown.Options{}, script("429:600", "200"))
	g.transport.Now = func() time.Time { return now }
	g.get(registry, 429)
	now = now.Add(599 * time.Second)
	g.refused(registry, time.Second, false)
	now = now.Add(time.Second)
	g.get(registry, 200)
}
