package search

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// Codes of Error. They are part of the tool's contract (spec of the recovery, sections 3 and 5).
const (
	CodeEndpointInvalid     = "endpoint-invalid"
	CodeNameInvalid         = "name-invalid"
	CodeContinuationInvalid = "continuation-url-invalid"

	// CodeHTTP: an answer with a status that the method does not expect
	CodeHTTP = "azure-http-error"
	// CodeAmbiguous: no answer
	CodeAmbiguous = "azure-response-ambiguous"
	// CodeDeadlineExceeded: no time was left, or the body took too long
	CodeDeadlineExceeded = "response-deadline-exceeded"
	// CodeReadFailed: the body broke off
	CodeReadFailed = "response-read-failed"
	// CodeTooLarge: the body is larger than the bound
	CodeTooLarge = "response-too-large"
	// CodeInvalidJSON: the body is not the JSON that was asked for
	CodeInvalidJSON = "response-invalid-json"
	// CodeDeadlineInvalid: the caller's deadline or timeout makes no sense
	CodeDeadlineInvalid = "response-deadline-invalid"
	// CodeLimitInvalid: the caller's body limit is negative
	CodeLimitInvalid = "response-limit-invalid"
	// CodeRequestInvalid: the caller's document or upload cannot be sent
	CodeRequestInvalid = "request-invalid"
	// CodeETagConflict: body and headers disagree about the ETag
	CodeETagConflict = "etag-conflict"
	// CodeETagInvalid: a blank ETag, or one that is not text
	CodeETagInvalid = "etag-invalid"
	// CodeNotRecorded: the recorder refused the request: nothing was sent
	CodeNotRecorded = "request-not-recorded"
	// CodePersistence: the exchange ended, but the recorder could not record it
	CodePersistence = "local-persistence"
	// CodeInterrupted: the context ended before anything was sent
	CodeInterrupted = "interrupted"
	// CodeFileListInvalid: a page of files is not a list of file records
	CodeFileListInvalid = "file-list-invalid"
	// CodeContentChanged: the content is not what the upload said
	CodeContentChanged = "upload-content-changed"

	CodeCLIUnavailable       = "azure-cli-unavailable"
	CodeAuthenticationFailed = "azure-authentication-failed"
	CodeAuthenticationTime   = "azure-authentication-timeout"
)

// Error is every failure of this package. It never holds a token, a header or a text of the
// service.
type Error struct {
	Code   string
	Method string // "" when no request was being made
	URL    string
	// Status is the HTTP status, 0 without an answer.
	Status int
	// RequestID is the service's id of the request: safe, the literal [withheld], or "".
	RequestID string
	// Ambiguous means that a mutation may have been carried out.
	Ambiguous bool
	// Sent is false when it is certain that nothing left this machine.
	Sent bool
	// RetryAfter and ReceivedAt are what the headers said and when; meaningful when Status is
	// not 0. They are taken before the body is closed (S46).
	RetryAfter retryafter.Report
	ReceivedAt time.Time
	// ServiceCode is the bounded, sanitised error code of the answer, or "". The body of a 429 is
	// never read (S45), so there it can only come from the x-ms-error-code header.
	ServiceCode string
	// CloseFailed means that the body could not be closed: a delayed recovery must not follow
	// (S45).
	CloseFailed bool
	// Persistence is the recorder's failure to record the end of the exchange; nothing may be sent
	// after it.
	Persistence error
	// Err is the cause, for errors.Is and errors.As. Its text is not part of Error's.
	Err error
}

// Error gives the code and the facts in our own words.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Method != "" {
		fmt.Fprintf(&b, "%s: ", e.Method)
	}
	b.WriteString(e.Code)
	if e.Status != 0 {
		fmt.Fprintf(&b, ": status %d", e.Status)
	}
	if e.ServiceCode != "" {
		fmt.Fprintf(&b, ", code %s", e.ServiceCode)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, ", request id %s", e.RequestID)
	}
	if reason := e.reason(); reason != "" {
		fmt.Fprintf(&b, ": %s", reason)
	}
	return b.String()
}

// Unwrap gives the causes.
func (e *Error) Unwrap() []error {
	var causes []error
	for _, err := range []error{e.Err, e.Persistence} {
		if err != nil {
			causes = append(causes, err)
		}
	}
	return causes
}

// Reason is a cause in words of this program, which Error shows.
type Reason string

// Error gives the words.
func (r Reason) Error() string { return string(r) }

// reason puts the cause into words of ours; foreign texts, such as a malformed header quoted by the
// HTTP library, stay inside.
func (e *Error) reason() string {
	if own, ok := errors.AsType[Reason](e.Err); ok {
		return string(own)
	}
	if errors.Is(e.Err, errPrincipalChanged) {
		return errPrincipalChanged.Error()
	}
	var netErr net.Error
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case e.Err == nil:
		return ""
	case errors.Is(e.Err, context.Canceled):
		return "interrupted"
	case errors.Is(e.Err, context.DeadlineExceeded), errors.As(e.Err, &netErr) && netErr.Timeout():
		return "timed out"
	case errors.As(e.Err, &dns):
		return "the host name cannot be resolved"
	case errors.As(e.Err, &certificate):
		return "the server's certificate is not trusted"
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(e.Err, syscall.ECONNRESET), errors.Is(e.Err, syscall.EPIPE), errors.Is(e.Err, io.EOF), errors.Is(e.Err, io.ErrUnexpectedEOF):
		return "the connection was lost"
	}
	return ""
}

// Permanent reports whether the answer says that a quota or a file limit is used up, which no wait
// will cure (S78). It looks only at the error code of a 409 or 429; an empty or unknown code is not
// permanent.
func (e *Error) Permanent() bool {
	return (e.Status == 409 || e.Status == 429) && permanentCode(e.ServiceCode)
}

// permanentCode distinguishes a used-up allowance from a rate limit: QuotaExceeded and
// FileLimitReached, not RateLimitExceeded.
func permanentCode(code string) bool {
	code = strings.ToLower(code)
	for _, rate := range []string{"rate", "throttl", "toomany", "busy", "queue", "concurren", "second", "minute"} {
		if strings.Contains(code, rate) {
			return false
		}
	}
	if strings.Contains(code, "quota") {
		return true
	}
	limit := strings.Contains(code, "limit") || strings.Contains(code, "max") || strings.Contains(code, "count")
	return limit && (strings.Contains(code, "reached") || strings.Contains(code, "exceeded"))
}

// ambiguousStatus is S43: after these, a mutation may have happened.
func ambiguousStatus(method string, status int) bool {
	return mutates(method) && (status == 408 || status == 429 || status >= 500)
}

func mutates(method string) bool { return method != "GET" && method != "HEAD" }
