package search

import (
	"net/http"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/requestid"
)

// Answer is what every successful answer contains besides its body.
type Answer struct {
	Status int
	// RequestID is the service's id: safe, the literal [withheld], or "" (S36, S40).
	RequestID  string
	ReceivedAt time.Time
	ETags      ETagEvidence
}

// ETagEvidence is every ETag that an answer showed: in the body, and in each header line (S53).
type ETagEvidence struct {
	Body    *string // nil when the body has none
	Headers []string
	odd     bool // the body's is not a string
}

// Value gives the one ETag on which all evidence agrees, or "" without evidence. Quotes around a
// body value make no difference. Blank or non-text evidence is etag-invalid, disagreement is
// etag-conflict.
func (e ETagEvidence) Value() (string, error) {
	all := e.Headers
	if e.Body != nil {
		all = append([]string{*e.Body}, all...)
	}
	if e.odd {
		return "", &Error{Code: CodeETagInvalid}
	}
	value := ""
	for _, tag := range all {
		if strings.Trim(opaque(tag), " \t") == "" {
			return "", &Error{Code: CodeETagInvalid}
		}
		if value != "" && opaque(value) != opaque(tag) {
			return "", &Error{Code: CodeETagConflict}
		}
		value = tag // a header's spelling wins, since it is the one that If-Match wants
	}
	return value, nil
}

func opaque(tag string) string {
	if len(tag) >= 2 && tag[0] == '"' && tag[len(tag)-1] == '"' {
		return tag[1 : len(tag)-1]
	}
	return tag
}

func evidence(header http.Header, document map[string]any) ETagEvidence {
	e := ETagEvidence{Headers: header.Values("ETag")}
	if value, given := document["@odata.etag"]; given && value != nil {
		text, ok := value.(string)
		e.Body, e.odd = &text, !ok
	}
	return e
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// requestID picks the first non-empty x-ms-request-id, else the first non-empty request-id (S40).
func requestID(header http.Header) string {
	for _, name := range []string{"X-Ms-Request-Id", "Request-Id"} {
		for _, value := range header.Values(name) {
			if value = strings.Trim(value, " \t"); value != "" {
				return requestid.Sanitize(value)
			}
		}
	}
	return ""
}

// safeCode bounds and sanitises an error code: up to 64 letters, digits, dots, underscores and
// hyphens, else "".
func safeCode(code string) string {
	if len(code) > 64 {
		return ""
	}
	for _, c := range []byte(code) {
		if !alphanumeric(c) && strings.IndexByte("._-", c) < 0 {
			return ""
		}
	}
	return code
}
