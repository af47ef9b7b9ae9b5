package service

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// files serves the files of a knowledge source.
func (v *Service) files(c *call) Answer {
	if problem := v.checkFileSource(c); problem != nil {
		return *problem
	}
	switch {
	case c.r.Method == http.MethodPost && !c.route.hasSubKey:
		return v.uploadFile(c)
	case c.r.Method == http.MethodGet && !c.route.hasSubKey:
		return v.listFiles(c)
	case c.r.Method == http.MethodPut && c.route.hasSubKey:
		return v.replaceFile(c)
	case c.r.Method == http.MethodDelete && c.route.hasSubKey:
		return v.deleteFile(c)
	}
	return methodNotAllowed()
}

func (v *Service) checkFileSource(c *call) *Answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	source := v.store.sources[c.route.key]
	if source == nil {
		a := notFound("knowledge source", c.route.key)
		return &a
	}
	if source.kind() != "file" {
		a := Refuse(http.StatusBadRequest, "OperationNotAllowed", "only a knowledge source of the file kind has files")
		return &a
	}
	return nil
}

func fileLimit(limit int) Answer {
	return Refuse(http.StatusConflict, "FileLimitReached", fmt.Sprintf("the knowledge source has %d files, which is its limit", limit))
}

// uploadFile reads the whole request first and looks at the state after it, as a slow upload is
// overtaken by a fast one.
func (v *Service) uploadFile(c *call) Answer {
	v.mu.Lock()
	full := len(v.store.sources[c.route.key].files) >= v.maxFiles()
	v.mu.Unlock()
	if full {
		return fileLimit(v.maxFiles())
	}
	got, problem := v.readUpload(c)
	if problem != nil {
		return *problem
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	source := v.store.sources[c.route.key]
	if source == nil {
		return notFound("knowledge source", c.route.key)
	}
	if len(source.files) >= v.maxFiles() {
		return fileLimit(v.maxFiles())
	}
	if unfit := got.unfit(source); unfit != nil {
		return *unfit
	}
	source.nextFile++
	fresh := &file{seq: source.nextFile, ID: uuid.NewString(), Created: v.now()}
	v.fill(fresh, got, source)
	source.files = append(source.files, fresh)
	return reply(http.StatusCreated, fresh)
}

func (v *Service) fill(f *file, got *upload, source *resource) {
	f.Name, f.Metadata, f.Bytes, f.digest = got.name, got.metadata, got.bytes, got.digest
	f.Prefix = f.Name[:strings.LastIndexByte(f.Name, '/')+1]
	f.Parsing, f.Extraction, f.Updated = got.parsing, source.extraction(), v.now()
}

// extraction is the content extraction mode of a file source.
func (r *resource) extraction() string {
	ingestion, _ := r.parameters()["ingestionParameters"].(map[string]any)
	if mode, _ := ingestion["contentExtractionMode"].(string); mode != "" {
		return mode
	}
	return "minimal"
}

func (v *Service) replaceFile(c *call) Answer {
	got, problem := v.readUpload(c)
	if problem != nil {
		return *problem
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	source := v.store.sources[c.route.key]
	i := fileIndex(source, c.route.subKey)
	if i < 0 {
		return notFound("file", c.route.subKey)
	}
	if unfit := got.unfit(source); unfit != nil {
		return *unfit
	}
	v.fill(source.files[i], got, source)
	return reply(http.StatusOK, source.files[i])
}

func (v *Service) deleteFile(c *call) Answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	source := v.store.sources[c.route.key]
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
func (v *Service) listFiles(c *call) Answer {
	want, problem := readPage(c.r.URL.Query(), "prefix", "search")
	if problem != nil {
		return *problem
	}
	search := c.r.URL.Query().Get("search")
	after, _ := strconv.Atoi(want.after)
	if prefix, kept, found := strings.Cut(want.filter, "\x00"); found {
		want.filter, search = prefix, kept
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	value := []any{}
	last := 0
	source := v.store.sources[c.route.key]
	if source == nil {
		return notFound("knowledge source", c.route.key)
	}
	for _, f := range source.files {
		if f.seq <= after || !strings.HasPrefix(f.Name, want.filter) || !strings.Contains(f.Name, search) {
			continue
		}
		if len(value) == want.size {
			want.filter += "\x00" + search
			return v.listed(c, value, want.next(strconv.Itoa(last)))
		}
		value, last = append(value, *f), f.seq
	}
	return v.listed(c, value, "")
}
