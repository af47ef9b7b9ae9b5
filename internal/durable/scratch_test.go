package durable_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

func TestScratch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if _, err := durable.Scratch(dir); err == nil {
		t.Error("a file in a folder that does not exist")
	}
	if err := durable.MakeAll(dir); err != nil {
		t.Fatal(err)
	}
	f, err := durable.Scratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("the folder shows %v %v", names, err)
	}
	if _, err := f.WriteString("passing"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(io.NewSectionReader(f, 0, 7)); string(got) != "passing" || err != nil {
		t.Errorf("%q %v", got, err)
	}
}
