package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// store is the state of the service; guarded by Service.mu.
type store struct {
	sources, bases map[string]*resource
	children       map[string]map[string]*child // by collection, then name
}

// resource is a knowledge source or base: the definition as sent, without what the service adds.
type resource struct {
	name, etag string
	definition map[string]any
	created    time.Time
	files      []*file // sources of the file kind, in order of arrival
	nextFile   int
}

// child is an index, indexer, skillset or data source that a knowledge source generated.
type child struct {
	name, etag, source string
}

type file struct {
	seq        int
	ID         string            `json:"fileId"`
	Name       string            `json:"fileName"`
	Prefix     string            `json:"prefix"`
	Metadata   map[string]string `json:"metadata"`
	Parsing    string            `json:"parsingMode"`
	Extraction string            `json:"extractionMode"`
	Bytes      int64             `json:"fileSizeBytes"`
	Created    time.Time         `json:"createdAt"`
	Updated    time.Time         `json:"lastUpdatedAt"`
	Error      *string           `json:"errorMessage"`
	digest     string
}

func newStore() store {
	s := store{sources: map[string]*resource{}, bases: map[string]*resource{}, children: map[string]map[string]*child{}}
	for _, kind := range []string{"indexes", "indexers", "skillsets", "datasources"} {
		s.children[kind] = map[string]*child{}
	}
	return s
}

func (r *resource) kind() string { s, _ := r.definition["kind"].(string); return s }

// parameters gives the kind's own part of a source definition, such as fileParameters.
func (r *resource) parameters() map[string]any {
	m, _ := r.definition[r.kind()+"Parameters"].(map[string]any)
	return m
}

// generated names the children of a source: collection to name.
func (r *resource) generated() map[string]string {
	switch r.kind() {
	case "file":
		return map[string]string{"indexes": r.name + "-index"}
	case "azureBlob", "indexedOneLake", "indexedSharePoint", "indexedSql":
		return map[string]string{
			"indexes": r.name + "-index", "indexers": r.name + "-indexer",
			"skillsets": r.name + "-skillset", "datasources": r.name + "-datasource",
		}
	}
	return nil
}

// createdResources is the map that the service shows in a definition.
func (r *resource) createdResources() map[string]any {
	shown := map[string]any{}
	singular := map[string]string{"indexes": "index", "indexers": "indexer", "skillsets": "skillset", "datasources": "datasource"}
	for collection, name := range r.generated() {
		shown[singular[collection]] = name
	}
	return shown
}

func (v *Service) newETag() string {
	v.tags++
	return fmt.Sprintf("\"0x8DEC1A5E%07X\"", v.tags)
}

// users names the knowledge bases that refer to a source.
func (s *store) users(source string) []string {
	var names []string
	for name, base := range s.bases {
		if slices.Contains(referred(base.definition), source) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// referred lists the sources that a knowledge base names.
func referred(base map[string]any) []string {
	var names []string
	list, _ := base["knowledgeSources"].([]any)
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		name, _ := m["name"].(string)
		names = append(names, name)
	}
	return names
}

// State is what GET /emulator/state shows.
type State struct {
	Tier           string        `json:"tier"`
	Sources        []SourceState `json:"sources"`
	KnowledgeBases []BaseState   `json:"knowledge_bases"`
}

// SourceState is one knowledge source with its files.
type SourceState struct {
	Name       string              `json:"name"`
	Kind       string              `json:"kind"`
	ETag       string              `json:"etag"`
	Definition map[string]any      `json:"definition"` // secrets redacted
	Children   map[string][]string `json:"children"`   // collection to names
	Files      []FileState         `json:"files"`
}

// FileState is one stored file; the content itself is never kept.
type FileState struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Bytes    int64             `json:"bytes"`
	SHA256   string            `json:"sha256"`
	Metadata map[string]string `json:"metadata"`
}

// BaseState is one knowledge base.
type BaseState struct {
	Name    string   `json:"name"`
	ETag    string   `json:"etag"`
	Sources []string `json:"sources"`
}

// State gives a copy of what the service holds, sorted by name; files in order of arrival.
func (v *Service) State() State {
	v.mu.Lock()
	defer v.mu.Unlock()
	state := State{Tier: strings.ToLower(v.options.Tier), Sources: []SourceState{}, KnowledgeBases: []BaseState{}}
	for _, name := range slices.Sorted(maps.Keys(v.store.sources)) {
		source := v.store.sources[name]
		shown, _ := redact(source.definition).(map[string]any)
		one := SourceState{
			Name: name, Kind: source.kind(), ETag: source.etag, Definition: shown,
			Children: map[string][]string{}, Files: []FileState{},
		}
		for collection, generated := range source.generated() {
			one.Children[collection] = []string{generated}
		}
		for _, f := range source.files {
			one.Files = append(one.Files, FileState{ID: f.ID, Name: f.Name, Bytes: f.Bytes, SHA256: f.digest, Metadata: maps.Clone(f.Metadata)})
		}
		state.Sources = append(state.Sources, one)
	}
	for _, name := range slices.Sorted(maps.Keys(v.store.bases)) {
		base := v.store.bases[name]
		state.KnowledgeBases = append(state.KnowledgeBases, BaseState{Name: name, ETag: base.etag, Sources: referred(base.definition)})
	}
	return state
}
