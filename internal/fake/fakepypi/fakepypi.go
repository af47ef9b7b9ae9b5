package fakepypi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Registry is an index and its files host.
type Registry struct {
	// Index answers below "/simple/", Files below "/packages/".
	Index, Files *Host
	// FilesURL is the address that pages name for files, without a trailing slash. With
	// RelativeLinks it is not used: links are relative then, and the index host serves the files
	// too.
	FilesURL string
	// RelativeLinks makes pages link files relative to themselves, "../../packages/…".
	RelativeLinks bool
	// OnlyHTML and OnlyJSON make the index know one form, whatever a client asks for.
	OnlyHTML, OnlyJSON bool
	// GzipCompanions makes the files host send companions packed, to everybody.
	GzipCompanions bool

	mu       sync.Mutex // guards all below
	projects map[string]*Project
	files    map[string]File // by path
	raw      map[string]raw
}

// Project is what a page says beside its files.
type Project struct {
	Name string // normalised
	// Status and Reason are the project's status (PEP 792); empty leaves it out.
	Status, Reason string
	// Serial is the index's counter of changes; 0 leaves it out.
	Serial int64
	// Versions are listed in addition to those of the files.
	Versions []string
	Files    []File
}

// File is one published file.
type File struct {
	Name, Version string
	Content       []byte
	// Metadata is the companion's content; nil: there is none.
	Metadata []byte
	// Uploaded is the time of the upload; zero leaves it out.
	Uploaded time.Time
	// RequiresPython is the specifier, or empty.
	RequiresPython string
	// Yanked withdraws the file, with a reason that may be empty.
	Yanked     bool
	YankReason string
	// Provenance is the address of the file's attestations, or empty.
	Provenance string
	// NoHash leaves the digests of the file and of its companion out.
	NoHash bool
	// Listed replaces the digest that the page names, in hex: a lie.
	Listed string
}

type raw struct {
	contentType string
	body        []byte
}

// New returns an empty registry whose pages name filesURL for files.
func New(filesURL string) *Registry {
	r := &Registry{FilesURL: filesURL, projects: map[string]*Project{}, files: map[string]File{}, raw: map[string]raw{}}
	r.Index, r.Files = &Host{serve: r.serveIndex}, &Host{serve: r.serveFile}
	return r
}

// Publish adds files to a project, which must be normalised.
func (r *Registry) Publish(project string, files ...File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.projectLocked(project)
	for _, f := range files {
		p.Files = slices.DeleteFunc(p.Files, func(old File) bool { return old.Name == f.Name })
		p.Files = append(p.Files, f)
		r.files[Path(f)] = f
	}
}

// Change lets a function change what a project's page says.
func (r *Registry) Change(project string, change func(*Project)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.projectLocked(project))
}

func (r *Registry) projectLocked(name string) *Project {
	if r.projects[name] == nil {
		r.projects[name] = &Project{Name: name}
	}
	return r.projects[name]
}

// SetPage serves these bytes as a project's page, whatever they are.
func (r *Registry) SetPage(project, contentType string, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw[project] = raw{contentType, body}
}

// Path is the path of a file at the files host, made from its digest.
func Path(f File) string {
	sum := Sum(f.Content)
	return "/packages/" + sum[:2] + "/" + sum[2:4] + "/" + sum[4:] + "/" + f.Name
}

// Sum is the SHA-256 of some content, in hex.
func Sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (r *Registry) serveIndex(w http.ResponseWriter, req *http.Request) {
	if r.RelativeLinks && strings.HasPrefix(req.URL.Path, "/packages/") {
		r.serveFile(w, req)
		return
	}
	rest, ok := strings.CutPrefix(req.URL.Path, "/simple/")
	if !ok {
		http.NotFound(w, req)
		return
	}
	asJSON := r.OnlyJSON || !r.OnlyHTML && strings.Contains(req.Header.Get("Accept"), "application/vnd.pypi.simple.v1+json")
	w.Header().Set("Vary", "Accept")
	name, slash := strings.CutSuffix(rest, "/")
	body, contentType := r.page(name, asJSON)
	switch {
	case rest == "":
		body, contentType = r.list(asJSON)
	case !slash:
		http.Redirect(w, req, "/simple/"+rest+"/", http.StatusMovedPermanently)
		return
	case body == nil:
		http.NotFound(w, req)
		return
	}
	etag := `"` + Sum(body)[:24] + `"`
	w.Header().Set("ETag", etag)
	w.Header().Set("Content-Type", contentType)
	if req.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(body)
}

// serveFile serves files and companions, with HEAD and ranges.
func (r *Registry) serveFile(w http.ResponseWriter, req *http.Request) {
	where, companion := strings.CutSuffix(req.URL.Path, ".metadata")
	r.mu.Lock()
	f, ok := r.files[where]
	r.mu.Unlock()
	content := f.Content
	if companion {
		content = f.Metadata
	}
	if !ok || content == nil {
		http.NotFound(w, req)
		return
	}
	w.Header().Set("ETag", `"`+Sum(content)[:24]+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	if companion && r.GzipCompanions {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(content)
		_ = z.Close()
		content = packed.Bytes()
		w.Header().Set("Content-Encoding", "gzip")
	}
	http.ServeContent(w, req, path.Base(where), time.Time{}, bytes.NewReader(content))
}
