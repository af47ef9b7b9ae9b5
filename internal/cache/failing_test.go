package cache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/durable/spool"
)

// Every call to the disk fails in each way that disks have, from the first piece on or later:
// readers get the whole file all the same, there is one warning and the gauge, and the store works
// again by itself.
func TestFailingDiskCostsNoTransfer(t *testing.T) {
	steps := []durable.Step{
		durable.StepMkdir, durable.StepCreate, durable.StepOpen, durable.StepWrite, durable.StepSync, durable.StepClose, durable.StepRename,
		durable.StepSyncDir, durable.StepCheckLink,
	}
	for _, fault := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EIO, syscall.EDQUOT, syscall.EMFILE, syscall.ENOENT, syscall.EACCES} {
		for _, step := range steps {
			for _, landed := range []bool{false, true} {
				for _, after := range []int{0, 1} {
					if !errors.Is(fault, syscall.EIO) && (landed || after > 0) || step == durable.StepMkdir && after > 0 {
						continue
					}
					t.Run(fmt.Sprintf("%v/%s/landed=%t/after=%d", fault, step, landed, after), func(t *testing.T) {
						var mu sync.Mutex
						left, armed := after, false
						dir := filepath.Join(t.TempDir(), "kept")
						f, report := reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Proof: proofOf, Around: func(s durable.Step, _ string, call func() error) error {
							mu.Lock()
							fails := armed && s == step
							if fails && left > 0 {
								left, fails = left-1, false
							}
							mu.Unlock()
							switch {
							case !fails:
								return call()
							case landed:
								_ = call()
							}
							return fault
						}})
						if step == durable.StepMkdir {
							os.RemoveAll(dir)
						}
						set := func(to bool) { mu.Lock(); armed = to; mu.Unlock() }
						set(true)
						content, other := random(150<<10), random(200<<10)
						var opens atomic.Int32
						for range 3 {
							for _, c := range [][]byte{content, other} {
								if got, err := fetched(t, f, nameOf(c), from(c, nil, &opens, nil)); err != nil || !bytes.Equal(got, c) {
									t.Errorf("%d of %d bytes, %v", len(got), len(c), err)
								}
								idle(t, f)
							}
						}
						if err := f.Put("put", func(w io.Writer) error { _, err := w.Write(content); return err }); err == nil && step != durable.StepOpen {
							t.Error("Put told nothing")
						}
						if step != durable.StepOpen { // that one may be open by then
							report.says(t, 1, 1, 0)
						}
						set(false)
						keep(t, f, random(10<<10))
						keep(t, f, content)
						report.mu.Lock()
						text := report.log.String()
						report.mu.Unlock()
						if strings.Count(text, "a store on disk fails") > 1 {
							t.Errorf("log: %s", text)
						}
						for _, name := range names(t, dir) {
							if !f.Has(name) {
								t.Errorf("%s is there and nobody knows", name)
							}
						}
					})
				}
			}
		}
	}
}

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

// Readers of a file that the disk does not take wait for the slowest of them, but for one that has
// gone, and the memory is bounded; who comes when its beginning is gone begins a fetch of its own.
func TestReadersPastTheDisk(t *testing.T) {
	f, _ := reported(t, FilesOptions{Path: t.TempDir(), MaxBytes: 1 << 30, Proof: proofOf, Around: func(s durable.Step, _ string, call func() error) error {
		if s == durable.StepWrite {
			return syscall.EIO
		}
		return call()
	}})
	content := random(2 << 20)
	var opens atomic.Int32
	open := from(content, nil, &opens, nil)
	slow, _, err := f.Fetch(t.Context(), nameOf(content), open)
	if err != nil {
		t.Fatal(err)
	}
	g := slow.(*follower).g
	done := make(chan []byte, 3)
	read := func() { got, _ := fetched(t, f, nameOf(content), open); done <- got }
	go read()
	waitFor(t, func() bool { g.mu.Lock(); defer g.mu.Unlock(); return len(g.tail) > maxTail-64<<10 })
	if _, err := io.ReadFull(slow, make([]byte, 100<<10)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { g.mu.Lock(); defer g.mu.Unlock(); return g.lost })
	go read()
	if got := <-done; !bytes.Equal(got, content) {
		t.Errorf("the late one got %d bytes", len(got))
	}
	g.mu.Lock()
	if len(g.tail) > maxTail || g.written > 100<<10+maxTail {
		t.Errorf("%d bytes in memory, %d on the way", len(g.tail), g.written)
	}
	g.mu.Unlock()
	slow.Close()
	if got := <-done; !bytes.Equal(got, content) || opens.Load() != 2 {
		t.Errorf("the other got %d bytes, %d fetches", len(got), opens.Load())
	}
}

// rw-008: on a disk that is really full, the files that were used longest ago make room, and a file
// that is larger than the disk passes through.
func TestFullDisk(t *testing.T) {
	f, report := reported(t, FilesOptions{Path: filepath.Join(smallDisk(t), "kept"), MaxBytes: 10 << 30, Proof: proofOf})
	for i := range 8 {
		content := random(300<<10 + i)
		keep(t, f, content)
		if got, err := fetched(t, f, nameOf(content), nil); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d: %d bytes, %v", i, len(got), err)
		}
	}
	if n, _ := f.Size(); n < 3 {
		t.Errorf("%d files are left", n)
	}
	report.says(t, 0, 0, 0)
	if report.mu.Lock(); strings.Count(report.log.String(), "the disk is full") != 1 {
		t.Errorf("log: %s", report.log.String())
	}
	report.mu.Unlock()
	large := random(3 << 20)
	var opens atomic.Int32
	for range 2 {
		if got, err := fetched(t, f, nameOf(large), from(large, nil, &opens, nil)); err != nil || !bytes.Equal(got, large) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		idle(t, f)
	}
	report.says(t, 1, 1, 0)
	keep(t, f, random(300<<10))
	report.says(t, 1, 0, 0)
}

// The scrub proves what nobody asks for, and finds what was damaged, at its pace.
func TestScrub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f, _ := reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Proof: proofOf})
		good, bad := random(3<<20), random(100)
		keep(t, f, good)
		keep(t, f, bad)
		f.Close()
		if err := os.WriteFile(filepath.Join(dir, nameOf(bad)), random(101)[:100], 0o600); err != nil {
			t.Fatal(err)
		}
		f, report := reported(t, FilesOptions{Path: dir, MaxBytes: 1 << 30, Proof: proofOf})
		start := time.Now()
		for !f.provedFor(nameOf(good)) || f.Has(nameOf(bad)) {
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		if d := time.Since(start); d < 2*scrubPause || d > 10*scrubPause {
			t.Errorf("it took %v", d)
		}
		report.says(t, 0, 0, 1)
		// what rots later is found by a later pass, though nothing shows that it was changed
		path := filepath.Join(dir, nameOf(good))
		wrong := bytes.Clone(good)
		wrong[5] ^= 1
		if err := os.WriteFile(path, wrong, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		now, err := spool.IdentityOf(file)
		if err != nil {
			t.Fatal(err)
		}
		k, _ := f.known.Peek(nameOf(good))
		k.proved.Store(&now)
		time.Sleep(scrubEvery + time.Minute)
		synctest.Wait()
		report.says(t, 0, 0, 2)
	})
}

func (f *Files) provedFor(name string) bool {
	k, ok := f.known.Peek(name)
	return ok && k.proved.Load() != nil
}
