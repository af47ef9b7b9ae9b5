package webpage

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// ToJSON reads a project's page and returns it in the JSON form, and how many links to files in it
// cannot be read. Links that are not to files are left out. Errors are of type *[listing.Error].
func ToJSON(name string, src registry.Source) (body []byte, dropped int, err error) {
	p, err := read(src)
	if err != nil {
		return nil, 0, err
	}
	return p.json(name), p.dropped, nil
}

// check refuses what is no project page at all, such as a request to sign in: it has no link to a
// file, and nothing in it says that it is one. To take it for an empty project would say that the
// project does not exist.
func (p *page) check() error {
	if p.version != "" || p.titled {
		return nil
	}
	for i := range p.anchors {
		if naming.KindOf(lastSegment(p.anchors[i].href)) != "" {
			return nil
		}
	}
	return &listing.Error{Reason: "the page has no link to a file and is not marked as a project's"}
}

// lastSegment is the last segment of the path of a link, as it is spelled.
func lastSegment(href string) string {
	if i := strings.IndexAny(href, "?#"); i >= 0 {
		href = href[:i]
	}
	return href[strings.LastIndexByte(href, '/')+1:]
}

// json writes the page. Version 1.0 is all that can be promised of it, but another major version is
// handed on, to be refused.
func (p *page) json(name string) []byte {
	p.links = naming.NewLinks(p.base)
	w := writer{out: make([]byte, 0, 512+512*len(p.anchors))}
	version := "1.0"
	if p.version != "" && !strings.HasPrefix(p.version, "1.") {
		version = p.version
	}
	w.raw(`{"meta":{"api-version":`)
	w.string(version)
	if p.serial > 0 {
		w.raw(`,"_last-serial":` + strconv.FormatInt(p.serial, 10))
	}
	w.list("tracks", p.tracks)
	w.raw(`},"name":`)
	w.string(name)
	w.list("alternate-locations", p.located)
	if p.status != "" {
		w.raw(`,"project-status":{"status":`)
		w.string(p.status)
		w.optional("reason", p.reason)
		w.raw(`}`)
	}
	w.raw(`,"files":[`)
	first := true
	for i := range p.anchors {
		a := &p.anchors[i]
		if naming.KindOf(lastSegment(a.href)) == "" {
			continue
		}
		address, file, hashes := p.resolve(a.href)
		if a.bad || file == "" {
			p.dropped++
			continue
		}
		if !first {
			w.raw(",")
		}
		first = false
		p.file(&w, a, address, file, hashes)
	}
	w.raw("]}")
	return w.out
}

// resolve reads a link to a file: its absolute address, the file's name and what the fragment says
// of its digests.
func (p *page) resolve(href string) (address, file, fragment string) {
	if strings.ContainsAny(href, "\n\r\t") { // line breaks and tabs within an address do not count
		href = strings.NewReplacer("\n", "", "\r", "", "\t", "").Replace(href)
	}
	href, fragment, _ = strings.Cut(href, "#")
	address = p.links.Absolute(href)
	if file = lastSegment(address); strings.Contains(file, "%") {
		var err error
		if file, err = url.PathUnescape(file); err != nil {
			return "", "", ""
		}
	}
	return address, file, fragment
}

// file writes one file's object.
func (p *page) file(w *writer, a *anchor, address, file, fragment string) {
	w.raw(`{"filename":`)
	w.string(file)
	w.raw(`,"url":`)
	w.string(address)
	w.raw(`,"hashes":{`)
	comma := ""
	for pair := range strings.SplitSeq(fragment, "&") {
		if algorithm, value, ok := strings.Cut(pair, "="); ok && hashName(algorithm) {
			w.raw(comma)
			w.string(algorithm)
			w.raw(":")
			w.string(value)
			comma = ","
		}
	}
	w.raw("}")
	w.optional("requires-python", a.requires.text)
	w.companion(a)
	if given := a.signature.text; given == "true" || given == "false" {
		w.raw(`,"gpg-sig":` + given)
	}
	if a.provenance.text != "" {
		w.optional("provenance", p.links.Absolute(strings.TrimSpace(a.provenance.text)))
	}
	w.optional("yanked", a.yanked.text)
	if a.yanked.there && a.yanked.text == "" {
		w.raw(`,"yanked":true`)
	}
	w.raw("}")
}

// hashName reports whether a name in a fragment is that of a hash function and not of something
// else, such as "egg".
func hashName(name string) bool {
	switch name {
	case "md5", "sha1", "sha224", "sha256", "sha384", "sha512":
		return true
	}
	return strings.HasPrefix(name, "sha3_") || strings.HasPrefix(name, "blake2")
}

// writer writes JSON.
type writer struct{ out []byte }

func (w *writer) raw(s string) { w.out = append(w.out, s...) }

func (w *writer) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // strings cannot fail
			w.out = append(w.out, quoted...)
			return
		}
	}
	w.out = append(w.out, '"')
	w.out = append(w.out, s...)
	w.out = append(w.out, '"')
}

// optional writes a member unless its value is empty.
func (w *writer) optional(key, value string) {
	if value != "" {
		w.raw(`,"` + key + `":`)
		w.string(value)
	}
}

// list writes a member with a list unless that is empty.
func (w *writer) list(key string, values []string) {
	for i, v := range values {
		if i == 0 {
			w.raw(`,"` + key + `":[`)
		} else {
			w.raw(",")
		}
		w.string(v)
	}
	if len(values) > 0 {
		w.raw("]")
	}
}

// companion writes what a link advertises of a companion: "true", or one digest. Anything else is
// taken for none, so that an installer reads the file itself.
func (w *writer) companion(a *anchor) {
	value := a.core
	if !value.there {
		value = a.legacy
	}
	algorithm, sum, ok := strings.Cut(value.text, "=")
	switch {
	case value.text == "true":
		w.raw(`,"core-metadata":true`)
	case ok:
		w.raw(`,"core-metadata":{`)
		w.string(algorithm)
		w.raw(":")
		w.string(sum)
		w.raw("}")
	}
}
