package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// A document is replaced whole or not at all, and a failure leaves nothing behind.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plan.json")
	for _, text := range []string{"first", "the second, longer"} {
		if err := durable.Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "child"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(folder, []byte("x")); err == nil {
		t.Error("a folder was replaced")
	}
	if err := durable.Replace(filepath.Join(dir, "absent", "x"), nil); err == nil {
		t.Error("a file in a folder that is not there")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
