package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// reports is what a store told its operator.
type reports struct {
	metrics *obs.Metrics
	mu      sync.Mutex
	log     bytes.Buffer
}

// Write implements io.Writer.
func (r *reports) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

func reported(t *testing.T, o FilesOptions) (*Files, *reports) {
	t.Helper()
	r := &reports{metrics: obs.NewMetrics()}
	o.Report = r.metrics.Store("artifacts", slog.New(slog.NewTextHandler(r, nil)))
	f := OpenFiles(o)
	t.Cleanup(func() { idle(t, f); _ = f.Close() })
	return f, r
}

// counts gives the warnings of a failure, the gauge, and how much was damaged.
func (r *reports) counts(t *testing.T) (warnings, failing, damaged int) {
	t.Helper()
	families, err := r.metrics.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "ecluse_store_failing":
				failing += int(m.GetGauge().GetValue())
			case "ecluse_store_damaged_total":
				damaged += int(m.GetCounter().GetValue())
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.log.String()
	if n := strings.Count(text, "discarding damaged data"); n != damaged {
		t.Errorf("%d damaged by the metric, %d by the log", damaged, n)
	}
	return strings.Count(text, "a store on disk fails") + strings.Count(text, "out of file descriptors"), failing, damaged
}

// says checks what counts gives.
func (r *reports) says(t *testing.T, warnings, failing, damaged int) {
	t.Helper()
	w, f, d := r.counts(t)
	if w != warnings || f != failing || d != damaged {
		t.Errorf("%d warnings, gauge %d, %d damaged; want %d, %d, %d; log:\n%s", w, f, d, warnings, failing, damaged, r.log.String())
	}
}

// fetched reads a file to its end.
func fetched(t *testing.T, f *Files, name string, open func(context.Context) (*Body, error)) ([]byte, error) {
	t.Helper()
	r, _, err := f.Fetch(t.Context(), name, open)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// keep fetches a file and waits until it is kept.
func keep(t *testing.T, f *Files, content []byte) {
	t.Helper()
	var opens atomic.Int32
	if got, err := fetched(t, f, nameOf(content), from(content, nil, &opens, nil)); err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	idle(t, f)
	if !f.Has(nameOf(content)) {
		t.Fatal("it is not kept")
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// damages are what may happen to a kept file behind our back. Those of its size are seen in any
// case; the others only by its content.
var damages = map[string]func(path string, content []byte) error{
	"flip":      func(path string, c []byte) error { c[len(c)/3] ^= 1; return os.WriteFile(path, c, 0o600) },
	"last byte": func(path string, c []byte) error { c[len(c)-1] ^= 1; return os.WriteFile(path, c, 0o600) },
	"zero":      func(path string, c []byte) error { return os.WriteFile(path, make([]byte, len(c)), 0o600) },
	"exchange":  func(path string, c []byte) error { return replace(path, bytes.Repeat([]byte("x"), len(c))) },
	"cut":       func(path string, c []byte) error { return os.Truncate(path, int64(len(c)/2)) },
	"doubled":   func(path string, c []byte) error { return os.WriteFile(path, append(c, c...), 0o600) },
	"empty":     func(path string, _ []byte) error { return os.Truncate(path, 0) },
	"a folder": func(path string, _ []byte) error {
		return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
	},
	"a link": func(path string, c []byte) error {
		return errors.Join(replace(path+"2", c), os.Remove(path), os.Symlink(path+"2", path))
	},
	"old times": func(path string, c []byte) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		c[0] ^= 1
		return errors.Join(os.WriteFile(path, c, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()))
	},
	"removed":        func(path string, _ []byte) error { return os.Remove(path) },
	"folder removed": func(path string, _ []byte) error { return os.RemoveAll(filepath.Dir(path)) },
	"folder replaced": func(path string, _ []byte) error {
		dir := filepath.Dir(path)
		return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700))
	},
}

func replace(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// rw-001, rw-010: whatever happens to a kept file, in the same process or before a start, nobody
// gets a wrong one; who asks gets the right one in the same request if it is not large, and the
// next one in any case, and it is kept again. What was damaged is counted and logged, once.
func TestDamagedFileIsFetchedAnew(t *testing.T) {
	for name, damage := range damages {
		for _, size := range []int{100, 100 << 10, proveFirst + 100<<10} {
			for _, started := range []bool{false, true} {
				if size > proveFirst && !slices.Contains([]string{"flip", "last byte", "cut", "removed"}, name) || started && name == "a folder" {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d/started=%t", name, size, started), func(t *testing.T) {
					dir, content := filepath.Join(t.TempDir(), "kept"), random(size)
					f, report := reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Proof: proofOf})
					keep(t, f, content)
					if started {
						f.Close()
					}
					if err := damage(filepath.Join(dir, nameOf(content)), bytes.Clone(content)); err != nil {
						t.Fatal(err)
					}
					if started {
						f, report = reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Proof: proofOf})
						f.stopScrub() // it would be quicker now and then
					}
					healed(t, f, content, size > proveFirst)
					if gone := name == "removed" || strings.HasPrefix(name, "folder"); gone {
						report.says(t, 0, 0, 0)
					} else if !started || name != "a link" {
						// a link is nothing that a start takes over
						report.says(t, 0, 0, 1)
					}
				})
			}
		}
	}
}

// healed asks for a file until it is there, kept and proved. One answer may break off if large.
func healed(t *testing.T, f *Files, content []byte, large bool) {
	t.Helper()
	var opens atomic.Int32
	for i := range 4 {
		r, _, err := f.Fetch(t.Context(), nameOf(content), from(content, nil, &opens, nil))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		r.Close()
		idle(t, f)
		switch {
		case err == nil && !bytes.Equal(got, content):
			t.Fatalf("%d wrong bytes for whole", len(got))
		case err != nil && (i > 0 || !large):
			t.Fatalf("answer %d: %v", i, err)
		}
		if _, kept := r.(*File); kept != (i > 1) && i != 1 {
			t.Errorf("answer %d is a %T", i, r)
		}
	}
	if n := opens.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
}

// A kept file of the last process is proved once, for all who wait, and then belongs to the kernel.
func TestProvedOnceAfterAStart(t *testing.T) {
	for _, size := range []int{100 << 10, proveFirst + 100<<10} {
		dir, content := t.TempDir(), random(size)
		f, _ := reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Proof: proofOf})
		keep(t, f, content)
		f.Close()
		var reads atomic.Int64
		f, report := reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Proof: proofOf, Around: func(s durable.Step, _ string, call func() error) error {
			if s == durable.StepRead {
				reads.Add(1)
			}
			return call()
		}})
		f.stopScrub()
		reads.Store(0)
		// as if the scrub had not been there
		f.known.Put(nameOf(content), &kept{size: int64(size)}, int64(size))
		if err := replace(filepath.Join(dir, nameOf(content)), content); err != nil {
			t.Fatal(err)
		}
		nothing := func(context.Context) (*Body, error) { return nil, errors.New("fetched") }
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if got, err := fetched(t, f, nameOf(content), nothing); err != nil || !bytes.Equal(got, content) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
		wg.Wait()
		idle(t, f)
		if n, once := reads.Load(), int64(size/transferPiece+1); n < once || n > 20*once/2 {
			t.Errorf("%d reads, one proof is %d", n, once)
		}
		r, _, err := f.Fetch(t.Context(), nameOf(content), nothing)
		if _, ok := r.(*File); !ok || err != nil {
			t.Errorf("afterwards a %T, %v", r, err)
		}
		r.Close()
		if n, err := f.Stat(t.Context(), nameOf(content)); n != int64(size) || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		report.says(t, 0, 0, 0)
	}
}

// A disk whose reads fail, at once or on the way, costs no answer: the rest comes from the
// upstream, and the whole is proved.
func TestReadErrors(t *testing.T) {
	for _, size := range []int{100 << 10, proveFirst + 100<<10} {
		for _, after := range []int{0, 1, size / transferPiece} {
			dir, content := t.TempDir(), random(size)
			f, _ := reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Proof: proofOf})
			keep(t, f, content)
			f.Close()
			armed, reads := false, 0
			f, report := reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Proof: proofOf, Around: func(s durable.Step, _ string, call func() error) error {
				if s == durable.StepRead && armed {
					if reads++; reads > after {
						return syscall.EIO
					}
				}
				return call()
			}})
			f.stopScrub()
			f.known.Put(nameOf(content), &kept{size: int64(size)}, int64(size))
			if err := replace(filepath.Join(dir, nameOf(content)), content); err != nil {
				t.Fatal(err)
			}
			armed = true
			var opens atomic.Int32
			if got, err := fetched(t, f, nameOf(content), from(content, nil, &opens, nil)); err != nil || !bytes.Equal(got, content) || opens.Load() != 1 {
				t.Errorf("%d of %d after %d reads: %d bytes, %v", size, len(got), after, len(got), err)
			}
			idle(t, f)
			report.says(t, 0, 0, 1)
			armed = false
			keep(t, f, content)
		}
	}
}

// The rest from the upstream does not make a damaged beginning right.
func TestReadErrorInADamagedFile(t *testing.T) {
	dir, content := t.TempDir(), random(proveFirst+100<<10)
	f, _ := reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Proof: proofOf})
	keep(t, f, content)
	f.Close()
	wrong := bytes.Clone(content)
	wrong[100] ^= 1
	reads := 0
	f, _ = reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Proof: proofOf, Around: func(s durable.Step, _ string, call func() error) error {
		if s == durable.StepRead {
			if reads++; reads > 10 {
				return syscall.EIO
			}
		}
		return call()
	}})
	f.stopScrub()
	f.known.Put(nameOf(content), &kept{size: int64(len(content))}, int64(len(content)))
	if err := replace(filepath.Join(dir, nameOf(content)), wrong); err != nil {
		t.Fatal(err)
	}
	reads = 0
	var opens atomic.Int32
	got, err := fetched(t, f, nameOf(content), from(content, nil, &opens, nil))
	if !errors.Is(err, ErrDamaged) || len(got) >= len(content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	idle(t, f)
	keep(t, f, content)
}
