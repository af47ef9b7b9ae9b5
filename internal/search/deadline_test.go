package search_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/emulator/emulatortest"
	"github.com/ecluse-gate/ecluse/internal/search"
)

// virtual runs a test in virtual time with a client in front of an emulator over memory.
func virtual(t *testing.T, test func(t *testing.T, b *bed)) {
	synctest.Test(t, func(t *testing.T) {
		e := emulatortest.New(t, emulatortest.Options{})
		client := newClient(t, "http://127.0.0.1:1", func(o *search.Options) { o.Transport = emulatortest.Transport(t, e) })
		test(t, &bed{t: t, emulator: e, client: client})
	})
}

// S47, S31: a trickled body ends at the deadline, not later; the answer's facts are kept.
func TestTrickledBody(t *testing.T) {
	virtual(t, func(t *testing.T, b *bed) {
		b.create()
		b.script(`[{"match":{},"act":{"trickle_ms":1000,"headers":{"request-id":"r1"}}}]`)
		begun := time.Now()
		err := getManuals(t.Context(), b.client, search.Bounds{Timeout: 10 * time.Second})
		failed := wantCode(t, err, search.CodeDeadlineExceeded)
		if spent := time.Since(begun); spent != 10*time.Second {
			t.Errorf("ended after %v", spent)
		}
		if failed.Status != 200 || failed.RequestID != "r1" || failed.Ambiguous {
			t.Errorf("facts: %+v", failed)
		}
	})
}

// S75: an upload has 180 s for everything; the acknowledgement survives a late body.
func TestUploadDeadline(t *testing.T) {
	virtual(t, func(t *testing.T, b *bed) {
		b.create()
		b.script(`[{"match":{"method":"POST"},"act":{"trickle_ms":2000}}]`)
		begun := time.Now()
		ack, err := b.client.UploadFile(t.Context(), "manuals", uploadOf("hello"), search.Bounds{})
		failed := wantCode(t, err, search.CodeDeadlineExceeded)
		if spent := time.Since(begun); spent != 180*time.Second || !failed.Ambiguous {
			t.Errorf("ended after %v: %+v", spent, failed)
		}
		if ack == nil || ack.Status != 201 || !ack.BodyUnreadable || ack.File != nil {
			t.Errorf("ack: %+v", ack)
		}
	})
}

// S44: headers that do not come in time are no answer; the earlier of timeout and deadline counts
// (S22, S31).
func TestStalledHeaders(t *testing.T) {
	virtual(t, func(t *testing.T, b *bed) {
		b.script(`[{"match":{},"act":{"delay_ms":600000}}]`)
		for _, bounds := range []search.Bounds{
			{Timeout: 5 * time.Second},
			{Deadline: time.Now().Add(10 * time.Second), Timeout: time.Minute},
			{Deadline: time.Now().Add(time.Hour), Timeout: 5 * time.Second},
		} {
			begun := time.Now()
			_, err := putManuals(t.Context(), b.client, bounds)
			failed := wantCode(t, err, search.CodeAmbiguous)
			if spent := time.Since(begun); spent != 5*time.Second || !failed.Ambiguous || failed.Status != 0 {
				t.Errorf("%+v: ended after %v: %+v", bounds, spent, failed)
			}
			if !errors.Is(failed, context.DeadlineExceeded) || !strings.Contains(failed.Error(), "timed out") {
				t.Errorf("the cause is lost: %v", failed)
			}
		}
		if n := b.sent(http.MethodPut); n != 3 {
			t.Errorf("%d requests for 3 calls", n)
		}
	})
}

// S33: a body that ends exactly at the deadline is too late.
func TestBodyEndsAtTheDeadline(t *testing.T) {
	virtual(t, func(t *testing.T, b *bed) {
		b.script(`[{"match":{},"act":{"body":{},"trickle_ms":1000}}]`)
		if err := getManuals(t.Context(), b.client, search.Bounds{Timeout: 2001 * time.Millisecond}); err != nil {
			t.Errorf("a millisecond before the deadline: %v", err)
		}
		wantCode(t, getManuals(t.Context(), b.client, search.Bounds{Timeout: 1999 * time.Millisecond}), search.CodeDeadlineExceeded)
	})
}

// stuckBody blocks until it is closed, and knows nothing of contexts.
type stuckBody struct{ closed chan struct{} }

func (b *stuckBody) Read([]byte) (int, error) { <-b.closed; return 0, io.ErrClosedPipe }

func (b *stuckBody) Close() error {
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	return nil
}

// S47: the watchdog breaks a body whose transport ignores the context.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := over(t, canned(200, &stuckBody{closed: make(chan struct{})}))
		begun := time.Now()
		wantCode(t, getManuals(t.Context(), client, search.Bounds{Timeout: 3 * time.Second}), search.CodeDeadlineExceeded)
		if spent := time.Since(begun); spent != 3*time.Second {
			t.Errorf("ended after %v", spent)
		}
	})
}

// A refusal whose body never comes does not hold the caller up for longer than the window of the
// error code.
func TestStalledErrorBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := over(t, canned(409, &stuckBody{closed: make(chan struct{})}))
		begun := time.Now()
		failed := wantCode(t, getManuals(t.Context(), client, search.Bounds{}), search.CodeHTTP)
		if spent := time.Since(begun); spent != 5*time.Second || failed.Status != 409 || failed.ServiceCode != "" {
			t.Errorf("ended after %v: %+v", spent, failed)
		}
	})
}

// An interruption while waiting for the answer of a write is ambiguous, and said to be an
// interruption.
func TestInterruptedWrite(t *testing.T) {
	virtual(t, func(t *testing.T, b *bed) {
		b.script(`[{"match":{},"act":{"delay_ms":60000}}]`)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := putManuals(ctx, b.client, search.Bounds{})
		failed := wantCode(t, err, search.CodeAmbiguous)
		if !failed.Ambiguous || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("%+v: %v", failed, err)
		}
	})
}
