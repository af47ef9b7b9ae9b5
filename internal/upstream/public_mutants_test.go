package upstream

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// R97: what shows that an authority can take more: an answer that neither throttles nor tells of
// trouble.
func TestGoodAnswers(t *testing.T) {
	for _, test := range []struct {
		attempt cooldownhttp.Attempt
		want    bool
	}{
		{cooldownhttp.Attempt{}, false},
		{cooldownhttp.Attempt{Status: 200}, true},
		{cooldownhttp.Attempt{Status: 304}, true},
		{cooldownhttp.Attempt{Status: 404}, true},
		{cooldownhttp.Attempt{Status: 499}, true},
		{cooldownhttp.Attempt{Status: 500}, false},
		{cooldownhttp.Attempt{Status: 503}, false},
		{cooldownhttp.Attempt{Status: 429, Throttled: true}, false},
	} {
		if got := good(test.attempt); got != test.want {
			t.Errorf("%+v: %t", test.attempt, got)
		}
	}
}

type sender func(*http.Request) (*http.Response, error)

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

// newPublic is an upstream whose requests the test answers.
func newPublic(t *testing.T, hold time.Duration, answer sender) *Public {
	t.Helper()
	c := New(Options{
		Table:   cooldown.New(cooldown.Options{Strict: func(m cooldown.Misuse) { panic(fmt.Sprint("permit ", m.Kind)) }}),
		Metrics: obs.NewMetrics(), Logger: obs.Discard(), Tracer: noop.NewTracerProvider().Tracer(""), Hold: hold,
	})
	c.public.Base = answer
	t.Cleanup(c.Close)
	p, err := c.Public(&url.URL{Scheme: "http", Host: "registry.example"}, Encoded)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// R97: a request that came while the authority was closed, and finds it open, stands in line like
// any other, and keeps no permit.
func TestOpenedBeforeItAsked(t *testing.T) {
	var p *Public
	underWay := 0
	p = newPublic(t, 0, func(r *http.Request) (*http.Response, error) {
		p.line.mu.Lock()
		underWay = p.line.underWay
		p.line.mu.Unlock()
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
	})
	looks := 0
	p.line.closed = func() bool { looks++; return looks == 1 }
	resp, err := p.Do(t.Context(), Request{Method: http.MethodGet, URL: p.base, Kind: Metadata})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if n := p.client.opts.Table.Unsettled(); underWay != 1 || n != 0 || p.line.underWay != 0 {
		t.Errorf("%d were under way, then %d; %d permits are kept", underWay, p.line.underWay, n)
	}
}

// R89 C80: callers that could be held are not refused beforehand.
func TestRefusedBeforehand(t *testing.T) {
	for hold, want := range map[time.Duration]bool{0: true, time.Second: false} {
		p := newPublic(t, hold, nil)
		now := time.Now()
		permit, _ := p.client.opts.Table.Ask(t.Context(), now, p.authority)
		permit.Finish(now, http.StatusTooManyRequests, retryafter.Parse([]string{"60"}, now))
		if refusal := p.Refused(t.Context(), now); (refusal != nil) != want {
			t.Errorf("with a hold of %v: %v", hold, refusal)
		}
		if refusal := p.Refused(t.Context(), now.Add(time.Minute)); refusal != nil {
			t.Errorf("after the pause: %v", refusal)
		}
	}
}

// What was not sent is no failure of the upstream.
func TestWhatWasNotSentIsNoFailure(t *testing.T) {
	for _, want := range []error{&Busy{Wait: time.Second}, &cooldown.Refusal{Wait: time.Second}} {
		if got := failure(t.Context(), fmt.Errorf("get: %w", want)); got != want { //nolint:errorlint // it itself
			t.Errorf("%T became %T", want, got)
		}
	}
}

// R78 R80: an entry to a cooldown is counted, under how the answer named the pause.
func TestEntriesAreCounted(t *testing.T) {
	p := newPublic(t, 0, func(r *http.Request) (*http.Response, error) {
		header := http.Header{"Retry-After": {"60"}}
		return &http.Response{StatusCode: http.StatusTooManyRequests, Header: header, Body: http.NoBody, Request: r}, nil
	})
	for range 2 { // the second is refused
		if resp, err := p.Do(t.Context(), Request{Method: http.MethodGet, URL: p.base, Kind: Metadata}); err == nil {
			resp.Body.Close()
		}
	}
	families, err := p.client.opts.Metrics.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var entries strings.Builder
	for _, f := range families {
		if f.GetName() == "ecluse_cooldown_entries_total" {
			for _, m := range f.GetMetric() {
				entries.WriteString(fmt.Sprint(m.GetLabel()[0].GetValue(), " ", m.GetLabel()[1].GetValue(), " ", m.GetCounter().GetValue(), ";"))
			}
		}
	}
	if want := "seconds registry.example:80 1;"; entries.String() != want {
		t.Errorf("%q, want %q", entries.String(), want)
	}
}
