// Package webpage reads the HTML pages of the Python package index (PEP 503) with the tokenizer of
// the HTML standard. A project's page becomes the JSON form (PEP 691), so that everything else
// knows one form only.
package webpage

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// maxToken bounds one tag, comment or run of text of an HTML page.
const maxToken = 1 << 20

// maxAnchors bounds the links of an HTML page, those to files and others.
const maxAnchors = 200_000

// page is a project's page, read.
type page struct {
	base            *url.URL      // what links are read against; nil when nothing is known of it
	links           *naming.Links // against base, once it is known
	based           bool          // base is that of a base element
	version         string        // the version of the protocol that it names
	titled          bool          // a heading says what it is
	status, reason  string
	serial          int64
	anchors         []anchor
	tracks, located []string // PEP 708
	dropped         int
	heading         bool // the next text is a title or a heading
}

// anchor is a link with the attributes that the specification knows.
type anchor struct {
	href                                                  string
	requires, yanked, core, legacy, signature, provenance value
	bad                                                   bool // an attribute is no UTF-8
}

// value is that of an attribute, which may be there without one.
type value struct {
	there bool
	text  string
}

// tokens hands the tokens of a page to a function: tags, texts and comments, and at the end
// html.ErrorToken. Unclosed tags, unquoted values and attributes without one are taken as browsers
// take them.
func tokens(body []byte, each func(*html.Tokenizer, html.TokenType) error) error {
	if len(body) > listing.MaxBytes {
		return &listing.Error{Reason: "page larger than 1 GiB", Limit: true}
	}
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(maxToken)
	for {
		t := z.Next()
		if t == html.ErrorToken && !errors.Is(z.Err(), io.EOF) {
			return &listing.Error{Reason: "a tag or text of the page is larger than 1 MiB", Limit: true}
		}
		if err := each(z, t); err != nil || t == html.ErrorToken {
			return err
		}
	}
}

// plainText makes the tokenizer look for tags in an element that it would take for text, except in
// scripts and styles: an unclosed title must not swallow the page.
func plainText(z *html.Tokenizer, tag []byte) {
	if name := string(tag); name != "script" && name != "style" {
		z.NextIsNotRawText()
	}
}

// read reads a project's page.
func read(src registry.Source) (*page, error) {
	p := &page{base: src.URL}
	return p, tokens(src.Body, func(z *html.Tokenizer, t html.TokenType) error {
		switch t {
		case html.ErrorToken:
			return p.check()
		case html.StartTagToken, html.SelfClosingTagToken:
			p.tag(z)
			if len(p.anchors) > maxAnchors {
				return &listing.Error{Reason: "more than 200000 links", Limit: true}
			}
		case html.TextToken:
			if text := bytes.TrimSpace(z.Text()); p.heading && len(text) > 0 {
				p.titled = p.titled || bytes.HasPrefix(bytes.ToLower(text), []byte("links for "))
				p.heading = false
			}
		case html.CommentToken:
			if n, ok := strings.CutPrefix(strings.TrimSpace(string(z.Text())), "SERIAL "); ok {
				p.serial, _ = strconv.ParseInt(n, 10, 64)
			}
		default: // says nothing
		}
		return nil
	})
}

func (p *page) tag(z *html.Tokenizer) {
	name, more := z.TagName()
	plainText(z, name)
	switch string(name) {
	case "a":
		p.anchor(z, more)
	case "base":
		p.baseElement(z, more)
	case "meta":
		p.metaElement(z, more)
	case "title", "h1":
		p.heading = true
	}
}

// anchor reads the attributes of a link.
func (p *page) anchor(z *html.Tokenizer, more bool) {
	var a anchor
	var href value
	for more {
		var key, text []byte
		key, text, more = z.TagAttr()
		var into *value
		switch string(key) {
		case "href":
			into = &href
		case "data-requires-python":
			into = &a.requires
		case "data-yanked":
			into = &a.yanked
		case "data-core-metadata":
			into = &a.core
		case "data-dist-info-metadata":
			into = &a.legacy
		case "data-gpg-sig":
			into = &a.signature
		case "data-provenance":
			into = &a.provenance
		default:
			continue
		}
		a.bad = a.bad || !utf8.Valid(text)
		// of an attribute given twice the tokenizer hands out the first one, as the standard has it
		*into = value{true, string(text)}
	}
	if href.there {
		a.href = strings.Trim(href.text, " \t\r\n\f")
		p.anchors = append(p.anchors, a)
	}
}

// baseElement takes the first base element with an address, wherever it stands.
func (p *page) baseElement(z *html.Tokenizer, more bool) {
	for more && !p.based {
		var key, value []byte
		key, value, more = z.TagAttr()
		if string(key) != "href" {
			continue
		}
		u, err := url.Parse(strings.TrimSpace(string(value)))
		if err != nil {
			return
		}
		if p.base != nil {
			u = p.base.ResolveReference(u)
		}
		p.base, p.based = u, true
	}
}

func (p *page) metaElement(z *html.Tokenizer, more bool) {
	var name, content string
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "name":
			name = string(value)
		case "content":
			content = strings.ToValidUTF8(string(value), "\ufffd")
		}
	}
	switch name {
	case "pypi:repository-version":
		p.version = strings.TrimSpace(content)
	case "pypi:project-status":
		p.status = content
	case "pypi:project-status-reason":
		p.reason = content
	case "pypi:tracks":
		p.tracks = append(p.tracks, content)
	case "pypi:alternate-locations":
		p.located = append(p.located, content)
	}
}
