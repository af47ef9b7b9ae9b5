package recovery

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// body records what is done to it.
type body struct {
	io.Reader
	w        *world
	read     int
	closed   int
	closeErr error
}

func (b *body) Read(p []byte) (int, error) { b.read++; return b.Reader.Read(p) }

func (b *body) Close() error {
	b.closed++
	b.w.order = append(b.w.order, "close")
	return b.closeErr
}

func respond(w *world, status int, text string, header http.Header) (*http.Response, *body) {
	b := &body{Reader: strings.NewReader(text), w: w}
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: b}, b
}

func request(t *testing.T, method string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://api.example/items?page=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer x")
	return r
}

// S45, S46: the body of a 429 is closed unread before the wait, after the header was read. S31: the
// second request is the first again.
func TestCloseBeforeWait(t *testing.T) {
	w := newWorld()
	throttled, first := respond(w, 429, "slow down", http.Header{"Retry-After": {"3"}, "X-Request-Id": {"a"}})
	good, second := respond(w, 200, "items", http.Header{"X-Request-Id": {"b"}})
	var seen []string
	seq := w.sequence(Options{})
	resp, err := Get(t.Context(), seq, transport(func(r *http.Request) (*http.Response, error) {
		seen = append(seen, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization"))
		w.order = append(w.order, "send")
		if len(seen) == 1 {
			return throttled, nil
		}
		return good, nil
	}), request(t, "GET"), GetOptions{})
	if err != nil || string(resp.Body) != "items" || resp.RequestID != "b" {
		t.Fatalf("%v %v", resp, err)
	}
	if got := strings.Join(w.order, " "); got != "send close observe sleep send close" {
		t.Errorf("order: %s", got)
	}
	if first.read != 0 || first.closed != 1 || second.closed != 1 {
		t.Errorf("throttled body read %d closed %d, good one closed %d", first.read, first.closed, second.closed)
	}
	if len(seen) != 2 || seen[0] != seen[1] {
		t.Errorf("requests differ: %q", seen)
	}
}

// S45, S24: a close that fails stops the sequence and keeps the status and the identifier.
func TestCloseFails(t *testing.T) {
	w := newWorld()
	throttled, b := respond(w, 429, "", http.Header{"Retry-After": {"3"}, "X-Request-Id": {"a"}})
	b.closeErr = errBoom
	sent := 0
	seq := w.sequence(Options{})
	_, err := Get(t.Context(), seq, transport(func(*http.Request) (*http.Response, error) { sent++; return throttled, nil }), request(t, "GET"), GetOptions{})
	status, _ := errors.AsType[*StatusError](err)
	if codeOf(err) != CodeClose || status == nil || status.Status != 429 || status.RequestID != "a" || sent != 1 || len(w.slept) != 0 {
		t.Fatalf("%v, sent %d, slept %v", err, sent, w.slept)
	}
	if len(seq.Warnings()) < 2 {
		t.Errorf("no cleanup warning: %q", seq.Warnings())
	}
}

// S35; tc-047, tc-079, tc-080: a write is not even sent by this package.
func TestRefusesWrites(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		w := newWorld()
		_, err := Get(t.Context(), w.sequence(Options{}), transport(func(*http.Request) (*http.Response, error) {
			t.Errorf("%s was sent", method)
			return nil, errBoom
		}), request(t, method), GetOptions{})
		if err == nil {
			t.Errorf("%s was accepted", method)
		}
	}
}

// S31: a redirect is not followed, so no header travels to another place.
func TestRedirectsAreOff(t *testing.T) {
	w := newWorld()
	sent := 0
	moved, _ := respond(w, 307, "", http.Header{"Location": {"https://elsewhere.example/"}})
	_, err := Get(t.Context(), w.sequence(Options{}), transport(func(*http.Request) (*http.Response, error) { sent++; return moved, nil }), request(t, "GET"), GetOptions{})
	if status, _ := errors.AsType[*StatusError](err); status == nil || status.Status != 307 || sent != 1 {
		t.Fatalf("%v after %d requests", err, sent)
	}
}

// S31: the body limit holds to the byte.
func TestBodyLimit(t *testing.T) {
	for size, ok := range map[int]bool{DefaultBodyLimit: true, DefaultBodyLimit + 1: false} {
		w := newWorld()
		big, _ := respond(w, 200, strings.Repeat("x", size), nil)
		_, err := Get(t.Context(), w.sequence(Options{}), transport(func(*http.Request) (*http.Response, error) { return big, nil }), request(t, "GET"), GetOptions{})
		if (err == nil) != ok || !ok && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// S29: an answer 429 and then no answer at all.
func TestThenNoAnswer(t *testing.T) {
	w := newWorld()
	throttled, _ := respond(w, 429, "", http.Header{"Retry-After": {"1"}})
	sent := 0
	_, err := Get(t.Context(), w.sequence(Options{}), transport(func(*http.Request) (*http.Response, error) {
		if sent++; sent == 1 {
			return throttled, nil
		}
		return nil, errBoom
	}), request(t, "HEAD"), GetOptions{})
	if status, _ := errors.AsType[*StatusError](err); status == nil || status.Status != 429 || !errors.Is(err, errBoom) {
		t.Fatalf("got %v", err)
	}
}

// tc-074, tc-076, tc-077: with one connection allowed per host, a 429 whose body was left open
// would block the second attempt for ever. tc-058, tc-062: a real 429 from a real server, decided
// on the answer.
func TestOneConnectionIsEnough(t *testing.T) {
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if hits.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(429)
			_, _ = io.WriteString(w, strings.Repeat("never read ", 1000))
			return
		}
		_, _ = io.WriteString(w, "here")
	}))
	defer server.Close()
	base := &http.Transport{MaxConnsPerHost: 1}
	defer base.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", server.URL, nil)
	resp, err := Get(ctx, New(Options{}), base, req, GetOptions{})
	if err != nil || string(resp.Body) != "here" || hits.Load() != 2 {
		t.Fatalf("%v, %v after %d requests", resp, err, hits.Load())
	}
}

// tc-008: absent values in odd shapes never panic.
func TestOddHeaders(t *testing.T) {
	for _, values := range [][]string{nil, {}, {""}, {"", ""}} {
		w := newWorld()
		throttled, _ := respond(w, 429, "", http.Header{"Retry-After": values})
		good, _ := respond(w, 200, "", nil)
		sent := 0
		_, err := Get(t.Context(), w.sequence(Options{}), transport(func(*http.Request) (*http.Response, error) {
			if sent++; sent == 1 {
				return throttled, nil
			}
			return good, nil
		}), request(t, "GET"), GetOptions{})
		if err != nil || len(w.slept) != 1 || w.slept[0] != time.Second {
			t.Errorf("%q: %v, slept %v", values, err, w.slept)
		}
	}
}

// R104: a wait that is named in milliseconds is kept, beside a shorter Retry-After too.
func TestMilliseconds(t *testing.T) {
	w := newWorld()
	throttled, _ := respond(w, 429, "", http.Header{"Retry-After": {"3"}, "Retry-After-Ms": {"7500"}})
	good, _ := respond(w, 200, "items", nil)
	answers := []*http.Response{throttled, good}
	before := w.clock().Elapsed()
	_, err := Get(t.Context(), New(Options{Clock: w.clock()}), transport(func(*http.Request) (*http.Response, error) {
		next := answers[0]
		answers = answers[1:]
		return next, nil
	}), request(t, http.MethodGet), GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if waited := w.clock().Elapsed() - before; waited != 8*time.Second {
		t.Errorf("waited %v", waited)
	}
}
