package documents

import (
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// failingDisk is an archive's disk, of which one step fails, or hangs.
type failingDisk struct {
	step  atomic.Value // durable.Step
	fault error        // nil: it hangs
	hang  chan struct{}
}

func (f *failingDisk) around(step durable.Step, _ string, call func() error) error {
	switch {
	case step != f.step.Load():
	case f.fault != nil:
		return f.fault
	default:
		<-f.hang
	}
	return call()
}

// Whatever step of keeping a listing fails, and in whatever way, listings are served; what is kept
// is whole or not there, and keeping resumes by itself.
func TestFailingDiskCostsNoListing(t *testing.T) {
	for _, step := range []durable.Step{
		durable.StepMkdir, durable.StepCreate, durable.StepWrite, durable.StepSync, durable.StepClose, durable.StepRename,
		durable.StepSyncDir, durable.StepCheckLink, durable.StepTouch, durable.StepRemove, durable.StepOpen, durable.StepRead,
	} {
		for _, fault := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EIO, syscall.EDQUOT, syscall.EMFILE} {
			dir := t.TempDir()
			t.Run(fmt.Sprintf("%s/%v", step, fault), func(t *testing.T) {
				toy.Inside(t, func(t *testing.T, w *toy.World) {
					disk := &failingDisk{fault: fault}
					disk.step.Store(step)
					start := func() (*Documents, func()) {
						o := options(w)
						o.Archive = OpenArchive(ArchiveOptions{Path: dir, MaxBytes: 64 << 20, Around: disk.around})
						return New(o), o.Archive.Close
					}
					w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
					w.Public.Publish("b", "1.0.0", toy.LongAgo, nil)
					for range 2 { // two processes
						d, stop := start()
						get(t, d, "a", time.Minute, Fresh, 1)
						time.Sleep(2 * time.Minute)
						get(t, d, "a", time.Minute, Fresh, 1) // by a 304
						get(t, d, "b", time.Minute, Fresh, 1)
						stop()
					}
					disk.step.Store(durable.Step(""))
					d, stop := start()
					w.Public.Publish("a", "2.0.0", toy.LongAgo, nil)
					time.Sleep(2 * time.Minute)
					get(t, d, "a", time.Minute, Fresh, 2)
					stop()
					w.Throttle(60)
					d, stop = start()
					get(t, d, "a", time.Hour, Fresh, 2)
					stop()
				})
			})
		}
	}
}

// A disk that hangs costs the first listing a moment and the next ones nothing, whether it is to
// be read, written, touched or removed, and what is kept is used again.
func TestSlowDiskCostsNoListing(t *testing.T) {
	for _, step := range []durable.Step{durable.StepOpen, durable.StepRead, durable.StepTouch, durable.StepCreate, durable.StepWrite, durable.StepRename} {
		dir := t.TempDir()
		t.Run(string(step), func(t *testing.T) {
			toy.Inside(t, func(t *testing.T, w *toy.World) {
				disk := &failingDisk{hang: make(chan struct{})}
				disk.step.Store(durable.Step(""))
				m := obs.NewMetrics()
				start := func() (*Documents, func()) {
					o := options(w)
					o.Archive = OpenArchive(ArchiveOptions{Path: dir, MaxBytes: 64 << 20, Around: disk.around, Report: m.Store("documents", slog.New(slog.DiscardHandler))})
					return New(o), o.Archive.Close
				}
				for _, name := range []string{"a", "b", "c"} {
					w.Public.Publish(name, "1.0.0", toy.LongAgo, nil)
				}
				d, stop := start()
				get(t, d, "a", time.Minute, Fresh, 1)
				get(t, d, "b", time.Minute, Fresh, 1)
				stop()
				time.Sleep(2 * time.Minute)
				d, stop = start()
				disk.step.Store(step)
				began := time.Now()
				for _, name := range []string{"a", "b", "c", "a"} {
					get(t, d, name, time.Minute, Fresh, 1)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("the listings took %v", took)
				}
				d.forget("c") // it does not wait for the writer for ever
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
				disk.step.Store(durable.Step(""))
				close(disk.hang)
				synctest.Wait()
				stop()
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("the end took %v", took)
				}
				if kept, err := os.ReadDir(dir); err != nil || len(kept) < 2 {
					t.Errorf("%d files are left, %v", len(kept), err)
				}
				w.Throttle(60)
				d, stop = start()
				get(t, d, "a", time.Hour, Fresh, 1)
				stop()
				families, err := m.Gatherer().Gather()
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range families {
					if f.GetName() == "ecluse_store_damaged_total" && f.GetMetric()[0].GetCounter().GetValue() != 0 {
						t.Error("what is slow was called damaged")
					}
				}
			})
		})
	}
}
