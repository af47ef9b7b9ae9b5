package journal_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

// A folder that is a mount of its own gets no head: what lies beside it does not come with it.
func TestNoHeadBesideAMount(t *testing.T) {
	dir := filepath.Join(journaltest.Dir(t), "j")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Skipf("MOUNTED FOLDER NOT TESTED: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	s := start(dir, unsynced)
	if _, err := s.play(script()[:6]); err != nil {
		t.Fatal(err)
	}
	r, err := journal.Read(dir, layout)
	if err != nil || len(r.Warnings()) != 1 || r.Displaced() {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(dir + ".head"); err == nil {
		t.Error("there is a head")
	}
}
