package gate

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/policy"
)

// world is a gate between a test and two registries.
type world struct {
	*toy.World
	t      testing.TB
	gate   *Gate
	memory *documents.Memory
}

// conventional is an ecosystem whose files lie where everybody expects them.
func conventional() Ecosystem {
	return Ecosystem{
		Name: toy.Name, ListingPath: toy.ListingPath, ArtifactPath: toy.ArtifactPath, KeyOfFile: toy.KeyOfFile,
		Scan: toy.Scan, Render: toy.Render, RenderVersion: toy.RenderVersion,
	}
}

// linked is an ecosystem in which only links count, with a list of all packages and a count of
// changes.
func linked() Ecosystem {
	return Ecosystem{
		Name: toy.Name, ListingPath: toy.ListingPath, KeyOfFile: toy.KeyOfFile, Scan: toy.Scan, Render: toy.Render,
		Serial: toy.Serial, ScanIndex: toy.ScanIndex,
	}
}

// option changes what a gate is told.
type option func(*toy.World, *Options)

// in builds a gate into a world. What it may be told differs from a mount of the conventional
// ecosystem with a public registry alone, whose versions are admitted when they are a day old.
func in(w *toy.World, options ...option) *world {
	w.T.Helper()
	o := Options{
		Ecosystem: conventional(), Public: w.PublicUpstream(toy.PublicHost), Memory: documents.NewMemory(64 << 20),
		TTL: time.Minute, MaxStale: time.Hour, Metrics: w.Metrics, Logger: w.Logger, Policy: rules(w.T, 24*time.Hour),
	}
	for _, set := range options {
		set(w, &o)
	}
	return &world{World: w, t: w.T, gate: New(o), memory: o.Memory}
}

// inWorld runs a test with a gate in virtual time.
func inWorld(t *testing.T, test func(*testing.T, *world), options ...option) {
	t.Helper()
	toy.Inside(t, func(t *testing.T, w *toy.World) {
		g := in(w, options...)
		test(t, g)
		g.memory.Close()
	})
}

func rules(t testing.TB, age time.Duration) *policy.Set {
	t.Helper()
	set, err := policy.New([]policy.Spec{{Name: "min-age", Type: policy.AllowIfOlderThan, Age: age}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// listing asks for a listing, and gives the versions in it.
func (w *world) listing(name string) (*Listing, []string, error) {
	w.t.Helper()
	l, err := w.gate.Listing(w.t.Context(), ListingRequest{Name: name, Form: "full", Base: "http://gate.test"})
	if err != nil {
		return nil, nil, err
	}
	versions, err := toy.Rendered(l.Body(documents.Identity))
	if err != nil {
		w.t.Fatal(err)
	}
	return l, versions, nil
}

// file asks for a file, and gives what came of it.
func (w *world) file(name, version string) (*Artifact, string, error) {
	w.t.Helper()
	return w.artifact(ArtifactRequest{Method: http.MethodGet, Name: name, File: toy.File(name, version)})
}

func (w *world) artifact(r ArtifactRequest) (*Artifact, string, error) {
	w.t.Helper()
	a, err := w.gate.Artifact(w.t.Context(), r)
	if err != nil {
		return nil, "", err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	return a, string(body), err
}
