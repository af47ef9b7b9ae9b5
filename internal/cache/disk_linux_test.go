package cache

import (
	"os"
	"os/exec"
	"testing"
)

// smallDisk is a file system of 1.5 MB.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("FULL DISK NOT TESTED: mounting a small disk needs root")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1536k,mode=0700", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("FULL DISK NOT TESTED: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir
}
