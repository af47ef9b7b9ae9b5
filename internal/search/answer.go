package search

import (
	"net/http"
	"strings"
	"time"
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
