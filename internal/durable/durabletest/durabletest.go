// Package durabletest finds folders that internal/durable accepts, for the tests of every package
// above it. The usual temporary folder is world-writable and therefore refused, so these lie below
// the user's own folders.
package durabletest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// Dir makes a new, empty, private folder that is removed with the test. Its parent is private too
// and belongs to the test alone.
func Dir(tb testing.TB) string {
	tb.Helper()
	root, err := Root()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(root) })
	dir := filepath.Join(root, "private")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// Root makes a new private folder that the caller removes; for TestMain and for scripts that need a
// safe place to work in. It tries ECLUSE_TEST_ROOT, the user's cache, home and runtime folders, and
// the working folder, and says what was wrong with the last of them.
func Root() (string, error) {
	var last error
	for _, base := range candidates() {
		dir, err := os.MkdirTemp(base, "ecluse-test-")
		if err != nil {
			last = err
			continue
		}
		d, err := durable.Open(dir, durable.Options{})
		if err == nil {
			return dir, d.Close()
		}
		last = err
		_ = os.Remove(dir)
	}
	return "", last
}

func candidates() []string {
	var all []string
	add := func(dir string, err error) {
		if err != nil || !filepath.IsAbs(dir) {
			return
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			all = append(all, real)
		}
	}
	add(os.Getenv("ECLUSE_TEST_ROOT"), nil)
	if cache, err := os.UserCacheDir(); err == nil {
		_ = os.MkdirAll(cache, 0o700)
		add(cache, nil)
	}
	add(os.UserHomeDir())
	add(os.Getenv("XDG_RUNTIME_DIR"), nil)
	add(os.Getwd())
	return all
}

// StartChildren starts one child process after the other, until the test ends.
func StartChildren(t *testing.T) {
	t.Helper()
	stop := make(chan struct{})
	var children sync.WaitGroup
	for range 4 {
		children.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = exec.CommandContext(context.Background(), "/bin/true").Run()
				}
			}
		})
	}
	t.Cleanup(func() {
		close(stop)
		children.Wait()
	})
}
