//go:build unix

package mirror

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A folder whose worker has stopped is free at once, also while child processes are started, which
// hold copies of every descriptor until their exec. Neither what is unlocked nor what could not be
// locked keeps a descriptor.
func TestLockEndsWithUnlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	before := descriptors(t)
	stop := make(chan struct{})
	var children sync.WaitGroup
	for range 4 {
		children.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = exec.Command("/bin/true").Run()
				}
			}
		})
	}
	for i := range 3000 {
		unlock, err := lock(path)
		if err != nil {
			t.Errorf("round %d: %v", i, err)
			break
		}
		unlock()
	}
	close(stop)
	children.Wait()

	unlock, err := lock(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := lock(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("locked twice: %v", err)
		}
	}
	unlock()
	for range 100 {
		unlock, err := lock(path)
		if err != nil {
			t.Fatal(err)
		}
		unlock()
	}
	if n := descriptors(t) - before; n > 50 { // others come and go
		t.Errorf("%d descriptors are kept", n)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
