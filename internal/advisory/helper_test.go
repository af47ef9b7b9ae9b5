package advisory

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

const fixtures = "testdata/export"

var npmOnly = registry.Ecosystems{ecosystemtest.Named("npm")}

// open opens a store in a folder of its own and looks at the source once for each ecosystem.
func open(t testing.TB, source string) *Store {
	t.Helper()
	s, err := Open(context.Background(), Options{Dir: t.TempDir(), Source: source, Ecosystems: ecosystemtest.All(), Interval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for _, e := range s.opts.Ecosystems.Names() {
		if err := s.Refresh(context.Background(), e); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
	}
	return s
}

// say spells what a look-up finds: "ID" where it affects, "ID fix" where it is fixed, with the
// version that fixes.
func say(t testing.TB, d *Data, ecosystem, name, version string) string {
	t.Helper()
	found, err := d.Lookup(registry.Package{Ecosystem: ecosystem, Name: name}, version)
	if err != nil {
		t.Fatalf("%s:%s@%s: %v", ecosystem, name, version, err)
	}
	var words []string
	for _, a := range found {
		word := a.ID
		if a.Affects && a.FixedIn != "" {
			word += "<" + a.FixedIn
		}
		if a.Fixes {
			word += " fix"
		}
		if !a.Affects && !a.Fixes {
			t.Errorf("%s@%s: %s neither affects nor fixes", name, version, a.ID)
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// oneRecord is the JSON of a small record about one npm package.
func oneRecord(id, name, affected string) string {
	return fmt.Sprintf(`{"id":%q,"modified":"2026-01-02T03:04:05Z","affected":[{"package":{"ecosystem":"npm","name":%q},%s}]}`, id, name, affected)
}

// zipOf writes a zip of records and returns its path.
func zipOf(t testing.TB, records ...string) string {
	t.Helper()
	return zipSeq(t, len(records), func(i int) string { return records[i] })
}

func zipSeq(t testing.TB, n int, record func(i int) string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "all.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for i := range n {
		w, err := z.Create(fmt.Sprintf("%07d.json", i))
		if err == nil {
			_, err = io.WriteString(w, record(i))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
