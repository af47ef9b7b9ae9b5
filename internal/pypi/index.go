package pypi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"

	"golang.org/x/net/html"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// maxProjects bounds the list of all projects. The best known index has about 800,000.
const maxProjects = 2_000_000

// ScanIndex reads the list of all projects, in either form, and returns their normalised names, each once, in the order of the list. Entries
// that name no project are passed over. Errors are those of [Scan].
func ScanIndex(src registry.Source) ([]string, error) {
	form, err := formOf(src)
	if err != nil {
		return nil, indexRefusal(err)
	}
	x := index{seen: map[string]struct{}{}}
	if form == FormJSON {
		err = x.json(src.Body)
	} else {
		err = x.html(src.Body)
	}
	if err != nil {
		return nil, indexRefusal(err)
	}
	return x.names, nil
}

func indexRefusal(err error) error {
	sentinel := registry.ErrMalformed
	if e, ok := errors.AsType[*listing.Error](err); ok && e.Limit {
		sentinel = registry.ErrTooLarge
	}
	return fmt.Errorf("list of projects: %w: %v", sentinel, err)
}

var errManyProjects = &listing.Error{Reason: "more than 2000000 projects", Limit: true}

type index struct {
	names []string
	seen  map[string]struct{}
}

// add takes one name and reports false when there are too many.
func (x *index) add(spelled string) bool {
	name, err := ParseName(spelled)
	if err != nil {
		return true
	}
	if _, again := x.seen[name]; again {
		return true
	}
	if len(x.names) == maxProjects {
		return false
	}
	x.seen[name] = struct{}{}
	x.names = append(x.names, name)
	return true
}

func (x *index) json(body []byte) error {
	s := listing.NewScanner(body)
	listed := false
	if !s.Object() {
		s.Fail(s.Pos(), "not an object")
	}
	for {
		key, ok := s.Member()
		if !ok {
			break
		}
		if key != "projects" {
			s.Skip()
			continue
		}
		if listed = s.Array(); !listed {
			s.Fail(s.Pos(), "projects is not an array")
			break
		}
		x.projects(s)
	}
	if !listed {
		s.Fail(0, "no projects")
	}
	return s.End()
}

func (x *index) projects(s *listing.Scanner) {
	for s.Element() {
		if !s.Object() {
			s.Skip()
			continue
		}
		for {
			key, ok := s.Member()
			if !ok {
				break
			}
			if key != "name" {
				s.Skip()
				continue
			}
			if name, ok := s.Text(); ok && !x.add(name) {
				s.Limit(s.Pos(), errManyProjects.Reason)
				return
			}
		}
	}
}

// html takes the last segment of each link, which is the normalised name (PEP 503).
func (x *index) html(body []byte) error {
	if len(body) > listing.MaxBytes {
		return &listing.Error{Reason: "page larger than 64 MiB", Limit: true}
	}
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(maxToken)
	for {
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return &listing.Error{Reason: "a tag or text of the page is larger than 1 MiB", Limit: true}
			}
			if len(x.names) == 0 {
				return &listing.Error{Reason: "no link to a project in the page"}
			}
			return nil
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			if tag := string(name); tag != "script" && tag != "style" {
				z.NextIsNotRawText()
			}
			if string(name) == "a" && !x.link(z, more) {
				return errManyProjects
			}
		}
	}
}

func (x *index) link(z *html.Tokenizer, more bool) bool {
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if string(key) != "href" {
			continue
		}
		href := bytes.TrimSuffix(bytes.TrimSpace(value), []byte("/"))
		name, err := url.PathUnescape(lastSegment(string(href)))
		return err != nil || x.add(name)
	}
	return true
}

// RenderIndex writes the list of all projects in a form. Names must be normalised; links are relative to the list's own address.
func RenderIndex(names []string, form string) []byte {
	size := 256
	for _, name := range names {
		size += 2*len(name) + 24
	}
	out := make([]byte, 0, size)
	if form == FormJSON {
		out = append(out, `{"meta":{"api-version":"1.0"},"projects":[`...)
		for i, name := range names {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, `{"name":"`...)
			out = append(out, name...)
			out = append(out, `"}`...)
		}
		return append(out, "]}"...)
	}
	out = append(out, "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"pypi:repository-version\" content=\"1.0\">\n"+
		"<title>Simple index</title>\n</head>\n<body>\n"...)
	for _, name := range names {
		out = append(out, `<a href="`...)
		out = append(out, name...)
		out = append(out, `/">`...)
		out = append(out, name...)
		out = append(out, "</a>\n"...)
	}
	return append(out, "</body>\n</html>\n"...)
}
