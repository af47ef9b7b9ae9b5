package npm

import (
	"encoding/json"
	"strconv"
	"strings"
)

// The representations of a listing.
const (
	// FormFull is the whole document.
	FormFull = "full"
	// FormAbbreviated is the document with only what installing needs.
	FormAbbreviated = "abbreviated"
)

const (
	typeFull        = "application/json"
	typeAbbreviated = "application/vnd.npm.install-v1+json"
)

// maxAccept bounds an Accept field; a longer one gets the full form.
const maxAccept = 4096

// Negotiate chooses the form for an Accept field value (several fields joined by commas). The abbreviated form must be asked for by
// name and at least as strongly as JSON, by the quality values of RFC 9110, section 12.5.1; of equal ones the first named wins.
// Anything else, also no field at all, gets the full form, which carries the publish times that age gates of clients need.
func Negotiate(accept string) (form string) {
	if len(accept) > maxAccept {
		return FormFull
	}
	var abbreviated, full quality
	for i, part := range strings.Split(accept, ",") {
		media, params, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(media)) {
		case typeAbbreviated:
			abbreviated.offer(3, q(params), i)
		case typeFull:
			full.offer(3, q(params), i)
		case "application/*":
			full.offer(2, q(params), i)
		case "*/*":
			full.offer(1, q(params), i)
		}
	}
	if abbreviated.q > full.q || abbreviated.q > 0 && abbreviated.q == full.q && (full.rank < 3 || abbreviated.at < full.at) {
		return FormAbbreviated
	}
	return FormFull
}

// quality is the most specific media range that matches a type.
type quality struct {
	rank, q, at int
}

func (b *quality) offer(rank, q, at int) {
	if rank > b.rank {
		*b = quality{rank, q, at}
	}
}

// q reads the quality value, in thousandths. A malformed one counts as 0: what cannot be understood is not preferred.
func q(params string) int {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return 0
		}
		return int(f * 1000)
	}
	return 1000
}

// ErrorBody is a refusal in npm's dialect: a JSON object with the reason in "error".
func ErrorBody(message string) []byte {
	body, err := json.Marshal(struct {
		Error string `json:"error"`
	}{message})
	if err != nil { // cannot happen: a struct of one string
		return []byte(`{"error":"internal error"}`)
	}
	return body
}
