package durable_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/durable/durabletest"
)

// A disk that is really full: the error says so, nothing half written has a name, nothing stays
// behind, and what was there before is whole.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("DISK FULL NOT TESTED: mounting a small disk needs root")
	}
	mount := durabletest.Dir(t)
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "none", mount).CombinedOutput(); err != nil {
		t.Skipf("DISK FULL NOT TESTED: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", mount).Run() })
	dir := filepath.Join(mount, "private")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir, durable.Options{})
	record := make([]byte, 300<<10)
	var err error
	n := 0
	for ; err == nil && n < 10; n++ {
		err = d.Publish(string(rune('a'+n)), record)
	}
	e, ok := errors.AsType[*durable.Error](err)
	if !ok || e.Code != durable.CodeReceipt || !errors.Is(err, syscall.ENOSPC) || e.Landed || len(e.Warnings) > 0 {
		t.Fatalf("got %v, %+v", err, e)
	}
	names, leftovers, err := d.List(100)
	if err != nil || len(names) != n-1 || len(leftovers) != 0 {
		t.Fatalf("%v %v %v after %d", names, leftovers, err, n)
	}
	for _, name := range names {
		if data, err := d.Read(name, durable.MaxRecord); err != nil || len(data) != len(record) {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	// The marker of a request can still be removed on a full disk.
	if err := d.Remove("a", record); err != nil {
		t.Error(err)
	}
}
