// Package fakenpm is an npm registry for tests: it serves what it was given, records every request,
// and lets a test answer instead of it.
package fakenpm

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Registry is an http.Handler. It is safe for concurrent use.
type Registry struct {
	// URL is the address that its documents name for files, without a trailing slash.
	URL string

	mu       sync.Mutex // guards all below
	packages map[string]map[string]version
	raw      map[string][]byte
	answer   func(http.ResponseWriter, *http.Request) bool
	seen     []Seen
}

type version struct {
	published time.Time
	fields    map[string]any
}

// Seen is one request as it arrived.
type Seen struct {
	Method, Path string // Path is escaped
	Header       http.Header
	At           time.Time
}

// New returns an empty registry.
func New(url string) *Registry {
	return &Registry{URL: url, packages: map[string]map[string]version{}, raw: map[string][]byte{}}
}

// Publish adds a version. A zero time leaves the version without a publish time. Fields go into the
// version's object.
func (f *Registry) Publish(name, v string, published time.Time, fields map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.packages[name] == nil {
		f.packages[name] = map[string]version{}
	}
	f.packages[name][v] = version{published, fields}
}

// SetDocument serves these bytes as a package's document, whatever they are.
func (f *Registry) SetDocument(name string, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.raw[name] = body
}

// Answer lets a function answer first; when it returns false the registry answers as usual. nil
// takes it away.
func (f *Registry) Answer(fn func(http.ResponseWriter, *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = fn
}

// Always answers every request with a status and header fields.
func (f *Registry) Always(status int, header ...string) {
	f.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "upstream says %d", status)
		return true
	})
}

// Seen returns every request so far, in order.
func (f *Registry) Seen() []Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// Count is the number of requests so far.
func (f *Registry) Count() int { return len(f.Seen()) }

// File is the content of a version's file.
func File(name, v string) []byte { return []byte(strings.Repeat("tarball of "+name+"@"+v+"\n", 4000)) }

// Integrity is the SRI value of a file.
func Integrity(file []byte) string {
	sum := sha512.Sum512(file)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// ServeHTTP implements http.Handler.
func (f *Registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, Seen{r.Method, r.URL.EscapedPath(), r.Header.Clone(), time.Now()})
	answer := f.answer
	f.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	name, file, isFile := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/-/")
	if isFile {
		f.serveFile(w, name, file)
		return
	}
	body, ok := f.document(name)
	if !ok {
		http.Error(w, `{"error":"not found"}`, http.StatusNotFound)
		return
	}
	etag := fmt.Sprintf("%q", Integrity(body)[7:23])
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func (f *Registry) serveFile(w http.ResponseWriter, name, file string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	short := name[strings.LastIndexByte(name, '/')+1:]
	for v := range f.packages[name] {
		if file == short+"-"+v+".tgz" {
			body := File(name, v)
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = w.Write(body)
			return
		}
	}
	http.Error(w, `{"error":"no such file"}`, http.StatusNotFound)
}

func (f *Registry) document(name string) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if raw, ok := f.raw[name]; ok {
		return raw, true
	}
	versions, ok := f.packages[name]
	if !ok {
		return nil, false
	}
	doc := map[string]any{"name": name, "dist-tags": map[string]string{"latest": latest(versions)}}
	list, times := map[string]any{}, map[string]string{}
	for v, facts := range versions {
		short := name[strings.LastIndexByte(name, '/')+1:]
		object := map[string]any{
			"name": name, "version": v,
			"dist": map[string]any{
				"tarball":   f.URL + "/" + name + "/-/" + short + "-" + v + ".tgz",
				"integrity": Integrity(File(name, v)),
			},
		}
		maps.Copy(object, facts.fields)
		list[v] = object
		if !facts.published.IsZero() {
			times[v] = facts.published.UTC().Format(time.RFC3339Nano)
		}
	}
	doc["versions"], doc["time"] = list, times
	body, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return body, true
}

// latest is the version published last, by time and then by name.
func latest(versions map[string]version) string {
	best := ""
	for _, v := range slices.Sorted(maps.Keys(versions)) {
		if best == "" || !versions[v].published.Before(versions[best].published) {
			best = v
		}
	}
	return best
}
