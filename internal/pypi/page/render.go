package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

var (
	errForeign = errors.New("not a document of page.Scan")
	errParts   = errors.New("a view without documents")
)

// Render assembles one form of a project's page from scanned documents.
//
// Files keep their document's order, those of later parts follow. A file belongs to the first part
// that holds its name, also when that part's Keep withholds it: a file that was refused there is
// not taken from elsewhere. Every link points below v.Base. In JSON a file's object is spliced, so
// that unknown members stay as they are; "versions" has the releases of which files are served, and
// the version of the protocol is the lowest of the parts'. HTML is written from the facts.
// Everything else is the first part's.
func Render(v registry.View) (registry.Rendering, error) {
	w, err := newView(v)
	if err != nil {
		return registry.Rendering{}, err
	}
	r := registry.Rendering{ContentType: pypi.ContentType(v.Form), Versions: len(w.picks), Divergent: w.divergent}
	switch v.Form {
	case pypi.FormJSON:
		r.Body, r.Cuts = listing.AssembleRuns(w.json)
	case pypi.FormHTML:
		r.Body, r.Cuts = w.html()
	default:
		return registry.Rendering{}, fmt.Errorf("a project page has no form %q", v.Form)
	}
	return r, nil
}

// view is a registry.View with its decisions taken.
type view struct {
	name      string
	parts     []*document
	keep      [][]bool
	picks     []pick
	divergent int
	minor     int
	releases  []string // JSON, with quotes
	link      string   // the beginning of every file's address
	quoted    string   // the same in JSON, with the opening quote
}

// pick is a file that is served.
type pick struct{ part, i int32 }

func newView(v registry.View) (*view, error) {
	if len(v.Parts) == 0 {
		return nil, errParts
	}
	w := &view{name: naming.Normalize(v.Package.Name)}
	w.link = v.Base + pypi.FilePath(w.name, "")
	quoted, _ := json.Marshal(w.link) // strings cannot fail
	w.quoted = string(quoted[:len(quoted)-1])
	n := 0
	for i, p := range v.Parts {
		d, ok := p.Document.(*document)
		if !ok {
			return nil, errForeign
		}
		if d.name != w.name {
			return nil, fmt.Errorf("a view of %s with a page of %s", w.name, d.name)
		}
		if i == 0 || d.minor < w.minor {
			w.minor = d.minor
		}
		w.parts, w.keep = append(w.parts, d), append(w.keep, p.Keep)
		n += len(d.versions)
	}
	w.picks = make([]pick, 0, n)
	for part, d := range w.parts {
		for i := range d.versions {
			if !w.shadowed(part, i) && i < len(w.keep[part]) && w.keep[part][i] {
				w.picks = append(w.picks, pick{int32(part), int32(i)})
			}
		}
	}
	w.listReleases()
	return w, nil
}

// shadowed reports whether an earlier part holds the file, and counts disagreement about its bytes.
func (w *view) shadowed(part, i int) bool {
	if part == 0 {
		return false
	}
	a := &w.parts[part].versions[i].Artifacts[0]
	for _, d := range w.parts[:part] {
		if j := d.Lookup(a.File); j >= 0 {
			if registry.Differ(d.versions[j].Artifacts[0].Digests, a.Digests) {
				w.divergent++
			}
			return true
		}
	}
	return false
}

// listReleases collects the releases of which files are served, each once, in the order of the
// documents.
func (w *view) listReleases() {
	seen := map[string]bool{} // of earlier parts
	next := 0
	for part, d := range w.parts {
		served := make([]bool, len(d.releases))
		for next < len(w.picks) && int(w.picks[next].part) == part {
			served[d.entries[w.picks[next].i].release] = true
			next++
		}
		for i, r := range d.releases {
			if !served[i] || seen[r.key] {
				continue
			}
			w.releases = append(w.releases, r.spelling)
			if len(w.parts) > 1 {
				seen[r.key] = true
			}
		}
	}
}

func (w *view) apiVersion() string { return "1." + strconv.Itoa(w.minor) }

// json adds the whole page.
func (w *view) json(s *listing.Splicer) {
	d := w.parts[0]
	var seen [topLast]bool
	s.Add("{")
	list := s.List()
	for _, m := range d.top {
		seen[m.kind] = true
		list.Item()
		switch m.kind {
		case topMeta, topName, topVersions, topFiles:
			s.Add(d.text[m.span.Start:m.value])
			w.value(s, m.kind)
		default:
			s.Add(m.span.Of(d.text))
		}
	}
	for _, m := range [...]struct {
		kind topKind
		key  string
	}{{topMeta, `"meta":`}, {topName, `"name":`}, {topVersions, `"versions":`}} {
		if !seen[m.kind] {
			list.Item()
			s.Add(m.key)
			w.value(s, m.kind)
		}
	}
	s.Add("}")
}

// value adds the value of one of the members that are rewritten.
func (w *view) value(s *listing.Splicer, kind topKind) {
	switch kind {
	case topMeta:
		w.meta(s)
	case topName:
		s.Add(`"`)
		s.Add(w.name)
		s.Add(`"`)
	case topVersions:
		s.Add("[")
		list := s.List()
		for _, r := range w.releases {
			list.Item()
			s.Add(r)
		}
		s.Add("]")
	case topFiles:
		s.Add("[")
		list := s.List()
		var segments listing.Segments
		for _, p := range w.picks {
			d := w.parts[p.part]
			if segments.Begins(p.part, d.offset(p.i)) {
				s.Cut()
			}
			list.Item()
			w.file(s, d, int(p.i))
		}
		s.Cut()
		s.Add("]")
	default: // the others are copied
	}
}

// meta adds the first part's metadata with the view's version of the protocol.
func (w *view) meta(s *listing.Splicer) {
	d := w.parts[0]
	if !d.api.Empty() {
		s.Add(d.text[d.meta.Start:d.api.Start])
		s.Add(`"` + w.apiVersion() + `"`)
		s.Add(d.text[d.api.End:d.meta.End])
		return
	}
	s.Add(`{"api-version":"` + w.apiVersion() + `"`)
	if rest := d.meta.Of(d.text); hasMembers(rest) {
		s.Add(",")
		s.Add(rest[1:])
		return
	}
	s.Add("}")
}

// offset is where file i begins, counted from the first, so that what grows before them moves no
// cut.
func (d *document) offset(i int32) uint32 {
	return d.entries[i].object.Start - d.entries[0].object.Start
}

// file adds a file's object.
func (w *view) file(s *listing.Splicer, d *document, i int) {
	e := &d.entries[i]
	at := e.object.Start
	for _, p := range d.patches[e.patches[0]:e.patches[1]] {
		s.Add(d.text[at:p.span.Start])
		switch p.with {
		case "", pypi.ProofSuffix:
			s.Add(w.quoted)
			s.Add(d.file(i))
			s.Add(p.with)
			s.Add(`"`)
		default:
			s.Add(p.with)
		}
		at = p.span.End
	}
	s.Add(d.text[at : e.object.End-1])
	if e.adds&addHashes != 0 {
		s.Add(`,"hashes":{}`)
	}
	if e.adds&addCore != 0 {
		s.Add(`,"core-metadata":`)
		s.Add(e.core.Of(d.text))
	}
	if e.adds&addLegacyCore != 0 {
		s.Add(`,"data-dist-info-metadata":`)
		s.Add(e.core.Of(d.text))
	}
	s.Add("}")
}

// hasMembers reports whether an object has any.
func hasMembers(object string) bool {
	for i := 1; i < len(object)-1; i++ {
		if c := object[i]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return true
		}
	}
	return false
}
