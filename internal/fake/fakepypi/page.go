package fakepypi

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	typeJSON = "application/vnd.pypi.simple.v1+json"
	typeHTML = "text/html; charset=UTF-8"
)

// page is a project's page; nil when there is none.
func (r *Registry) page(name string, asJSON bool) (body []byte, contentType string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if raw, ok := r.raw[name]; ok {
		return raw.body, raw.contentType
	}
	p := r.projects[name]
	switch {
	case p == nil:
		return nil, ""
	case asJSON:
		return r.jsonPage(p), typeJSON
	}
	return r.htmlPage(p), typeHTML
}

// list is the list of all projects.
func (r *Registry) list(asJSON bool) (body []byte, contentType string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := slices.Sorted(maps.Keys(r.projects))
	if !asJSON {
		var b strings.Builder
		b.WriteString("<!DOCTYPE html>\n<html><head><title>Simple index</title></head><body>\n")
		for _, name := range names {
			fmt.Fprintf(&b, "<a href=\"/simple/%s/\">%s</a>\n", name, name)
		}
		b.WriteString("</body></html>")
		return []byte(b.String()), typeHTML
	}
	projects := make([]map[string]any, len(names))
	for i, name := range names {
		projects[i] = map[string]any{"name": name, "_last-serial": i + 1}
	}
	return encode(map[string]any{"meta": map[string]any{"api-version": "1.4"}, "projects": projects}), typeJSON
}

func (r *Registry) link(f File) string {
	if r.RelativeLinks {
		return "../.." + Path(f)
	}
	return r.FilesURL + Path(f)
}

func (f File) listed() string {
	if f.Listed != "" {
		return f.Listed
	}
	return Sum(f.Content)
}

func (r *Registry) jsonPage(p *Project) []byte {
	meta := map[string]any{"api-version": "1.4"}
	if p.Serial > 0 {
		meta["_last-serial"] = p.Serial
	}
	versions := map[string]bool{}
	for _, v := range p.Versions {
		versions[v] = true
	}
	files := make([]map[string]any, len(p.Files))
	for i, f := range p.Files {
		versions[f.Version] = true
		files[i] = r.jsonFile(f)
	}
	page := map[string]any{
		"meta": meta, "name": p.Name, "files": files, "versions": slices.Sorted(maps.Keys(versions)), "alternate-locations": []string{},
	}
	if p.Status != "" {
		page["project-status"] = map[string]string{"status": p.Status, "reason": p.Reason}
	}
	return encode(page)
}

func (r *Registry) jsonFile(f File) map[string]any {
	object := map[string]any{
		"filename": f.Name, "url": r.link(f), "size": len(f.Content), "hashes": map[string]string{}, "yanked": false,
		"core-metadata": false, "data-dist-info-metadata": false, "requires-python": nil, "provenance": nil,
	}
	if !f.NoHash {
		object["hashes"] = map[string]string{"sha256": f.listed()}
	}
	if f.Metadata != nil {
		var companion any = map[string]string{"sha256": Sum(f.Metadata)}
		if f.NoHash {
			companion = true
		}
		object["core-metadata"], object["data-dist-info-metadata"] = companion, companion
	}
	if !f.Uploaded.IsZero() {
		object["upload-time"] = f.Uploaded.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	if f.RequiresPython != "" {
		object["requires-python"] = f.RequiresPython
	}
	if f.Provenance != "" {
		object["provenance"] = f.Provenance
	}
	if f.Yanked {
		object["yanked"] = true
		if f.YankReason != "" {
			object["yanked"] = f.YankReason
		}
	}
	return object
}

func (r *Registry) htmlPage(p *Project) []byte {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html>\n  <head>\n    <meta name=\"pypi:repository-version\" content=\"1.4\">\n")
	if p.Status != "" {
		fmt.Fprintf(&b, "    <meta name=\"pypi:project-status\" content=\"%s\">\n", html.EscapeString(p.Status))
		fmt.Fprintf(&b, "    <meta name=\"pypi:project-status-reason\" content=\"%s\">\n", html.EscapeString(p.Reason))
	}
	fmt.Fprintf(&b, "    <title>Links for %s</title>\n  </head>\n  <body>\n    <h1>Links for %s</h1>\n", p.Name, p.Name)
	for _, f := range p.Files {
		b.WriteString(`<a href="` + html.EscapeString(r.link(f)))
		if !f.NoHash {
			b.WriteString("#sha256=" + f.listed())
		}
		b.WriteString(`"`)
		if f.RequiresPython != "" {
			fmt.Fprintf(&b, ` data-requires-python="%s"`, html.EscapeString(f.RequiresPython))
		}
		if f.Metadata != nil {
			value := "true"
			if !f.NoHash {
				value = "sha256=" + Sum(f.Metadata)
			}
			fmt.Fprintf(&b, ` data-dist-info-metadata="%s" data-core-metadata="%s"`, value, value)
		}
		if f.Provenance != "" {
			fmt.Fprintf(&b, ` data-provenance="%s"`, html.EscapeString(f.Provenance))
		}
		if f.Yanked {
			fmt.Fprintf(&b, ` data-yanked="%s"`, html.EscapeString(f.YankReason))
		}
		fmt.Fprintf(&b, ">%s</a><br />\n", f.Name)
	}
	b.WriteString("</body>\n</html>\n")
	if p.Serial > 0 {
		fmt.Fprintf(&b, "<!--SERIAL %d-->", p.Serial)
	}
	return []byte(b.String())
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return body
}

// Old is a time that every rule about age takes for old.
func Old() time.Time { return time.Date(2015, 3, 1, 10, 0, 0, 0, time.UTC) }
