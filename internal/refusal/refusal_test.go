package refusal

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// R35: a wait is advertised in whole seconds, rounded up, and never as 0.
func TestRetryAfter(t *testing.T) {
	for wait, want := range map[time.Duration]int64{
		0: 1, -time.Second: 1, 1: 1, time.Second: 1, time.Second + 1: 2, 90 * time.Second: 90, math.MaxInt64: math.MaxInt64/1_000_000_000 + 1,
	} {
		e := &Unavailable{Wait: wait, Reason: "busy"}
		text := fmt.Sprintf("busy; try again in %d seconds", want)
		if want == 1 {
			text = "busy; try again in 1 second"
		}
		if e.RetryAfter() != want || e.Error() != text {
			t.Errorf("%v: %v", wait, e)
		}
	}
	long, short := &Unavailable{Wait: 2}, &Unavailable{Wait: 1}
	if Longest(nil, nil) != nil || Longest(short, long) != long || Longest(long, short) != long || Longest(nil, short) != short || Longest(short, nil) != short {
		t.Error("the longer of two waits (R44)")
	}
}

// R80: of the callers of one shared read that met a throttled answer, one forwards it.
func TestTaken(t *testing.T) {
	s := Side{Authority: "registry.test:80", Part: "index"}
	err := s.Status(&upstream.Response{Response: &http.Response{StatusCode: 429}, Throttled: true, Wait: time.Minute}, "a")
	first, second := Taken(err), Taken(fmt.Errorf("reading: %w", err))
	a, _ := errors.AsType[*Unavailable](first)
	b, _ := errors.AsType[*Unavailable](second)
	if !a.Forwarded || a.Collapsed || b.Forwarded || !b.Collapsed || b.Wait != time.Minute || !strings.Contains(b.Reason, "registry.test:80 (index)") {
		t.Errorf("%+v, %+v", a, b)
	}
	if other := errors.New("other"); !errors.Is(Taken(other), other) {
		t.Error("another error")
	}
}

// R45, R65, R92: what an exchange ended with has one type each.
func TestTypes(t *testing.T) {
	s := Side{Authority: "registry.test:80", Part: "files"}
	if e, ok := errors.AsType[*Unavailable](s.Unsent(&cooldown.Refusal{Wait: time.Minute})); !ok || !e.Cooldown || e.Probing || e.Wait != time.Minute {
		t.Errorf("%+v", e)
	}
	if e, ok := errors.AsType[*Unavailable](s.Unsent(&cooldown.Refusal{Wait: 1, Probing: true})); !ok || !e.Probing || !strings.Contains(e.Reason, "probe") {
		t.Errorf("%+v", e)
	}
	for _, c := range []struct {
		err  error
		wait time.Duration // 0: a *BadUpstream
	}{
		{integrity.ErrMismatch, 0},
		{fmt.Errorf("x: %w", upstream.ErrForbiddenAddress), 0},
		{&upstream.Busy{Wait: 3 * time.Second}, 3 * time.Second},
		{&upstream.Failure{Outcome: "timeout"}, TransientWait},
		{fmt.Errorf("x: %w", registry.ErrTooLarge), 0},
	} {
		err := s.Unsent(c.err)
		wait, transient := errors.AsType[*Unavailable](err)
		_, bad := errors.AsType[*BadUpstream](err)
		if bad != (c.wait == 0) || transient == bad || transient && (wait.Wait != c.wait || wait.Cooldown) {
			t.Errorf("%v: %T %v", c.err, err, err)
		}
	}
	if other := errors.New("other"); !errors.Is(s.Unsent(other), other) || !errors.Is(FromPrivate(other), other) {
		t.Error("an error of ours")
	}
}

// R41, R44, R92: each status of the private upstream has one meaning. What will pass is never a
// fault for good, and a wait that it names is not shortened.
func TestPrivateStatus(t *testing.T) {
	const absent, forbidden, bad = 0, -1, -2
	for _, c := range []struct {
		status int
		field  string
		want   time.Duration // a wait, or one of the above
	}{
		{404, "", absent},
		{410, "", absent},
		{401, "", forbidden},
		{403, "", forbidden},
		{408, "", TransientWait},
		{429, "", TransientWait},
		{429, "0", TransientWait},
		{429, "7200", 2 * time.Hour},
		{500, "", TransientWait},
		{503, "90", 90 * time.Second},
		{503, "soon", TransientWait},
		{302, "", bad},
		{400, "", bad},
	} {
		resp := &http.Response{StatusCode: c.status, Header: http.Header{}}
		if c.field != "" {
			resp.Header.Set("Retry-After", c.field)
		}
		err := PrivateStatus(resp)
		got := time.Duration(absent)
		if _, ok := errors.AsType[*Forbidden](err); ok {
			got = forbidden
		} else if _, ok := errors.AsType[*BadUpstream](err); ok {
			got = bad
		} else if e, ok := errors.AsType[*Unavailable](err); ok {
			if got = e.Wait; e.Cooldown {
				t.Errorf("%d: the private upstream has no cooldown", c.status)
			}
		}
		if got != c.want {
			t.Errorf("%d %q: %T %v", c.status, c.field, err, err)
		}
	}
}
