package cooldownhttp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
)

// authority is that of the registry.
func authority(t *testing.T) cooldown.Authority {
	t.Helper()
	a, err := cooldown.AuthorityOf(request(t, t.Context(), http.MethodGet, registry, nil).URL)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// R63 R69: a permit that is not for the request, or whose request nobody waits for any more, is
// given back, so that the next request is the probe. Nothing is sent, the body is closed, and there
// was no attempt.
func TestSendWithAPermitThatDoesNotFit(t *testing.T) {
	gone, leave := context.WithCancelCause(t.Context())
	cause := errors.New("gone")
	leave(cause)
	for name, test := range map[string]struct {
		ctx   context.Context
		url   string
		cause error
	}{
		"elsewhere":     {context.Background(), "https://elsewhere.example/", nil},
		"another port":  {context.Background(), "https://registry.example:8443/", nil},
		"nobody waits":  {gone, registry, cause},
		"not an URL":    {context.Background(), "ftp://registry.example/", nil},
		"another realm": {context.Background(), "http://registry.example/", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := cooled(t, cooldown.Options{}, script("200"))
				body := &closeCounter{Reader: strings.NewReader("x")}
				r := request(t, test.ctx, http.MethodPut, test.url, body)
				permit, refusal := g.table.Ask(t.Context(), time.Now(), authority(t))
				if refusal != nil || !permit.Probe() {
					t.Fatalf("no probe: %v", refusal)
				}
				_, attempt, err := g.transport.Send(r, permit)
				if err == nil || test.cause != nil && !errors.Is(err, test.cause) || attempt != (cooldownhttp.Attempt{}) {
					t.Errorf("%v, %+v", err, attempt)
				}
				if body.closed.Load() != 1 || body.read.Load() != 0 || g.count() != 1 || g.outcomes() != "throttled" {
					t.Errorf("body closed %d times, %d sent, attempts %s", body.closed.Load(), g.count(), g.outcomes())
				}
				g.get(registry, 200)
				if got := g.heard(); got != "entered recovered" {
					t.Errorf("%s", got)
				}
			})
		})
	}
}
