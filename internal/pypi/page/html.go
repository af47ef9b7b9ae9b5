package page

import (
	"encoding/json"
	"html"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/pypi"
)

// html writes the page of PEP 503 from the facts, and returns where its segments end. Every
// attribute has a quoted, escaped value (C66, C67).
func (w *view) html() (out []byte, cuts []int) {
	size := 512
	for _, p := range w.picks {
		d := w.parts[p.part]
		e := &d.entries[p.i]
		size += len(w.link) + 2*len(d.file(int(p.i))) + e.requires.Len() + e.yanked.Len() + 2*e.core.Len() + e.provenance.Len() + 256
	}
	out = make([]byte, 0, size)
	out = append(out, "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"pypi:repository-version\" content=\""...)
	out = append(out, w.apiVersion()...)
	out = append(out, "\">\n"...)
	d := w.parts[0]
	out = metaTags(out, "pypi:project-status", d.status.status)
	out = metaTags(out, "pypi:project-status-reason", d.status.reason)
	out = metaTags(out, "pypi:tracks", d.tracks...)
	out = metaTags(out, "pypi:alternate-locations", d.located...)
	out = append(out, "<title>Links for "+w.name+"</title>\n</head>\n<body>\n<h1>Links for "+w.name+"</h1>\n"...)
	link := html.EscapeString(w.link)
	var segments listing.Segments
	for _, p := range w.picks {
		d := w.parts[p.part]
		if segments.Begins(p.part, d.offset(p.i)) {
			cuts = append(cuts, len(out))
		}
		out = d.anchor(out, link, int(p.i))
	}
	cuts = append(cuts, len(out))
	return append(out, "</body>\n</html>\n"...), cuts
}

// metaTags writes a meta element for each value that is not empty.
func metaTags(out []byte, name string, values ...string) []byte {
	for _, v := range values {
		if v != "" {
			out = append(out, `<meta name="`+name+`"`...)
			out = append(attribute(out, "content", v), ">\n"...)
		}
	}
	return out
}

// anchor writes the link to a file.
func (d *document) anchor(out []byte, link string, i int) []byte {
	e, a := &d.entries[i], &d.versions[i].Artifacts[0]
	out = append(out, `<a href="`...)
	out = append(out, link...)
	out = append(out, a.File...)
	if g := fragment(a.Digests); g != nil {
		out = append(out, '#')
		out = appendDigest(out, g)
	}
	out = append(out, '"')
	if requires := d.string(e.requires); requires != "" {
		out = attribute(out, "data-requires-python", requires)
	}
	if c := a.Companion; c != nil {
		for _, name := range [...]string{"data-core-metadata", "data-dist-info-metadata"} {
			out = append(out, " "+name+`="`...)
			if g := fragment(c.Digests); g != nil {
				out = appendDigest(out, g)
			} else {
				out = append(out, "true"...)
			}
			out = append(out, '"')
		}
	}
	if !e.signature.Empty() {
		out = attribute(out, "data-gpg-sig", e.signature.Of(d.text))
	}
	if !e.provenance.Empty() {
		out = append(out, ` data-provenance="`+link+a.File+pypi.ProofSuffix+`"`...)
	}
	if reason, yanked := d.yanked(i); yanked {
		out = attribute(out, "data-yanked", reason)
	}
	out = append(out, '>')
	out = append(out, a.File...)
	return append(out, "</a><br>\n"...)
}

// yanked reports whether a file is withdrawn, and why. The empty string, like false, says that it
// is not (PEP 691).
func (d *document) yanked(i int) (reason string, yanked bool) {
	span := d.entries[i].yanked
	switch value := span.Of(d.text); value {
	case "", "false", `""`:
		return "", false
	case "true":
		return "", true
	}
	return d.string(span), true
}

// string decodes a JSON string; an empty span, and what cannot be decoded, is the empty one.
func (d *document) string(span listing.Span) string {
	if span.Empty() {
		return ""
	}
	inside := d.text[span.Start+1 : span.End-1]
	if strings.IndexByte(inside, '\\') < 0 {
		return inside
	}
	var decoded string
	if err := json.Unmarshal([]byte(span.Of(d.text)), &decoded); err != nil {
		return ""
	}
	return decoded
}

// attribute writes an attribute with a quoted value.
func attribute(out []byte, name, value string) []byte {
	out = append(out, ' ')
	out = append(out, name...)
	out = append(out, `="`...)
	for i := range len(value) {
		switch c := value[i]; c {
		case '&':
			out = append(out, "&amp;"...)
		case '<':
			out = append(out, "&lt;"...)
		case '>':
			out = append(out, "&gt;"...)
		case '"':
			out = append(out, "&#34;"...)
		case '\r': // would be read as a line feed
			out = append(out, "&#13;"...)
		case 0: // HTML has no way to say it
			out = append(out, "\ufffd"...)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
