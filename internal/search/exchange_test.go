package search_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// S40, S36: which request id counts, and what is shown of it.
func TestRequestID(t *testing.T) {
	for _, c := range []struct {
		headers []string
		want    string
	}{
		{[]string{"x-ms-request-id", "first", "request-id", "second"}, "first"},
		{[]string{"request-id", "second"}, "second"},
		{[]string{"x-ms-request-id", "", "request-id", "second"}, "second"},
		{[]string{"x-ms-request-id", "", "x-ms-request-id", "b", "x-ms-request-id", "c"}, "b"},
		{[]string{"request-id", "a.b_c:d-1"}, "a.b_c:d-1"},
		{[]string{"request-id", "-a"}, "[withheld]"},
		{[]string{"request-id", "a b\x1b[31m"}, "[withheld]"},
		{[]string{"request-id", strings.Repeat("a", 129)}, "[withheld]"},
		{nil, ""},
	} {
		err := getManuals(t.Context(), over(t, canned(503, text(""), c.headers...)), search.Bounds{})
		if got := failure(t, err).RequestID; got != c.want {
			t.Errorf("%q: failed with id %q, want %q", c.headers, got, c.want)
		}
		ok, err := over(t, canned(200, text("{}"), c.headers...)).Get(t.Context(), search.Indexes, "i", search.Bounds{})
		if err != nil || ok.RequestID != c.want {
			t.Errorf("%q: succeeded with id %q, %v, want %q", c.headers, ok.RequestID, err, c.want)
		}
	}
}

// S43: which statuses are errors, and after which a mutation may have happened.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		status         int
		read, mutation bool // ambiguous
	}{
		{400, false, false},
		{401, false, false},
		{403, false, false},
		{404, false, false},
		{409, false, false},
		{412, false, false},
		{415, false, false},
		{408, false, true},
		{429, false, true},
		{500, false, true},
		{502, false, true},
		{503, false, true},
		{504, false, true},
		{301, false, true},
		{302, false, true},
		{307, false, true},
		{202, false, true},
		{206, false, true},
	} {
		client := over(t, transportFunc(func(r *http.Request) (*http.Response, error) {
			return canned(c.status, text(""), "request-id", "r1", "Location", "http://evil.test/")(r)
		}))
		failed := wantCode(t, getManuals(t.Context(), client, search.Bounds{}), search.CodeHTTP)
		if failed.Status != c.status || failed.Ambiguous != c.read || failed.RequestID != "r1" || !failed.Sent {
			t.Errorf("GET %d: %+v", c.status, failed)
		}
		_, err := putManuals(t.Context(), client, search.Bounds{})
		if failed := wantCode(t, err, search.CodeHTTP); failed.Ambiguous != c.mutation {
			t.Errorf("PUT %d: ambiguous is %v", c.status, failed.Ambiguous)
		}
		_, err = client.UploadFile(t.Context(), "manuals", uploadOf("x"), search.Bounds{})
		if failed := wantCode(t, err, search.CodeHTTP); failed.Ambiguous != c.mutation {
			t.Errorf("POST %d: ambiguous is %v", c.status, failed.Ambiguous)
		}
		_, err = client.Delete(t.Context(), search.KnowledgeSources, "manuals", search.Condition{}, search.Bounds{})
		if failed := wantCode(t, err, search.CodeHTTP); failed.Ambiguous != c.mutation {
			t.Errorf("DELETE %d: ambiguous is %v", c.status, failed.Ambiguous)
		}
	}
}

// S44: no answer is ambiguous for mutations, and only for them.
func TestNoAnswer(t *testing.T) {
	client := over(t, transportFunc(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }))
	if failed := wantCode(t, getManuals(t.Context(), client, search.Bounds{}), search.CodeAmbiguous); failed.Ambiguous || failed.Status != 0 {
		t.Errorf("GET: %+v", failed)
	}
	put, err := putManuals(t.Context(), client, search.Bounds{})
	if failed := wantCode(t, err, search.CodeAmbiguous); !failed.Ambiguous || put != nil {
		t.Errorf("PUT: %+v, %v", failed, put)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "the connection was lost") {
		t.Errorf("the cause is lost: %v", err)
	}
}

// S146: what a server or library says in its own words stays out of the error's text.
func TestForeignTextStaysInside(t *testing.T) {
	client := over(t, transportFunc(func(*http.Request) (*http.Response, error) { return nil, errors.New("malformed: secret server text") }))
	if err := getManuals(t.Context(), client, search.Bounds{}); strings.Contains(err.Error(), "secret") {
		t.Errorf("foreign text shown: %v", err)
	}
	body := `{"error":{"code":"<script>","message":"secret server text"}}`
	err := getManuals(t.Context(), over(t, canned(400, text(body))), search.Bounds{})
	if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "script") {
		t.Errorf("foreign text shown: %v", err)
	}
}

// spyBody records what is done to a body.
type spyBody struct {
	reads, closes int
	closeErr      error
}

func (b *spyBody) Read([]byte) (int, error) { b.reads++; return 0, io.EOF }
func (b *spyBody) Close() error             { b.closes++; return b.closeErr }

// S45, S46: the body of a 429 is closed and never read; status, id, retry metadata and receipt time
// are kept, also when closing fails.
func TestThrottledBodyIsClosedUnread(t *testing.T) {
	received := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	for _, closeErr := range []error{nil, errors.New("cannot close")} {
		body := &spyBody{closeErr: closeErr}
		headers := []string{"Retry-After", "7", "x-ms-request-id", "r1"}
		client := over(t, canned(429, body, headers...), func(o *search.Options) { o.Now = func() time.Time { return received } })
		err := getManuals(t.Context(), client, search.Bounds{})
		failed := wantCode(t, err, search.CodeHTTP)
		if body.reads != 0 || body.closes != 1 {
			t.Errorf("the body was read %d and closed %d times", body.reads, body.closes)
		}
		if failed.Status != 429 || failed.RequestID != "r1" || failed.RetryAfter.Kind != retryafter.KindSeconds || failed.RetryAfter.Seconds != 7 || !failed.ReceivedAt.Equal(received) {
			t.Errorf("facts lost: %+v", failed)
		}
		if failed.CloseFailed != (closeErr != nil) {
			t.Errorf("CloseFailed is %v", failed.CloseFailed)
		}
	}
}

// S46: duplicate lines are seen as such, never the first alone.
func TestDuplicateRetryAfter(t *testing.T) {
	b := newBed(t)
	b.script(`[{"match":{},"act":{"status":429,"headers":{"Retry-After":["5","5"]}}}]`)
	failed := failure(t, getManuals(t.Context(), b.client, search.Bounds{}))
	if failed.RetryAfter.Kind != retryafter.KindInvalid || !failed.RetryAfter.Notes.Has(retryafter.NoteDuplicate) {
		t.Errorf("report: %+v", failed.RetryAfter)
	}
}

// brokenBody gives a little and then fails.
type brokenBody struct{ io.Reader }

func (brokenBody) Close() error { return nil }

// S47: what can go wrong with a body, and what is kept of the answer.
func TestBodyFailures(t *testing.T) {
	for _, c := range []struct {
		name, code string
		body       io.ReadCloser
		bounds     search.Bounds
	}{
		{"broken", search.CodeReadFailed, brokenBody{io.MultiReader(strings.NewReader(`{"a":`), errReader{})}, search.Bounds{}},
		{"one byte too large", search.CodeTooLarge, text(`{"a":"` + strings.Repeat("x", 10) + `"}`), search.Bounds{MaxBytes: 17}},
		{"larger than the default", search.CodeTooLarge, text(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`), search.Bounds{}},
		{"not JSON", search.CodeInvalidJSON, text(`{"a":`), search.Bounds{}},
		{"not an object", search.CodeInvalidJSON, text(`[]`), search.Bounds{}},
		{"empty", search.CodeInvalidJSON, text(``), search.Bounds{}},
		{"trailing", search.CodeInvalidJSON, text(`{} {}`), search.Bounds{}},
		{"name twice", search.CodeInvalidJSON, text(`{"@odata.etag":"a","@odata.etag":"b"}`), search.Bounds{}},
		{"name twice inside", search.CodeInvalidJSON, text(`{"a":[{"b":1,"b":1}]}`), search.Bounds{}},
		{"NaN", search.CodeInvalidJSON, text(`{"a":NaN}`), search.Bounds{}},
		{"not UTF-8", search.CodeInvalidJSON, text("{\"a\":\"\xff\"}"), search.Bounds{}},
		{"too deep", search.CodeInvalidJSON, text(`{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`), search.Bounds{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := over(t, canned(201, c.body, "request-id", "r1", "ETag", `"x"`))
			put, err := putManuals(t.Context(), client, c.bounds)
			failed := wantCode(t, err, c.code)
			if failed.Status != 201 || failed.RequestID != "r1" || !failed.Ambiguous || failed.ReceivedAt.IsZero() {
				t.Errorf("facts lost: %+v", failed)
			}
			if put == nil || put.Status != 201 || put.RequestID != "r1" || len(put.ETags.Headers) != 1 {
				t.Errorf("the acknowledgement is lost: %+v", put)
			}
		})
	}
	fits := over(t, canned(200, text(`{"a":"`+strings.Repeat("x", 10)+`"}`)))
	if err := getManuals(t.Context(), fits, search.Bounds{MaxBytes: 18}); err != nil {
		t.Errorf("a body of exactly the limit: %v", err)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("secret reason") }

// S47: bounds that make no sense, and time that is over, are refused before anything is sent.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		bounds search.Bounds
		code   string
	}{
		{search.Bounds{Timeout: -1}, search.CodeDeadlineInvalid},
		{search.Bounds{Deadline: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, search.CodeDeadlineInvalid},
		{search.Bounds{Deadline: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)}, search.CodeDeadlineInvalid},
		{search.Bounds{MaxBytes: -1}, search.CodeLimitInvalid},
		{search.Bounds{Deadline: time.Now().Add(-time.Second)}, search.CodeDeadlineExceeded},
	} {
		client := over(t, transportFunc(func(*http.Request) (*http.Response, error) {
			t.Error("a request was sent")
			return nil, io.EOF
		}))
		_, err := putManuals(t.Context(), client, c.bounds)
		if failed := wantCode(t, err, c.code); failed.Sent || failed.Ambiguous || failed.Status != 0 {
			t.Errorf("%+v: %+v", c.bounds, failed)
		}
	}
}

// An interrupted caller sends nothing more.
func TestInterruptedBeforeSending(t *testing.T) {
	client := over(t, transportFunc(func(*http.Request) (*http.Response, error) {
		t.Error("a request was sent")
		return nil, io.EOF
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if failed := wantCode(t, getManuals(ctx, client, search.Bounds{}), search.CodeInterrupted); failed.Sent {
		t.Errorf("%+v", failed)
	}
	// S47: the caller's own deadline has passed.
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if failed := wantCode(t, getManuals(late, client, search.Bounds{}), search.CodeDeadlineExceeded); failed.Sent {
		t.Errorf("%+v", failed)
	}
}

// S49: a redirect is an error on reads and writes alike, and nothing is sent to where it points.
func TestRedirectsAreOff(t *testing.T) {
	b := newBed(t)
	b.create()
	elsewhere := newBed(t)
	before := len(b.emulator.Requests())
	target := elsewhere.client.Service().Endpoint.String()
	for _, status := range []string{"301", "302", "303", "307", "308"} {
		b.script(`[{"match":{},"act":{"status":` + status + `,"headers":{"Location":"` + target + `{{path}}"}}}]`)
		wantCode(t, getManuals(t.Context(), b.client, search.Bounds{}), search.CodeHTTP)
		_, err := b.client.ListFiles(t.Context(), "manuals", "", search.Bounds{})
		wantCode(t, err, search.CodeHTTP)
		_, err = b.client.UploadFile(t.Context(), "manuals", uploadOf("x"), search.Bounds{})
		if failed := wantCode(t, err, search.CodeHTTP); !failed.Ambiguous {
			t.Errorf("a redirected upload is not ambiguous: %v", failed)
		}
	}
	if n := len(elsewhere.emulator.Requests()); n != 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
	if n := len(b.emulator.Requests()) - before; n != 15 {
		t.Errorf("%d requests, want 15", n)
	}
}

// S78: the error code of a refusal is read, bounded and sanitised; that of a 429 only from a
// header.
func TestServiceCode(t *testing.T) {
	for _, c := range []struct {
		status    int
		body      string
		headers   []string
		code      string
		permanent bool
	}{
		{409, `{"error":{"code":"FileLimitReached","message":"m"}}`, nil, "FileLimitReached", true},
		{409, `{"error":{"code":"QuotaExceeded"}}`, nil, "QuotaExceeded", true},
		{409, `{"error":{"code":"Conflict"}}`, nil, "Conflict", false},
		{409, `{"error":{"code":""}}`, nil, "", false},
		{409, `{"error":"QuotaExceeded"}`, nil, "", false},
		{409, `{"error":{"code":"` + strings.Repeat("Quota", 20) + `"}}`, nil, "", false},
		{409, `{"error":{"code":"Quota Exceeded\u001b[31m"}}`, nil, "", false},
		{409, `{"error":{"code":"Quota","code":"x"}}`, nil, "", false},
		{409, `{"error":{"message":"` + strings.Repeat("x", 70<<10) + `","code":"QuotaExceeded"}}`, nil, "", false},
		{429, `{"error":{"code":"QuotaExceeded"}}`, nil, "", false}, // not read
		{429, ``, []string{"x-ms-error-code", "StorageQuotaExceeded"}, "StorageQuotaExceeded", true},
		{429, ``, []string{"x-ms-error-code", "RateLimitExceeded"}, "RateLimitExceeded", false},
		{429, ``, []string{"x-ms-error-code", "TooManyRequests"}, "TooManyRequests", false},
		{403, `{"error":{"code":"QuotaExceeded"}}`, nil, "QuotaExceeded", false},
	} {
		_, err := putManuals(t.Context(), over(t, canned(c.status, text(c.body), c.headers...)), search.Bounds{})
		if failed := failure(t, err); failed.ServiceCode != c.code || failed.Permanent() != c.permanent {
			t.Errorf("%d %.60q %v: code %q, permanent %v", c.status, c.body, c.headers, failed.ServiceCode, failed.Permanent())
		}
	}
}
