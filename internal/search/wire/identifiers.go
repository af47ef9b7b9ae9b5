package wire

import (
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/requestid"
)

// RequestID picks the first non-empty x-ms-request-id, else the first non-empty request-id (S40).
func RequestID(header http.Header) string {
	for _, name := range []string{"X-Ms-Request-Id", "Request-Id"} {
		for _, value := range header.Values(name) {
			if value = strings.Trim(value, " \t"); value != "" {
				return requestid.Sanitize(value)
			}
		}
	}
	return ""
}

// SafeCode bounds and sanitises an error code: up to 64 letters, digits, dots, underscores and
// hyphens, else "".
func SafeCode(code string) string {
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

// ErrorCode reads the error code in the body of a refusal; "" when there is none, whatever the
// reason.
func ErrorCode(body []byte) string {
	document, err := ParseDocument(body)
	if err != nil {
		return ""
	}
	inner, _ := document["error"].(map[string]any)
	text, _ := inner["code"].(string)
	return SafeCode(text)
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
