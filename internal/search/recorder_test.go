package search_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/search"
)

// notes is a recorder that writes down what it is told, and can refuse.
type notes struct {
	lines     []string
	last      search.Outcome
	failBegin error
	failEnd   error
	sent      func() int // requests that the server saw so far
}

func (n *notes) Begin(method, url string) error {
	n.lines = append(n.lines, fmt.Sprintf("begin %s %s sent=%d", method, url, n.sent()))
	return n.failBegin
}

func (n *notes) End(out search.Outcome) error {
	n.last = out
	n.lines = append(n.lines, fmt.Sprintf("end %s %d sent=%d", out.Method, out.Status, n.sent()))
	return n.failEnd
}

func recorded(t *testing.T) (*bed, *notes) {
	n := &notes{}
	b := newBed(t, func(o *search.Options) { o.Recorder = n })
	n.sent = func() int { return len(b.emulator.Requests()) }
	return b, n
}

// S101: every request is begun before it is sent, with its exact method and address, and ended
// after it.
func TestRecorderBrackets(t *testing.T) {
	b, n := recorded(t)
	b.create()
	_ = getManuals(t.Context(), b.client, search.Bounds{})
	_, _ = b.client.UploadFile(t.Context(), "manuals", uploadOf("x"), search.Bounds{})
	source := b.client.Service().Endpoint.String() + "/knowledgesources('manuals')"
	want := []string{
		"begin PUT " + source + "?api-version=2026-10-01 sent=0", "end PUT 201 sent=1",
		"begin GET " + source + "?api-version=2026-10-01 sent=1", "end GET 200 sent=2",
		"begin POST " + source + "/files?api-version=2026-10-01 sent=2", "end POST 201 sent=3",
	}
	if fmt.Sprint(n.lines) != fmt.Sprint(want) {
		t.Errorf("got\n%q, want\n%q", n.lines, want)
	}
	if n.last.Document["fileName"] != "guide.txt" || n.last.RequestID == "" || n.last.ReceivedAt.IsZero() || n.last.Failure != nil {
		t.Errorf("the last outcome: %+v", n.last)
	}
}

// S102: what the recorder refuses is not sent, and its error comes through.
func TestRecorderRefuses(t *testing.T) {
	b, n := recorded(t)
	n.failBegin = errors.New("restriction pending")
	err := getManuals(t.Context(), b.client, search.Bounds{})
	failed := wantCode(t, err, search.CodeNotRecorded)
	if failed.Sent || failed.Ambiguous || !errors.Is(err, n.failBegin) {
		t.Errorf("%+v", failed)
	}
	if len(b.emulator.Requests()) != 0 || len(n.lines) != 1 {
		t.Errorf("sent or ended: %v", n.lines)
	}
}

// S103: a 429 is recorded with its retry metadata after the body was closed and before the method
// returns.
func TestRecorderSeesTheThrottle(t *testing.T) {
	body := &spyBody{}
	n := &notes{sent: func() int { return body.closes }}
	client := over(t, canned(429, body, "Retry-After", "7"), func(o *search.Options) { o.Recorder = n })
	err := getManuals(t.Context(), client, search.Bounds{})
	if n.lines[1] != "end GET 429 sent=1" || n.last.RetryAfter.Seconds != 7 || n.last.Failure == nil || n.last.Failure.Status != 429 {
		t.Errorf("%q, %+v", n.lines, n.last)
	}
	wantCode(t, err, search.CodeHTTP)
}

// S104: when the end of a failed exchange cannot be recorded, the failure is kept, the persistence
// failure goes with it, and nothing more is sent.
func TestRecorderFailsAfterAFailure(t *testing.T) {
	b, n := recorded(t)
	b.script(`[{"match":{},"act":{"status":429,"headers":{"Retry-After":"9"}}}]`)
	n.failEnd = errors.New("disk full")
	err := getManuals(t.Context(), b.client, search.Bounds{})
	failed := wantCode(t, err, search.CodeHTTP)
	if failed.Status != 429 || !errors.Is(failed.Persistence, n.failEnd) || !errors.Is(err, n.failEnd) || failed.RetryAfter.Seconds != 9 {
		t.Errorf("%+v", failed)
	}
	n.failEnd = nil
	err = getManuals(t.Context(), b.client, search.Bounds{})
	if failed := wantCode(t, err, search.CodeNotRecorded); failed.Persistence == nil || failed.Sent {
		t.Errorf("after the latch: %+v", failed)
	}
	if len(b.emulator.Requests()) != 1 || len(n.lines) != 2 {
		t.Errorf("a request after the persistence failure: %v", n.lines)
	}
}

// S105: an acknowledgement that cannot be recorded is handed on together with the failure.
func TestRecorderFailsAfterAnAcknowledgement(t *testing.T) {
	for _, method := range []string{http.MethodPut, http.MethodPost} {
		b, n := recorded(t)
		if method == http.MethodPost {
			b.create()
		}
		n.failEnd = errors.New("disk full")
		var answer search.Answer
		var err error
		if method == http.MethodPut {
			var made *search.Resource
			if made, err = putManuals(t.Context(), b.client, search.Bounds{}); made != nil && made.Definition["name"] == "manuals" {
				answer = made.Answer
			}
		} else {
			var ack *search.FileAnswer
			if ack, err = b.client.UploadFile(t.Context(), "manuals", uploadOf("x"), search.Bounds{}); ack != nil && ack.File != nil && !ack.BodyUnreadable {
				answer = ack.Answer
			}
		}
		failed := wantCode(t, err, search.CodePersistence)
		if answer.Status != 201 || answer.RequestID == "" || failed.Status != 201 || !errors.Is(err, n.failEnd) {
			t.Errorf("%s: the acknowledgement is lost: %+v, %+v", method, answer, failed)
		}
	}
}

// Every begun request is ended exactly once, whatever happens to it.
func TestRecorderAlwaysEnds(t *testing.T) {
	for name, transport := range map[string]http.RoundTripper{
		"no answer":    transportFunc(func(*http.Request) (*http.Response, error) { return nil, io.EOF }),
		"success":      canned(200, text("{}")),
		"refusal":      canned(404, text("")),
		"broken body":  canned(200, brokenBody{errReader{}}),
		"invalid JSON": canned(200, text("x")),
	} {
		n := &notes{sent: func() int { return 0 }}
		client := over(t, transport, func(o *search.Options) { o.Recorder = n })
		err := getManuals(t.Context(), client, search.Bounds{})
		if len(n.lines) != 2 || (n.last.Failure == nil) != (err == nil) {
			t.Errorf("%s: %q", name, n.lines)
		}
	}
}
