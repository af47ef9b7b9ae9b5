package pypi

import (
	"errors"
	"fmt"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/pypi/webpage"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// maxProjects bounds the list of all projects. The best known index has about 800,000.
const maxProjects = 2_000_000

// ScanIndex reads the list of all projects, in either form, and returns their normalised names,
// each once, in the order of the list. Entries that name no project are passed over. Errors are
// those of a page.
func ScanIndex(src registry.Source) ([]string, error) {
	form, err := FormOf(src)
	if err != nil {
		return nil, Refuse("list of projects", err)
	}
	x := index{most: maxProjects}
	if form == FormJSON {
		err = x.json(src.Body)
	} else {
		err = webpage.Projects(src.Body, x.add)
	}
	if err != nil {
		return nil, Refuse("list of projects", err)
	}
	return x.names, nil
}

// Refuse types what the span engine says of a document, a page or the list of projects.
func Refuse(what string, err error) error {
	sentinel := registry.ErrMalformed
	if e, ok := errors.AsType[*listing.Error](err); ok && e.Limit {
		sentinel = registry.ErrTooLarge
	}
	return fmt.Errorf("%s: %w: %v", what, sentinel, err)
}

type index struct {
	names []string
	seen  listing.Names
	most  int
}

func (x *index) name(i int) string { return x.names[i] }

// add takes one name and reports false when there are too many.
func (x *index) add(spelled string) bool {
	name, err := naming.ParseName(spelled)
	if err != nil {
		return true
	}
	if x.seen.Lookup(name, x.name) >= 0 {
		return true
	}
	if len(x.names) == x.most {
		return false
	}
	x.seen.Add(name, x.name)
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
				s.Limit(s.Pos(), "too many projects")
				return
			}
		}
	}
}

// RenderIndex writes the list of all projects in a form. Names must be normalised; links are
// relative to the list's own address.
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
