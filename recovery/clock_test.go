package recovery

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// S37: without a clock of its own a sequence lives in real time; the bubble's time is real to it.
// The same decisions as in the table follow.
func TestRealClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		seq := New(Options{})
		sent := 0
		body := newWorld()
		resp, err := Get(t.Context(), seq, transport(func(*http.Request) (*http.Response, error) {
			if sent++; sent == 1 {
				r, _ := respond(body, 429, "", http.Header{"Retry-After": {retryafter.FormatDate(time.Now().Add(20 * time.Second))}})
				return r, nil
			}
			r, _ := respond(body, 200, "here", nil)
			return r, nil
		}), request(t, "GET"), GetOptions{})
		if err != nil || string(resp.Body) != "here" {
			t.Fatal(err)
		}
		if passed := time.Since(start); passed < 19*time.Second || passed > 20*time.Second {
			t.Errorf("%v passed", passed)
		}
		if left := seq.Remaining(); left < 40*time.Second || left > 41*time.Second {
			t.Errorf("%v are left", left)
		}
	})
}

// S27: a caller who gives up ends the real sleep at once, and the sequence with it.
func TestRealSleepIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		start := time.Now()
		err := New(Options{}).Wait(ctx, Outcome{Status: 429, RetryAfter: retryafter.Parse(secs("25"), start)})
		if codeOf(err) != CodeWait || !errors.Is(err, context.Canceled) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// S22, S31: the budget ends a send that hangs, through the context of the attempt.
func TestBudgetEndsAHangingSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := Get(t.Context(), New(Options{}), transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), request(t, "GET"), GetOptions{})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != MaxBudget {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
