package packument

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Render assembles one representation of a listing from scanned documents.
//
// Versions keep their document's order, those of later parts follow. A version belongs to the first
// part that holds it, also when that part's Keep withholds it: a version that was refused there is
// not taken from elsewhere. Every "tarball" points below v.Base; "time" has the served versions
// only, with created and modified; a dist-tag comes from the first part whose tag points to a
// served version, and "latest" falls to the best served one (see [ResolveTag]). Everything else is
// the first part's, byte for byte.
func Render(v registry.View) (registry.Rendering, error) {
	view, err := newView(v)
	if err != nil {
		return registry.Rendering{}, err
	}
	r := registry.Rendering{ContentType: npm.ContentType(v.Form), Versions: len(view.picks), Divergent: view.divergent}
	switch v.Form {
	case npm.FormFull:
		r.Body, r.Cuts = listing.AssembleRuns(view.full)
	case npm.FormAbbreviated:
		r.Body, r.Cuts = listing.AssembleRuns(view.abbreviated)
	default:
		return registry.Rendering{}, fmt.Errorf("npm has no listing form %q", v.Form)
	}
	return r, nil
}

// RenderTags renders the dist-tags of a view as an object.
func RenderTags(v registry.View) ([]byte, error) {
	w, err := newView(v)
	if err != nil {
		return nil, err
	}
	return listing.Assemble(func(s *listing.Splicer) { w.value(s, topTags) }), nil
}

// RenderVersion renders the object of version i of a document, with its tarball below base.
func RenderVersion(doc registry.Document, i int, base string) ([]byte, error) {
	d, ok := doc.(*document)
	if !ok {
		return nil, errForeign
	}
	if i < 0 || i >= len(d.entries) {
		return nil, fmt.Errorf("version %d of %d does not exist", i, len(d.entries))
	}
	to := newLinks(base, d.name)
	return listing.Assemble(func(s *listing.Splicer) {
		e := &d.entries[i]
		d.copyVersion(s, listing.Span{Start: e.value, End: e.member.End}, i, to)
	}), nil
}

var errForeign = errors.New("not a document of packument.Scan")

// links are what the addresses of a package have before the version, as JSON strings without their
// end.
type links struct{ artifacts, attestations string }

func newLinks(mount, name string) links {
	open := func(address string) string {
		quoted, _ := json.Marshal(address) // strings cannot fail
		return string(quoted[:len(quoted)-1])
	}
	return links{open(mount + npm.ArtifactPath(name, "") + npm.FilePrefix(name)), open(mount + npm.AttestationsPath(name, ""))}
}

// copyVersion adds a piece of a version, with the addresses in it replaced by those at the gate.
func (d *document) copyVersion(s *listing.Splicer, piece listing.Span, i int, to links) {
	e := &d.entries[i]
	if e.tarball.Start < piece.Start || e.tarball.End > piece.End { // both are in "dist"
		s.Add(piece.Of(d.text))
		return
	}
	at := piece.Start
	if !e.attested.Empty() && e.attested.Start < e.tarball.Start {
		at = d.replace(s, at, e.attested, i, to.attestations, `"`)
	}
	at = d.replace(s, at, e.tarball, i, to.artifacts, `.tgz"`)
	if e.attested.Start > e.tarball.Start {
		at = d.replace(s, at, e.attested, i, to.attestations, `"`)
	}
	s.Add(d.text[at:piece.End])
}

// replace adds the text up to a hole and what stands there instead, and returns where to go on.
func (d *document) replace(s *listing.Splicer, from uint32, hole listing.Span, i int, before, after string) uint32 {
	s.Add(d.text[from:hole.Start])
	s.Add(before)
	s.Add(d.versions[i].Version)
	s.Add(after)
	return hole.End
}

// full adds the whole document.
func (w *view) full(s *listing.Splicer) {
	d := w.parts[0]
	var seen [topHidden + 1]bool
	s.Add("{")
	list := s.List()
	for _, m := range d.top {
		seen[m.kind] = true
		if m.kind == topHidden {
			continue
		}
		list.Item()
		switch m.kind {
		case topVersions, topTime, topTags:
			s.Add(d.text[m.span.Start:m.value])
			w.value(s, m.kind)
		default:
			s.Add(m.span.Of(d.text))
		}
	}
	for _, m := range [...]struct {
		kind topKind
		key  string
		due  bool
	}{{topTags, `"dist-tags":`, true}, {topTime, `"time":`, w.timed()}, {topVersions, `"versions":`, true}} {
		if m.due && !seen[m.kind] {
			list.Item()
			s.Add(m.key)
			w.value(s, m.kind)
		}
	}
	s.Add("}")
}

// value adds the value of one of the members that are rewritten.
func (w *view) value(s *listing.Splicer, kind topKind) {
	s.Add("{")
	list := s.List()
	switch kind {
	case topVersions:
		var segments listing.Segments
		for _, p := range w.picks {
			d := w.parts[p.part]
			if segments.Begins(p.part, d.offset(p.i)) {
				s.Cut()
			}
			list.Item()
			d.copyVersion(s, d.entries[p.i].member, int(p.i), w.links)
		}
		s.Cut()
	case topTime:
		w.times(s, &list)
	case topTags:
		for _, t := range w.tags {
			list.Item()
			s.Add(t.key)
			s.Add(`:"`)
			s.Add(t.version)
			s.Add(`"`)
		}
	case topOther, topName, topModified, topHidden: // never rewritten
	}
	s.Add("}")
}

// times adds the members of "time": the first part's own and those of the served versions.
func (w *view) times(s *listing.Splicer, list *listing.List) {
	for _, stay := range w.stamps {
		list.Item()
		s.Add(stay)
	}
	if w.changed.raw != "" {
		list.Item()
		s.Add(`"modified":`)
		s.Add(w.changed.raw)
	}
	var segments listing.Segments
	for _, p := range w.picks {
		d := w.parts[p.part]
		if e := &d.entries[p.i]; !e.published.Empty() {
			if segments.Begins(p.part, uint32(p.i)*timeBytes) {
				s.Cut()
			}
			list.Item()
			s.Add(e.published.Of(d.text))
		}
	}
	s.Cut()
}

// timeBytes is about what a member of "time" takes.
const timeBytes = 64

// offset is where version i begins, counted from the first, so that what grows before them moves no
// cut.
func (d *document) offset(i int32) uint32 {
	return d.entries[i].member.Start - d.entries[0].member.Start
}

// abbreviated adds the abbreviated form.
func (w *view) abbreviated(s *listing.Splicer) {
	d := w.parts[0]
	s.Add("{")
	for _, m := range d.top {
		if m.kind == topName {
			s.Add(m.span.Of(d.text))
		}
	}
	s.Add(`,"dist-tags":`)
	w.value(s, topTags)
	if w.changed.raw != "" {
		s.Add(`,"modified":`)
		s.Add(w.changed.raw)
	}
	s.Add(`,"versions":{`)
	list := s.List()
	var segments listing.Segments
	for _, p := range w.picks {
		d := w.parts[p.part]
		if segments.Begins(p.part, d.offset(p.i)) {
			s.Cut()
		}
		list.Item()
		d.abbreviate(s, int(p.i), w.links)
	}
	s.Cut()
	s.Add("}}")
}

// abbreviate adds a version with the members of the abbreviated form only.
func (d *document) abbreviate(s *listing.Splicer, i int, to links) {
	e := &d.entries[i]
	s.Add(d.text[e.member.Start:e.value])
	s.Add("{")
	list := s.List()
	for _, span := range d.spans[e.spans[0]:e.spans[1]] {
		list.Item()
		d.copyVersion(s, span, i, to)
	}
	if d.versions[i].InstallScripts {
		list.Item()
		s.Add(`"hasInstallScript":true`)
	}
	s.Add("}")
}
