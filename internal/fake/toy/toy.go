// Package toy is an ecosystem of few words for the tests of what no ecosystem may matter to: it
// reads the documents of fakenpm with encoding/json, and names files by convention or by links
// alone. World is what such a test needs around it.
package toy

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Name is what the ecosystem is called.
const Name = "toy"

// Document is a scanned listing.
type Document struct {
	Serial   int64
	body     []byte
	versions []registry.Version
	dropped  int
}

// Versions implements registry.Document. They are in the order of their numbers.
func (d *Document) Versions() []registry.Version { return d.versions }

// Lookup implements registry.Document.
func (d *Document) Lookup(version string) int {
	return slices.IndexFunc(d.versions, func(v registry.Version) bool { return v.Version == version })
}

// Dropped implements registry.Document.
func (d *Document) Dropped() int { return d.dropped }

// Source implements registry.Document.
func (d *Document) Source() []byte { return d.body }

// Cost implements registry.Document.
func (d *Document) Cost() int64 { return int64(2*len(d.body) + 256*len(d.versions)) }

type listing struct {
	Serial   int64 `json:"serial"`
	Versions map[string]struct {
		Dist struct {
			Tarball   string `json:"tarball"`
			Integrity string `json:"integrity"`
		} `json:"dist"`
		Companion bool `json:"companion"`
	} `json:"versions"`
	Time map[string]time.Time `json:"time"`
}

// Scan reads a document of fakenpm. A version without a file is dropped.
func Scan(p registry.Package, src registry.Source) (registry.Document, error) {
	var in listing
	if err := json.Unmarshal(src.Body, &in); err != nil {
		return nil, fmt.Errorf("%w: %v", registry.ErrMalformed, err)
	}
	d, whole := &Document{Serial: in.Serial, body: src.Body}, string(src.Body)
	for number, v := range in.Versions {
		// a part of the whole text, as in a real ecosystem
		if i := strings.Index(whole, `"`+number+`"`); i >= 0 {
			number = whole[i+1 : i+1+len(number)]
		}
		if v.Dist.Tarball == "" {
			d.dropped++
			continue
		}
		file := registry.Artifact{File: File(p.Name, number), URL: v.Dist.Tarball}
		if encoded, ok := strings.CutPrefix(v.Dist.Integrity, "sha512-"); ok {
			sum, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				return nil, fmt.Errorf("%w: %v", registry.ErrMalformed, err)
			}
			file.Digests = []registry.Digest{{Algorithm: "sha512", Sum: sum}}
		}
		if v.Companion {
			file.Companion = &registry.Companion{}
		}
		d.versions = append(d.versions, registry.Version{Version: number, Published: in.Time[number], Artifacts: []registry.Artifact{file}})
	}
	slices.SortFunc(d.versions, func(a, b registry.Version) int { return cmp.Compare(a.Version, b.Version) })
	return d, nil
}

// Serial is the count of changes that a document carries; 0 is none.
func Serial(d registry.Document) (int64, bool) {
	doc, ok := d.(*Document)
	return doc.Serial, ok && doc.Serial > 0
}

// ScanIndex reads a list of names.
func ScanIndex(src registry.Source) (names []string, err error) {
	if err := json.Unmarshal(src.Body, &names); err != nil {
		return nil, fmt.Errorf("%w: %v", registry.ErrMalformed, err)
	}
	return names, nil
}

// File is the name of a version's file.
func File(name, version string) string { return name + "-" + version + ".tgz" }

// KeyOfFile gives the version that a file belongs to.
func KeyOfFile(name, file string) (string, bool) {
	version, ok := strings.CutPrefix(strings.TrimSuffix(file, ".tgz"), name+"-")
	return version, ok && strings.HasSuffix(file, ".tgz")
}

// ListingPath is where a listing lies.
func ListingPath(name string) string { return "/" + name }

// ArtifactPath is where a file lies.
func ArtifactPath(name, file string) string { return "/" + name + "/-/" + file }

// row is a version in a rendering.
type row struct {
	Version string `json:"version"`
	URL     string `json:"url"`
}

// Render lists what is kept of the parts, the earlier of two with the same number.
func Render(v registry.View) (registry.Rendering, error) {
	rows, seen, out := []row{}, map[string]registry.Version{}, registry.Rendering{ContentType: "application/" + v.Form}
	for _, p := range v.Parts {
		for i, version := range p.Document.Versions() {
			if before, twice := seen[version.Version]; twice {
				if registry.Differ(before.Artifacts[0].Digests, version.Artifacts[0].Digests) {
					out.Divergent++
				}
				continue
			}
			if p.Keep[i] {
				seen[version.Version] = version
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(seen)) {
		rows = append(rows, row{number, v.Base + ArtifactPath(v.Package.Name, File(v.Package.Name, number))})
	}
	body, err := json.Marshal(rows)
	out.Body, out.Versions = body, len(rows)
	return out, err
}

// RenderVersion renders one version by its number, or the highest as "latest".
func RenderVersion(v registry.View, selector string) (registry.Rendering, bool, error) {
	best := ""
	for _, p := range v.Parts {
		for i, version := range p.Document.Versions() {
			if p.Keep[i] && (version.Version == selector || selector == "latest" && version.Version > best) {
				best = version.Version
			}
		}
	}
	if best == "" {
		return registry.Rendering{}, false, nil
	}
	body, err := json.Marshal(row{best, v.Base + ArtifactPath(v.Package.Name, File(v.Package.Name, best))})
	return registry.Rendering{Body: body, ContentType: "application/json", Versions: 1}, true, err
}

// Rendered are the numbers in a rendering.
func Rendered(body []byte) ([]string, error) {
	var rows []row
	err := json.Unmarshal(body, &rows)
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.Version
	}
	return out, err
}
