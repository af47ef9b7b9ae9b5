package search

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/search/wire"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// Recorder brackets each request of a client, so that a journal can hold what was begun and how it
// ended. Calls never overlap when the client's methods do not.
type Recorder interface {
	// Begin is called with the exact method and address before anything is sent. An error means
	// that nothing is sent; the method returns it inside an Error with CodeNotRecorded.
	Begin(method, url string) error
	// End is called once after each successful Begin, with everything that is known, before the
	// method returns. After an error nothing is sent any more; the method returns its result
	// together with an Error that has Persistence set, so that an acknowledgement is not lost.
	End(Outcome) error
}

// Outcome is how one request ended.
type Outcome struct {
	Method, URL string
	Status      int // 0 without an answer
	RequestID   string
	ReceivedAt  time.Time
	// RetryAfter is what the header said; meaningful for a 429.
	RetryAfter retryafter.Report
	ETags      ETagEvidence
	// Document is the JSON object of a successful answer, nil without one. It must not be changed.
	Document map[string]any
	// Failure is the error that the method is about to return, nil for a success.
	Failure *Error
}

// call is one request before it is sent.
type call struct {
	method, url string
	header      http.Header
	body        io.Reader // nil for none
	length      int64
	accept      []int // statuses that are a success
	document    documentRule
}

type documentRule uint8

const (
	documentRequired documentRule = iota
	documentOptional              // an empty body is a success too
	documentNone                  // the body is ignored
)

// exchange sends one request and reads its answer: at most one request, whatever happens. The
// Answer is valid whenever its Status is not 0, also beside an error.
func (c *Client) exchange(ctx context.Context, want call, bounds Bounds) (Answer, map[string]any, error) {
	token, failed := c.mayBegin(want)
	end, maxBytes, code := bounds.resolve(time.Now())
	if failed == nil && code != "" {
		failed = want.unsent(code, nil)
	}
	if failed != nil {
		return Answer{}, nil, failed
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	request, err := c.build(ctx, want, token)
	if err != nil {
		return Answer{}, nil, want.unsent(CodeRequestInvalid, err)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Answer{}, nil, want.unsent(CodeDeadlineExceeded, ctx.Err())
	}
	if ctx.Err() != nil {
		return Answer{}, nil, want.unsent(CodeInterrupted, ctx.Err())
	}
	if c.recorder != nil {
		if err := c.recorder.Begin(want.method, want.url); err != nil {
			return Answer{}, nil, want.unsent(CodeNotRecorded, err)
		}
	}
	out := c.roundTrip(request, want, maxBytes)
	c.end(&out)
	answer := Answer{Status: out.Status, RequestID: out.RequestID, ReceivedAt: out.ReceivedAt, ETags: out.ETags}
	if out.Failure != nil {
		return answer, out.Document, out.Failure
	}
	return answer, out.Document, nil
}

// mayBegin gives the held token, or why no request may be sent.
func (c *Client) mayBegin(want call) (Token, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latched != nil {
		failed := want.unsent(CodeNotRecorded, nil)
		failed.Persistence = c.latched
		return Token{}, failed
	}
	if c.token.value == "" {
		return Token{}, want.unsent(CodeAuthenticationFailed, Reason("not authenticated"))
	}
	return c.token, nil
}

func (w call) unsent(code string, err error) *Error {
	return &Error{Code: code, Method: w.method, URL: w.url, Err: err}
}

// end reports to the recorder how the request ended, and latches its failure.
func (c *Client) end(out *Outcome) {
	if c.recorder == nil {
		return
	}
	if err := c.recorder.End(*out); err != nil {
		c.mu.Lock()
		c.latched = err
		c.mu.Unlock()
		out.blame(err)
	}
}

// blame adds the recorder's failure to what the method returns, keeping an original failure (S104,
// S105).
func (o *Outcome) blame(err error) {
	if o.Failure == nil {
		o.Failure = o.failure(CodePersistence, nil)
	}
	o.Failure.Persistence = err
}

func (o *Outcome) failure(code string, err error) *Error {
	return &Error{
		Code: code, Method: o.Method, URL: o.URL, Status: o.Status, RequestID: o.RequestID, Sent: true,
		RetryAfter: o.RetryAfter, ReceivedAt: o.ReceivedAt, Err: err,
	}
}

// resolve gives the end of the exchange and the body limit, or the code of what is wrong with the
// bounds (S47).
func (b Bounds) resolve(now time.Time) (end time.Time, maxBytes int64, code string) {
	if b.Timeout < 0 || (!b.Deadline.IsZero() && (b.Deadline.Year() < 1 || b.Deadline.Year() > 9999)) {
		return end, 0, CodeDeadlineInvalid
	}
	if b.MaxBytes < 0 {
		return end, 0, CodeLimitInvalid
	}
	timeout, maxBytes := b.Timeout, b.MaxBytes
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	if maxBytes == 0 {
		maxBytes = DefaultMaxBytes
	}
	end = now.Add(timeout)
	if !b.Deadline.IsZero() && b.Deadline.Before(end) {
		end = b.Deadline
	}
	if !now.Before(end) {
		return end, 0, CodeDeadlineExceeded
	}
	return end, maxBytes, ""
}

func (c *Client) build(ctx context.Context, want call, token Token) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, want.method, want.url, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, want.header)
	request.Header.Set("Accept", "application/json;odata.metadata=minimal")
	request.Header.Set("Authorization", "Bearer "+token.value)
	request.Header.Set("X-Ms-Client-Request-Id", c.newID())
	request.Body, request.ContentLength = &once{source: want.body}, want.length
	return request, nil
}

// once is a request body without a way back, also where there is nothing to send: net/http then
// cannot send a request a second time on its own, which it otherwise does with reads when a kept
// connection breaks. Request.GetBody stays nil.
//
// After Close the reader below is not touched any more, although a transport may go on reading a
// body whose answer came early.
type once struct {
	mu     sync.Mutex // guards both fields and every read
	source io.Reader
	closed bool
}

func (o *once) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.source == nil {
		return 0, io.EOF
	}
	if o.closed {
		return 0, io.ErrClosedPipe
	}
	return o.source.Read(p)
}

// Close waits for a read in progress.
func (o *once) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return nil
}

// roundTrip sends the request and reads the answer within the request's deadline.
func (c *Client) roundTrip(request *http.Request, want call, maxBytes int64) Outcome {
	out := Outcome{Method: want.method, URL: want.url}
	defer request.Body.Close()
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		_ = request.Body.Close() // from here on the source below is ours again
		code := CodeAmbiguous
		if source, ok := want.body.(*wire.Body); ok && source.Problem() != "" {
			code, err = CodeContentChanged, Reason(source.Problem())
		}
		out.Failure = out.failure(code, err)
		out.Failure.Ambiguous = mutates(want.method)
		return out
	}
	out.ReceivedAt = c.now()
	out.Status, out.RequestID = response.StatusCode, wire.RequestID(response.Header)
	out.RetryAfter = retryafter.ParseHeader(response.Header, out.ReceivedAt)
	out.ETags = evidence(response.Header, nil)
	if !slices.Contains(want.accept, response.StatusCode) {
		out.Failure = c.refused(request.Context(), &out, response)
		return out
	}
	data, code, err := readBody(request.Context(), response.Body, maxBytes)
	if code == "" && want.document != documentNone && (len(data) > 0 || want.document == documentRequired) {
		if out.Document, err = wire.ParseDocument(data); err != nil {
			code = CodeInvalidJSON
		}
		out.ETags = evidence(response.Header, out.Document)
	}
	if code != "" && want.document != documentNone {
		out.Failure = out.failure(code, err)
		out.Failure.Ambiguous = mutates(want.method)
	}
	return out
}

// refused makes the error of an answer that the method does not accept. A 429 is closed at once and
// never read (S45); of other answers a little is read for the error code.
func (c *Client) refused(ctx context.Context, out *Outcome, response *http.Response) *Error {
	failed := out.failure(CodeHTTP, nil)
	failed.Ambiguous = ambiguousStatus(out.Method, out.Status) || (mutates(out.Method) && out.Status < 400)
	failed.ServiceCode = wire.SafeCode(response.Header.Get("X-Ms-Error-Code"))
	if out.Status >= 400 && out.Status != http.StatusTooManyRequests {
		if code := readErrorCode(ctx, response.Body); code != "" {
			failed.ServiceCode = code
		}
		return failed
	}
	if err := response.Body.Close(); err != nil {
		failed.CloseFailed = true
		failed.Err = err
	}
	return failed
}

const (
	maxErrorBytes   = 64 << 10
	errorBodyWindow = 5 * time.Second
)

// readErrorCode reads the error code of a refusal; whatever goes wrong, there is none.
func readErrorCode(ctx context.Context, body io.ReadCloser) string {
	ctx, cancel := context.WithTimeout(ctx, errorBodyWindow)
	defer cancel()
	data, code, _ := readBody(ctx, body, maxErrorBytes)
	if code != "" {
		return ""
	}
	return wire.ErrorCode(data)
}

// readBody reads a whole body of at most limit bytes and closes it. A watchdog breaks the body at
// the context's end, whatever the transport makes of the context (S47). code is "" for a success.
func readBody(ctx context.Context, body io.ReadCloser, limit int64) (data []byte, code string, err error) {
	stop := context.AfterFunc(ctx, func() { _ = body.Close() })
	data, err = io.ReadAll(io.LimitReader(body, limit+1))
	if stop() {
		_ = body.Close() // everything wanted is read; a failure to close changes nothing
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, CodeDeadlineExceeded, ctx.Err()
	case ctx.Err() != nil:
		return nil, CodeReadFailed, ctx.Err()
	case err != nil:
		return nil, CodeReadFailed, err
	case int64(len(data)) > limit:
		return nil, CodeTooLarge, nil
	}
	return data, "", nil
}
