package mirror

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// tc-029, tc-031: a target's wait is kept in full, however long; an absurd one stays in the future
// and never wraps round.
func TestTargetsWaitIsNotShortened(t *testing.T) {
	for hint, want := range map[string]time.Duration{
		"60": time.Minute, "7200": 2 * time.Hour, "604800": 7 * 24 * time.Hour, "9223372036854775807": longestWish,
	} {
		resp := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {hint}}, Body: io.NopCloser(strings.NewReader(""))}
		var p *Postponed
		if err := answerError(resp); !errors.As(err, &p) || p.Delay != want {
			t.Errorf("%s: %v", hint, err)
		}
		if at := time.Now().Add(p.Delay); !at.After(time.Now()) || at.Year() > 9999 {
			t.Errorf("%s: the job would run at %v", hint, at)
		}
	}
}
