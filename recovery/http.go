package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/ecluse-gate/ecluse/internal/requestid"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// DefaultBodyLimit is the largest body in bytes that [Get] reads unless told otherwise.
const DefaultBodyLimit = 1 << 20

// ErrTooLarge is wrapped by the error about a body over the limit.
var ErrTooLarge = errors.New("the body is larger than allowed")

// GetOptions are the options of [Get].
type GetOptions struct {
	ReadOptions
	// BodyLimit is the largest body in bytes; zero means DefaultBodyLimit.
	BodyLimit int64
	// RequestIDs are the header fields that may hold the server's identifier, the first non-empty
	// one counts; nil means X-Request-Id.
	RequestIDs []string
}

// Response is a successful answer, read completely.
type Response struct {
	Status    int
	Header    http.Header
	Body      []byte
	RequestID string // sanitised
}

// Get reads with GET or HEAD over a plain transport: bounded, redirects off (a transport follows
// none), the body of a 429 closed unread before any wait. Statuses of 300 and more are a
// [*StatusError]; so is a 429 in front of a [*Failure]. Any other method is refused: this package
// never repeats a write. The request is cloned for each attempt and not changed.
func Get(ctx context.Context, s *Sequence, transport http.RoundTripper, req *http.Request, opt GetOptions) (*Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead && req.Method != "" || req.Body != nil && req.Body != http.NoBody {
		return nil, fmt.Errorf("recovery: %s is not a read", req.Method)
	}
	if opt.BodyLimit <= 0 {
		opt.BodyLimit = DefaultBodyLimit
	}
	if opt.RequestIDs == nil {
		opt.RequestIDs = []string{"X-Request-Id"}
	}
	return Read(ctx, s, opt.ReadOptions, func(ctx context.Context, _ Attempt) (*Response, Outcome, error) {
		return get(ctx, s.clock, transport, req.Clone(ctx), opt)
	})
}

// get makes one request.
func get(ctx context.Context, clock Clock, transport http.RoundTripper, req *http.Request, opt GetOptions) (*Response, Outcome, error) {
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, Outcome{}, err
	}
	out := Outcome{Status: resp.StatusCode, RequestID: firstOf(resp.Header, opt.RequestIDs)}
	if resp.StatusCode == http.StatusTooManyRequests {
		// What the header says is taken first, then the body is closed, then anybody may wait.
		out.RetryAfter = retryafter.ParseHeader(resp.Header, clock.Now())
		out.CloseErr = resp.Body.Close()
		return nil, out, statusError(out)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, out, statusError(out)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, opt.BodyLimit+1))
	switch {
	case err != nil:
		return nil, out, fmt.Errorf("read the body: %w", errors.Join(err, ctx.Err()))
	case int64(len(body)) > opt.BodyLimit:
		return nil, out, fmt.Errorf("read the body: %w (%d bytes)", ErrTooLarge, opt.BodyLimit)
	}
	return &Response{resp.StatusCode, resp.Header, body, requestid.Sanitize(out.RequestID)}, out, nil
}

func statusError(o Outcome) error { return &StatusError{o.Status, requestid.Sanitize(o.RequestID)} }

func firstOf(h http.Header, names []string) string {
	for _, name := range names {
		for _, v := range h.Values(name) {
			if v != "" {
				return v
			}
		}
	}
	return ""
}
