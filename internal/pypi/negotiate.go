package pypi

import (
	"bytes"
	"fmt"
	"mime"
	"strconv"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// The representations of a page, and of the list of projects.
const (
	// FormJSON is that of PEP 691.
	FormJSON = "json"
	// FormHTML is that of PEP 503.
	FormHTML = "html"
)

// The media types of pages (PEP 691). The types with "latest" in place of "v1" are asked for, never
// answered.
const (
	typeJSON     = "application/vnd.pypi.simple.v1+json"
	typeHTML     = "application/vnd.pypi.simple.v1+html"
	typeTextHTML = "text/html"
)

// ContentType is what a page in a form says it is to a client that takes anything; "" for a form
// that there is not.
func ContentType(form string) string {
	switch form {
	case FormJSON:
		return typeJSON
	case FormHTML:
		return offers[anyOffer].contentType
	}
	return ""
}

// FormOf returns the form of an answer by its content type; one that says nothing of it is looked
// into.
func FormOf(src registry.Source) (form string, err error) {
	media, _, _ := mime.ParseMediaType(src.ContentType)
	switch {
	case strings.HasSuffix(media, "/json"), strings.HasSuffix(media, "+json"):
		return FormJSON, nil
	case media == "text/html", strings.HasSuffix(media, "+html"), media == "application/xhtml+xml":
		return FormHTML, nil
	}
	switch start := bytes.TrimLeft(src.Body[:min(len(src.Body), 1024)], " \t\r\n"); {
	case bytes.HasPrefix(start, []byte("{")):
		return FormJSON, nil
	case bytes.HasPrefix(start, []byte("<")):
		return FormHTML, nil
	}
	return "", &listing.Error{Reason: fmt.Sprintf("content type %.64q is not one of an index page", src.ContentType)}
}

// IndexAccept is what is sent upstream for a page: the form that says more first.
const IndexAccept = typeJSON + ", " + typeHTML + ";q=0.2, " + typeTextHTML + ";q=0.01"

// maxAccept bounds an Accept field; a longer one counts as none.
const maxAccept = 4096

// offers are what can be answered, in the order of preference among types that a client wants
// equally. contentType is what the answer says.
var offers = [...]struct{ media, form, contentType string }{
	{typeJSON, FormJSON, typeJSON},
	{typeHTML, FormHTML, typeHTML},
	{typeTextHTML, FormHTML, typeTextHTML + "; charset=utf-8"},
}

const anyOffer = 2 // what a client gets that takes anything: oldest clients say so

// Negotiate chooses the form and the media type of a page for an Accept field value (several fields
// joined by commas), by the quality values of RFC 9110, section 12.5.1. Of types that a client
// wants equally, those that it names come before those that a wildcard covers, then JSON before
// HTML. No field, and one that takes anything, get HTML as ever. The value of the parameter
// "format" in the query, when there is one, comes before the field. It reports false when nothing
// that can be answered is acceptable (406).
//
// A type with "latest" is answered with the type of the version that it means, as PEP 691 demands.
func Negotiate(accept, formatParam string) (form, contentType string, ok bool) {
	if formatParam != "" {
		for i := range offers {
			if offers[i].media == versioned(strings.ToLower(strings.TrimSpace(formatParam))) {
				return offers[i].form, offers[i].contentType, true
			}
		}
		return "", "", false
	}
	if strings.TrimSpace(accept) == "" || len(accept) > maxAccept {
		return FormHTML, offers[anyOffer].contentType, true
	}
	best, found := match{}, -1
	for i, m := range matches(accept) {
		if m.q > 0 && (found < 0 || m.q > best.q || m.q == best.q && m.before(best, i)) {
			best, found = m, i
		}
	}
	if found < 0 {
		return "", "", false
	}
	return offers[found].form, offers[found].contentType, true
}

// match is how the most specific media range of a field that covers an offer values it.
type match struct{ rank, q int }

// before reports whether an offer that is valued as much as an earlier one is taken in place of it.
func (m match) before(best match, offer int) bool {
	return m.rank > best.rank || m.rank == 1 && best.rank == 1 && offer == anyOffer
}

// matches values each offer.
func matches(accept string) (m [len(offers)]match) {
	for part := range strings.SplitSeq(accept, ",") {
		media, params, _ := strings.Cut(part, ";")
		media = versioned(strings.ToLower(strings.TrimSpace(media)))
		for i := range offers {
			major, _, _ := strings.Cut(offers[i].media, "/")
			rank := 0
			switch media {
			case offers[i].media:
				rank = 3
			case major + "/*":
				rank = 2
			case "*/*", "*":
				rank = 1
			}
			value := match{rank, quality(params)}
			if rank > m[i].rank || rank > 0 && rank == m[i].rank && value.q > m[i].q {
				m[i] = value
			}
		}
	}
	return m
}

// versioned replaces "latest" by the version that it means.
func versioned(media string) string {
	switch media {
	case "application/vnd.pypi.simple.latest+json":
		return typeJSON
	case "application/vnd.pypi.simple.latest+html":
		return typeHTML
	}
	return media
}

// quality reads the quality value, in thousandths. A malformed one counts as 0: what cannot be
// understood is not preferred.
func quality(params string) int {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return 0
		}
		return int(f*1000 + 0.5)
	}
	return 1000
}
