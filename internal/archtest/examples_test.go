package archtest_test

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/archtest"
)

// A stranger's module, which requires this one and nothing else, compiles, vets and runs the
// example of every public package, without a network. The examples are those that the documentation
// shows.
func TestExamplesInASecondModule(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, root)
	_, names := archtest.Public(os.DirFS(root), module)
	dir := t.TempDir()
	packages := 0
	for room := range names {
		text, err := os.ReadFile(filepath.Join(root, room, "example_test.go"))
		if os.IsNotExist(err) && strings.HasSuffix(room, "test") {
			continue // a helper of another package's example
		}
		if err != nil {
			t.Errorf("%s has no example: %v", room, err)
			continue
		}
		imports(t, room, text)
		write(t, filepath.Join(dir, room, "example_test.go"), text)
		packages++
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.sum"), sums)
	write(t, filepath.Join(dir, "go.mod"), []byte("module stranger.example.com\n\ngo 1.26\n\nrequire "+module+" v0.0.0\n\nreplace "+
		module+" => "+strconv.Quote(root)+"\n"))

	stranger(t, dir, "vet", "./...")
	ran := map[string]bool{}
	for line := range strings.Lines(stranger(t, dir, "test", "-json", "./...")) {
		var event struct{ Action, Package, Test string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if event.Action == "pass" && strings.HasPrefix(event.Test, "Example") {
			ran[event.Package] = true
		}
	}
	if len(ran) != packages || packages < 5 {
		t.Errorf("examples ran in %d of %d packages: %v", len(ran), packages, ran)
	}
}

// readAll reads what the examples are built from inside of this process, so that the test's result
// is not taken from the cache after a change.
func readAll(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != root {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			_, err = os.ReadFile(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// imports refuses what a stranger could not import.
func imports(t *testing.T, room string, text []byte) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), room, text, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range f.Imports {
		if strings.Contains(spec.Path.Value, "/internal/") {
			t.Errorf("the example of %s imports %s", room, spec.Path.Value)
		}
	}
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// stranger runs the go command in the second module, offline.
func stranger(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		var text []byte
		if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // of this very call
			text = exit.Stderr
		}
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, text)
	}
	return string(out)
}
