package cooldownhttp_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
)

// R104, rw-042, rw-044: fields in milliseconds are hints beside Retry-After. The later one counts,
// a 503 with nothing else cools as well, nothing goes beyond 600 s, and what cannot be used falls
// back to 60.
func TestVendorHints(t *testing.T) {
	const tenMinutes = 600 * time.Second
	// a bubble's clock begins 30 s before
	epoch := time.Date(2000, 1, 1, 0, 0, 30, 0, time.UTC).Unix()
	for name, test := range map[string]struct {
		status int
		header http.Header
		least  time.Duration
		most   time.Duration
	}{
		"milliseconds alone":    {429, http.Header{"X-Ms-Retry-After-Ms": {"20000"}}, 20 * time.Second, 20 * time.Second},
		"the other name":        {429, http.Header{"Retry-After-Ms": {"20000"}}, 20 * time.Second, 20 * time.Second},
		"later than seconds":    {429, http.Header{"Retry-After": {"5"}, "Retry-After-Ms": {"20000"}}, 20 * time.Second, 20 * time.Second},
		"earlier than seconds":  {429, http.Header{"Retry-After": {"20"}, "Retry-After-Ms": {"5000"}}, 20 * time.Second, 20 * time.Second},
		"part of a second":      {429, http.Header{"Retry-After-Ms": {"250"}}, time.Second, time.Second},
		"503 with milliseconds": {503, http.Header{"Retry-After-Ms": {"20000"}}, 20 * time.Second, 20 * time.Second},
		"503 with zero":         {503, http.Header{"Retry-After-Ms": {"0"}}, 0, 0},
		"an hour":               {429, http.Header{"Retry-After-Ms": {"3600000"}}, tenMinutes, tenMinutes},
		"beyond a number":       {429, http.Header{"Retry-After-Ms": {"99999999999999999999"}}, tenMinutes, tenMinutes},
		"zero":                  {429, http.Header{"Retry-After-Ms": {"0"}}, time.Minute, 66 * time.Second},
		"malformed":             {429, http.Header{"Retry-After-Ms": {"soon"}}, time.Minute, 66 * time.Second},
		"malformed and seconds": {429, http.Header{"Retry-After": {"5"}, "Retry-After-Ms": {"soon"}}, 5 * time.Second, 5 * time.Second},
		"an epoch as seconds":   {429, http.Header{"Retry-After": {strconv.FormatInt(epoch, 10)}}, tenMinutes, tenMinutes},
		"an epoch beside them":  {429, http.Header{"Retry-After": {strconv.FormatInt(epoch, 10)}, "Retry-After-Ms": {"1000"}}, tenMinutes, tenMinutes},
		"lower case":            {429, http.Header{"retry-after-ms": {"20000"}}, 20 * time.Second, 20 * time.Second},
		"a year before 1000":    {429, http.Header{"Retry-After": {"Mon, 01 Jan 0001 00:00:00 GMT"}}, time.Minute, 66 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t, cooldown.Options{}, func(r *http.Request) (*http.Response, error) {
					response := reply(r, test.status)
					response.Header = test.header
					return response, nil
				})
				get := func() error {
					request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, registry, nil)
					if err != nil {
						t.Fatal(err)
					}
					response, err := g.client.Do(request)
					if err == nil {
						_ = response.Body.Close()
					}
					return err
				}
				if err := get(); err != nil {
					t.Fatal(err)
				}
				err := get()
				refusal, refused := errors.AsType[*cooldown.Refusal](err)
				if test.most == 0 {
					if refused || len(g.sent) != 2 {
						t.Errorf("refused: %v", err)
					}
					return
				}
				if !refused || refusal.Wait < test.least || refusal.Wait > test.most || len(g.sent) != 1 {
					t.Errorf("%v, %d sent; want a wait of %v to %v", err, len(g.sent), test.least, test.most)
				}
			})
		})
	}
}
