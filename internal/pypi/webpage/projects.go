package webpage

import (
	"bytes"
	"net/url"

	"golang.org/x/net/html"

	"github.com/ecluse-gate/ecluse/internal/listing"
)

// Projects reads the list of all projects and gives add the last segment of each link, which is a
// project's name (PEP 503). When add reports false the list is too long. Errors are of type
// *[listing.Error].
func Projects(body []byte, add func(name string) bool) error {
	any := false
	return tokens(body, func(z *html.Tokenizer, t html.TokenType) error {
		if t == html.ErrorToken && !any {
			return &listing.Error{Reason: "no link to a project in the page"}
		}
		if t != html.StartTagToken && t != html.SelfClosingTagToken {
			return nil
		}
		tag, more := z.TagName()
		plainText(z, tag)
		for string(tag) == "a" && more {
			var key, value []byte
			key, value, more = z.TagAttr()
			if string(key) != "href" {
				continue
			}
			path := bytes.TrimSpace(value)
			if i := bytes.IndexAny(path, "?#"); i >= 0 {
				path = path[:i]
			}
			name, err := url.PathUnescape(lastSegment(string(bytes.TrimSuffix(path, []byte("/")))))
			if any = true; err == nil && !add(name) {
				return &listing.Error{Reason: "too many projects", Limit: true}
			}
		}
		return nil
	})
}
