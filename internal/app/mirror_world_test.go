package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/mirror"
)

// house is a scripted registry of the house: mirror and place of publication. It takes npm's
// publish document.
type house struct {
	mu       sync.Mutex
	versions map[string]map[string]json.RawMessage // by package
	files    map[string][]byte
	tags     map[string]map[string]string
	puts     []string // every write that arrived, "METHOD path"
	reads    int
	bodies   [][]byte
	auth     []string
	answer   func(w http.ResponseWriter, r *http.Request) bool // answers first when it returns true
	// commitAndReset takes writes and breaks the connection instead of answering.
	commitAndReset bool
}

func newHouse() *house {
	return &house{versions: map[string]map[string]json.RawMessage{}, files: map[string][]byte{}, tags: map[string]map[string]string{}}
}

func (h *house) Answer(fn func(http.ResponseWriter, *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = fn
}

func (h *house) writes() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.puts)
}

// stored counts the versions that the registry holds.
func (h *house) stored() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range h.versions {
		n += len(v)
	}
	return n
}

// ServeHTTP implements http.Handler.
func (h *house) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	if r.Method == http.MethodGet {
		h.reads++
	} else {
		h.puts = append(h.puts, r.Method+" "+r.URL.EscapedPath())
		h.auth, h.bodies = append(h.auth, r.Header.Get("Authorization")), append(h.bodies, body)
	}
	answer := h.answer
	h.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/")
	if r.Method == http.MethodGet {
		if h.versions[name] == nil {
			http.Error(w, `{"error":"not found"}`, http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "versions": h.versions[name], "dist-tags": h.tags[name]})
		return
	}
	var doc struct {
		Name        string
		Versions    map[string]json.RawMessage
		Tags        map[string]string                `json:"dist-tags"`
		Attachments map[string]struct{ Data []byte } `json:"_attachments"`
	}
	if json.Unmarshal(body, &doc) != nil || doc.Name != name || len(doc.Versions) != 1 || len(doc.Attachments) != 1 {
		http.Error(w, `{"error":"bad document"}`, http.StatusBadRequest)
		return
	}
	for v, manifest := range doc.Versions {
		if _, ok := h.versions[name][v]; ok {
			http.Error(w, `{"error":"this package is already present"}`, http.StatusConflict)
			return
		}
		if h.versions[name] == nil {
			h.versions[name], h.tags[name] = map[string]json.RawMessage{}, map[string]string{}
		}
		h.versions[name][v] = manifest
		maps.Copy(h.tags[name], doc.Tags)
		for _, a := range doc.Attachments {
			h.files[name+"@"+v] = a.Data
		}
	}
	if h.commitAndReset {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
}

const houseHost = "house.test"

// withHouse is a configuration with a mirror and a place of publication, to be given to inWorld.
const withHouse = ", firstParty: ['@acme/*'], mirror: {url: 'http://" + houseHost + "/'}, publish: {url: 'http://" + houseHost + "/'}\n"

// inHouse is inWorld with a house.
func inHouse(t *testing.T, yaml string, test func(*world, *house)) {
	t.Helper()
	inWorld(t, withHouse+yaml, func(w *world) {
		h := newHouse()
		w.serve(houseHost+":80", h)
		test(w, h)
	})
}

// worker runs jobs without River, so that virtual time is all that passes.
func (w *world) worker() *mirror.Worker {
	return mirror.NewWorker(mirror.WorkerOptions{
		Lanes: w.app.Lanes(), SpoolDir: w.t.TempDir(), MaxBytes: 1 << 20, Metrics: w.app.Metrics(), Logger: w.app.Logger(),
	})
}

func leftPad(v string) mirror.Job {
	return mirror.Job{Ecosystem: "npm", Package: "left-pad", Version: v, File: "left-pad-" + v + ".tgz"}
}

// queue is a mirror with its SQLite file.
func (w *world) queue(work bool) *mirror.Service {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	s, err := mirror.Begin(w.t.Context(), mirror.ServiceOptions{
		Lanes: w.app.Lanes(), DataDir: dir, Work: work, Metrics: w.app.Metrics(), Logger: w.app.Logger(), VirtualTime: true,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.app.SetMirror(s.Offer, s.Status)
	return s
}

func (w *world) queueStatus(s *mirror.Service) mirror.Status {
	w.t.Helper()
	st, err := s.Status(context.WithoutCancel(w.t.Context()))
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

// publishMany puts n versions into the public registry.
func (w *world) publishMany(n int) {
	for i := range n {
		w.public.Publish("left-pad", fmt.Sprintf("1.0.%d", i), longAgo, nil)
	}
}

func cooling429(w *world, seconds string) {
	w.public.Always(http.StatusTooManyRequests, "Retry-After", seconds)
}

func version(i int) string { return fmt.Sprintf("1.0.%d", i) }
