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
