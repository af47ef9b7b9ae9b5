package emulator

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// files serves the files of a knowledge source.
func (e *Emulator) files(c *call) answer {
	if problem := e.checkFileSource(c); problem != nil {
		return *problem
	}
	switch {
	case c.r.Method == http.MethodPost && !c.route.hasSubKey:
		return e.uploadFile(c)
	case c.r.Method == http.MethodGet && !c.route.hasSubKey:
		return e.listFiles(c)
	case c.r.Method == http.MethodPut && c.route.hasSubKey:
		return e.replaceFile(c)
	case c.r.Method == http.MethodDelete && c.route.hasSubKey:
		return e.deleteFile(c)
	}
	return methodNotAllowed()
}

func (e *Emulator) checkFileSource(c *call) *answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	source := e.store.sources[c.route.key]
	if source == nil {
		a := notFound("knowledge source", c.route.key)
		return &a
	}
	if source.kind() != "file" {
		a := refuse(http.StatusBadRequest, "OperationNotAllowed", "only a knowledge source of the file kind has files")
		return &a
	}
	return nil
}

func fileLimit(limit int) answer {
	return refuse(http.StatusConflict, "FileLimitReached", fmt.Sprintf("the knowledge source holds %d files, which is its limit", limit))
}

// uploadFile reads the whole request first and looks at the state after it, as a slow upload is overtaken by a fast one.
func (e *Emulator) uploadFile(c *call) answer {
	e.mu.Lock()
	full := len(e.store.sources[c.route.key].files) >= e.maxFiles()
	e.mu.Unlock()
	if full {
		return fileLimit(e.maxFiles())
	}
	got, problem := e.readUpload(c)
	if problem != nil {
		return *problem
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	source := e.store.sources[c.route.key]
	if source == nil {
		return notFound("knowledge source", c.route.key)
	}
	if len(source.files) >= e.maxFiles() {
		return fileLimit(e.maxFiles())
	}
	if unfit := got.unfit(source); unfit != nil {
		return *unfit
	}
	source.nextFile++
	fresh := &file{seq: source.nextFile, ID: newID(), Created: e.now()}
	e.fill(fresh, got, source)
	source.files = append(source.files, fresh)
	return reply(http.StatusCreated, fresh)
}

func (e *Emulator) fill(f *file, got *upload, source *resource) {
	f.Name, f.Metadata, f.Bytes, f.digest = got.name, got.metadata, got.bytes, got.digest
	f.Prefix = f.Name[:strings.LastIndexByte(f.Name, '/')+1]
	f.Parsing, f.Extraction, f.Updated = got.parsing, source.extraction(), e.now()
}

// extraction is the content extraction mode of a file source.
func (r *resource) extraction() string {
	ingestion, _ := r.parameters()["ingestionParameters"].(map[string]any)
	if mode, _ := ingestion["contentExtractionMode"].(string); mode != "" {
		return mode
	}
	return "minimal"
}

func (e *Emulator) replaceFile(c *call) answer {
	got, problem := e.readUpload(c)
	if problem != nil {
		return *problem
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	source := e.store.sources[c.route.key]
	i := fileIndex(source, c.route.subKey)
	if i < 0 {
		return notFound("file", c.route.subKey)
	}
	if unfit := got.unfit(source); unfit != nil {
		return *unfit
	}
	e.fill(source.files[i], got, source)
	return reply(http.StatusOK, source.files[i])
}

func (e *Emulator) deleteFile(c *call) answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	source := e.store.sources[c.route.key]
	i := fileIndex(source, c.route.subKey)
	if i < 0 {
		return notFound("file", c.route.subKey)
	}
	source.files = slices.Delete(source.files, i, i+1)
	return noContent()
}

func fileIndex(source *resource, id string) int {
	if source == nil {
		return -1
	}
	return slices.IndexFunc(source.files, func(f *file) bool { return f.ID == id })
}

// listFiles pages through the files in order of arrival: pageSize, prefix, search, $skiptoken.
func (e *Emulator) listFiles(c *call) answer {
	want, problem := readPage(c.r.URL.Query(), "prefix", "search")
	if problem != nil {
		return *problem
	}
	search := c.r.URL.Query().Get("search")
	after, _ := strconv.Atoi(want.after)
	if prefix, kept, found := strings.Cut(want.filter, "\x00"); found {
		want.filter, search = prefix, kept
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	value := []any{}
	last := 0
	source := e.store.sources[c.route.key]
	if source == nil {
		return notFound("knowledge source", c.route.key)
	}
	for _, f := range source.files {
		if f.seq <= after || !strings.HasPrefix(f.Name, want.filter) || !strings.Contains(f.Name, search) {
			continue
		}
		if len(value) == want.size {
			want.filter += "\x00" + search
			return e.listed(c, value, want.next(strconv.Itoa(last)))
		}
		value, last = append(value, *f), f.seq
	}
	return e.listed(c, value, "")
}
