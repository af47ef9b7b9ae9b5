package cache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// A disk that hangs costs a transfer a moment, and the next ones nothing.
func TestSlowDisk(t *testing.T) {
	for _, step := range []durable.Step{durable.StepCreate, durable.StepWrite, durable.StepSync} {
		t.Run(string(step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang := make(chan struct{})
				var slow atomic.Bool
				f, report := reported(t, FilesOptions{Path: t.TempDir(), MaxBytes: 1 << 30, Proof: proofOf, Around: func(s durable.Step, _ string, call func() error) error {
					if s == step && slow.Load() {
						<-hang
					}
					return call()
				}})
				f.stopScrub()
				slow.Store(true)
				var opens atomic.Int32
				content := random(600 << 10)
				for i, most := range []time.Duration{patience, 0, 0} {
					start := time.Now()
					if got, err := fetched(t, f, nameOf(content), from(content, nil, &opens, nil)); err != nil || !bytes.Equal(got, content) {
						t.Errorf("%d bytes, %v", len(got), err)
					}
					if d := time.Since(start); d > most {
						t.Errorf("answer %d took %v", i, d)
					}
					if step == durable.StepSync && i == 0 {
						time.Sleep(patience)
					}
					synctest.Wait()
				}
				report.says(t, 1, 1, 0)
				slow.Store(false)
				close(hang)
				time.Sleep(restFor)
				synctest.Wait()
				keep(t, f, content)
				keep(t, f, random(10))
				report.says(t, 1, 0, 0)
			})
		})
	}
}

// A disk that hangs while kept files are read, looked for or removed costs the first who asks a
// moment and the next ones nothing; the files stay, and are used again by themselves.
func TestSlowReads(t *testing.T) {
	for _, step := range []durable.Step{durable.StepOpen, durable.StepRead, durable.StepRemove} {
		for _, size := range []int{100 << 10, proveFirst + 100<<10} {
			for _, started := range []bool{false, true} {
				for _, after := range []int64{0, 1} {
					if after > 0 && step != durable.StepRead {
						continue
					}
					t.Run(fmt.Sprintf("%s/%d/started=%t/after=%d", step, size, started, after), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { slowRead(t, step, size, started, after) })
					})
				}
			}
		}
	}
}

func slowRead(t *testing.T, step durable.Step, size int, started bool, after int64) {
	t.Helper()
	hang := make(chan struct{})
	var slow atomic.Bool
	var left atomic.Int64
	o := FilesOptions{Path: t.TempDir(), MaxBytes: 1 << 30, Proof: proofOf, Around: func(s durable.Step, _ string, call func() error) error {
		if s == step && slow.Load() && left.Add(-1) < 0 {
			<-hang
		}
		return call()
	}}
	content := random(size)
	f, report := reported(t, o)
	f.stopScrub()
	keep(t, f, content)
	if started {
		f.Close()
		f, report = reported(t, o)
		f.stopScrub()
	}
	left.Store(after)
	slow.Store(true)
	if step == durable.StepRemove { // what is exchanged is dropped
		if err := os.WriteFile(filepath.Join(o.Path, nameOf(content)), random(size + 1)[:size], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var opens atomic.Int32
	for i, most := range []time.Duration{patience, 0, 0} {
		start := time.Now()
		r, n, err := f.Fetch(t.Context(), nameOf(content), from(content, nil, &opens, nil))
		if err != nil || n != int64(size) {
			t.Fatal(n, err)
		}
		got, err := io.ReadAll(r)
		r.Close()
		large := step == durable.StepRemove && size > proveFirst && i == 0 // it breaks off
		if (err != nil || !bytes.Equal(got, content)) && !large {
			t.Errorf("answer %d: %d bytes, %v", i, len(got), err)
		}
		if d := time.Since(start); d > most {
			t.Errorf("answer %d took %v", i, d)
		}
		if _, err := f.Stat(t.Context(), nameOf(content)); err == nil && opens.Load() > 0 {
			t.Error("the size of what cannot be read")
		}
		if d := time.Since(start); d > most {
			t.Errorf("HEAD %d took %v", i, d)
		}
	}
	if step == durable.StepRead && !started { // the kernel reads it
		report.says(t, 0, 0, 0)
	} else {
		warnings, failing, _ := report.counts(t)
		if warnings != 1 || failing != 1 {
			t.Errorf("%d warnings, the gauge is %d", warnings, failing)
		}
	}
	slow.Store(false)
	close(hang)
	time.Sleep(restFor)
	synctest.Wait()
	opens.Store(0)
	if got, err := fetched(t, f, nameOf(content), from(content, nil, &opens, nil)); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if step != durable.StepRemove && opens.Load() != 0 {
		t.Error("it was forgotten")
	}
	synctest.Wait()
	_, failing, _ := report.counts(t)
	if failing != 0 {
		t.Error("the gauge stays")
	}
}

// A store that is closed, opened or written while the disk hangs is not waited for for ever.
func TestSlowFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var at atomic.Value
		at.Store(durable.StepMkdir)
		f, report := reported(t, FilesOptions{Path: filepath.Join(t.TempDir(), "x"), MaxBytes: 1 << 30, Around: func(s durable.Step, _ string, call func() error) error {
			if s == at.Load() {
				<-hang
			}
			return call()
		}})
		report.says(t, 1, 1, 0)
		put := func(name string) error {
			return f.Put(name, func(w io.Writer) error { _, err := w.Write(random(3 << 20)); return err })
		}
		at.Store(durable.Step(""))
		close(hang)
		time.Sleep(restFor)
		synctest.Wait()
		if err := put("a"); err != nil {
			t.Fatal(err)
		}
		hang = make(chan struct{})
		for _, step := range []durable.Step{durable.StepCreate, durable.StepWrite, durable.StepRename, durable.StepTouch} {
			at.Store(step)
			start := time.Now()
			if step == durable.StepTouch {
				f.Touch("a", start)
			} else if err := put("b"); !errors.Is(err, ErrSlow) {
				t.Error(err)
			}
			if err := put("b"); !errors.Is(err, ErrSlow) {
				t.Error(err)
			}
			f.Touch("a", start)
			if _, _, err := f.Open("a"); !errors.Is(err, ErrSlow) {
				t.Error(err)
			}
			if d := time.Since(start); d != patience {
				t.Errorf("%s: it took %v", step, d)
			}
			at.Store(durable.Step(""))
			close(hang)
			time.Sleep(restFor)
			synctest.Wait()
			hang = make(chan struct{})
		}
		file, _, err := f.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if got, err := io.ReadAll(f.Reader(file, "a")); err != nil || !bytes.Equal(got, random(3<<20)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if err := put("b"); err != nil {
			t.Error(err)
		}
		report.says(t, 1, 0, 0)
	})
}

// A disk that is slow and steady is used: what has its time is each piece, not the whole.
func TestSteadyDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 12 << 20
		dir := t.TempDir()
		var calls atomic.Int64
		f, report := reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Around: func(s durable.Step, _ string, call func() error) error {
			if s == durable.StepWrite || s == durable.StepRead {
				calls.Add(1)
			}
			return call()
		}})
		content := random(size)
		if err := f.Put("a", func(w io.Writer) error { _, err := w.Write(content); return err }); err != nil {
			t.Fatal(err)
		}
		if n := calls.Swap(0); n != size/diskPiece {
			t.Errorf("it was written in %d calls", n)
		}
		file, _, err := f.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		got := make([]byte, size)
		if _, err := io.ReadFull(f.Reader(file, "a"), got); err != nil || !bytes.Equal(got, content) {
			t.Error(err)
		}
		if n := calls.Load(); n != size/diskPiece {
			t.Errorf("it was read in %d calls", n)
		}
		report.says(t, 0, 0, 0)
	})
}

// A large file that is damaged, and that the disk is too slow to give to its end, is dropped: the
// rest from the upstream does not make it right.
func TestSlowAndDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var reads atomic.Int64
		reads.Store(1 << 40)
		o := FilesOptions{Path: t.TempDir(), MaxBytes: 1 << 30, Proof: proofOf, Around: func(s durable.Step, _ string, call func() error) error {
			if s == durable.StepRead && reads.Add(-1) < 0 {
				<-hang
			}
			return call()
		}}
		content := random(proveFirst + 100<<10)
		f, _ := reported(t, o)
		f.stopScrub()
		keep(t, f, content)
		wrong := bytes.Clone(content)
		wrong[100] ^= 1
		if err := os.WriteFile(filepath.Join(o.Path, nameOf(content)), wrong, 0o600); err != nil {
			t.Fatal(err)
		}
		reads.Store(10)
		var opens atomic.Int32
		if got, err := fetched(t, f, nameOf(content), from(content, nil, &opens, nil)); !errors.Is(err, ErrDamaged) || len(got) >= len(content) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if f.Has(nameOf(content)) {
			t.Error("it is still there")
		}
		close(hang)
		reads.Store(1 << 40)
		time.Sleep(restFor)
		synctest.Wait()
		keep(t, f, content)
	})
}
