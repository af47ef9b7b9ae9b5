package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// What is there is never written over: a file, a folder, a link, also one that leads nowhere. What
// could not be written leaves nothing.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := durable.Create(at("outcome.json"), []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	names := []string{"outcome.json", "folder"}
	if runtime.GOOS != "windows" {
		if err := errors.Join(os.Symlink(at("nowhere"), at("dangling")), os.Symlink(at("outcome.json"), at("link"))); err != nil {
			t.Fatal(err)
		}
		names = append(names, "dangling", "link")
	}
	for _, name := range names {
		if err := durable.Create(at(name), []byte("second")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := os.ReadFile(at("outcome.json")); err != nil || string(got) != "first" {
		t.Errorf("%q, %v", got, err)
	}
	if info, err := os.Stat(at("outcome.json")); err != nil || info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := durable.Create(at("absent/outcome.json"), nil); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("a file in a folder that is not there: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(names) {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
