package advisory

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// damage changes one database behind the store's back.
func damage(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
}

// rw-006: what is not as it was written is not used: the database before it is, and with none the
// data is not loaded.
func TestDamagedDatabases(t *testing.T) {
	for _, c := range []struct {
		name, problem string
		damage        func(t *testing.T, path string)
	}{
		{"another schema", "not an advisory database", func(t *testing.T, path string) { damage(t, path, "PRAGMA user_version = 3") }},
		{"another application", "not an advisory database", func(t *testing.T, path string) { damage(t, path, "PRAGMA application_id = 1") }},
		{"another validator", "does not match its export", func(t *testing.T, path string) {
			damage(t, path, "UPDATE meta SET value = 'x' WHERE key = 'validator'")
		}},
		{"another count", "does not match its export", func(t *testing.T, path string) {
			damage(t, path, "UPDATE meta SET value = '7' WHERE key = 'broken'")
		}},
		{"another time", "does not match its export", func(t *testing.T, path string) {
			damage(t, path, "UPDATE meta SET value = '2001-01-01T00:00:00Z' WHERE key = 'modified'")
		}},
		{"another ecosystem", `for "pypi"`, func(t *testing.T, path string) {
			damage(t, path, "UPDATE meta SET value = 'pypi' WHERE key = 'ecosystem'")
		}},
		{"a row too few", "does not match its export", func(t *testing.T, path string) { damage(t, path, "DELETE FROM affected WHERE advisory = 1") }},
		{"a record too few", "refers to record", func(t *testing.T, path string) { damage(t, path, "DELETE FROM advisory WHERE n = 1") }},
		{"another extent", "does not match its export", func(t *testing.T, path string) {
			damage(t, path, `UPDATE affected SET extent = '{"versions":["9.9.9"]}' WHERE advisory = 1`)
		}},
		{"another score", "does not match its export", func(t *testing.T, path string) { damage(t, path, `UPDATE advisory SET score = 0.1 WHERE n = 1`) }},
		{"no malware any more", "does not match its export", func(t *testing.T, path string) { damage(t, path, `UPDATE advisory SET malware = 1 - malware`) }},
		{"a field too few", "meta", func(t *testing.T, path string) { damage(t, path, `DELETE FROM meta WHERE key = 'records'`) }},
		{"no table", "no such table", func(t *testing.T, path string) { damage(t, path, `DROP TABLE affected`) }},
		{"half a file", "", func(t *testing.T, path string) {
			st, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, st.Size()/2)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"a flipped page", "", func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := len(data) / 2; i < len(data)/2+4096; i++ {
				data[i] ^= 0x55
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"no database", "", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := filepath.Join(t.TempDir(), "all.zip")
			o := Options{Dir: t.TempDir(), Source: source, Ecosystems: npmOnly}
			store, err := Open(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			for n := range 2 {
				if err := os.WriteFile(source, zipBytes(t, npmRecords(30+n)...), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := store.Refresh(context.Background(), "npm"); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			numbers, err := databases(o.Dir, "npm")
			if err != nil || len(numbers) != 2 {
				t.Fatalf("%v, %v", numbers, err)
			}
			c.damage(t, filepath.Join(o.Dir, databaseName("npm", numbers[0])))
			again, err := Open(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			status := again.Status()[0]
			if status.Err == nil || !strings.Contains(status.Err.Error(), c.problem) || !strings.Contains(status.Err.Error(), databaseName("npm", numbers[0])) {
				t.Errorf("error %v, want %q", status.Err, c.problem)
			}
			if !status.Loaded || status.Records != 30 {
				t.Errorf("the one before is not used: %+v", status)
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
			c.damage(t, filepath.Join(o.Dir, databaseName("npm", numbers[1])))
			if again, err = Open(context.Background(), o); err != nil {
				t.Fatal(err)
			}
			if status := again.Status()[0]; status.Loaded || status.Err == nil || again.Data().Loaded("npm") {
				t.Errorf("loaded all the same: %+v", status)
			}
			if found, _ := again.Data().Lookup(registry.Package{Ecosystem: "npm", Name: "x"}, "1.0.0"); found != nil {
				t.Errorf("found %v", found)
			}
			if err := again.Refresh(context.Background(), "npm"); err != nil || !again.Data().Loaded("npm") {
				t.Errorf("the next look does not mend it: %v", err)
			}
		})
	}
}

// What a compilation counts is told, and a record that is there twice affects what either of the
// two affects.
func TestCounts(t *testing.T) {
	records := append(npmRecords(200),
		oneRecord("GHSA-twice", "x", `"versions":["7.0.0"]`), oneRecord("GHSA-twice", "x", `"versions":["8.0.0"]`), oneRecord("GHSA-twice", "x", `"versions":["8.0.0"]`),
		`{"id":"W","withdrawn":"2020-01-01T00:00:00Z","affected":[{"package":{"ecosystem":"npm","name":"x"}}]}`,
		`{"id":"E","affected":[{"package":{"ecosystem":"Go","name":"x"}}]}`, `broken`)
	store, err := Open(context.Background(), Options{Dir: t.TempDir(), Source: zipOf(t, records...), Ecosystems: npmOnly})
	if err == nil {
		err = store.Refresh(context.Background(), "npm")
	}
	if err != nil {
		t.Fatal(err)
	}
	i := store.Status()[0].Info
	if i.Records != 201 || i.Affected != 202 || i.Withdrawn != 1 || i.Elsewhere != 1 || i.Broken != 1 || i.Ecosystem != "npm" ||
		!i.Modified.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) || len(i.Digest) != 64 {
		t.Errorf("%+v", i)
	}
	for _, version := range []string{"7.0.0", "8.0.0"} {
		if got := say(t, store.Data(), "npm", "x", version); got != "GHSA-twice" {
			t.Errorf("%s: %q", version, got)
		}
	}
}

// Of a record that is there twice the worse is taken, in whichever order they come.
func TestTwiceIsTheWorse(t *testing.T) {
	affected := `"affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["1.0.0"]}]`
	records := []string{
		`{"id":"A","severity":[{"type":"CVSS_V3","score":"5.0"}],` + affected + `}`,
		`{"id":"A",` + affected + `}`,
		`{"id":"A","severity":[{"type":"CVSS_V3","score":"7.0"}],"aliases":["MAL-1"],` + affected + `}`,
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		store, err := Open(context.Background(), Options{Dir: t.TempDir(), Source: zipOf(t, records[order[0]], records[order[1]], records[order[2]]), Ecosystems: npmOnly})
		if err == nil {
			err = store.Refresh(context.Background(), "npm")
		}
		if err != nil {
			t.Fatal(err)
		}
		found, _ := store.Data().Lookup(registry.Package{Ecosystem: "npm", Name: "x"}, "1.0.0")
		if len(found) != 1 || !found[0].Scored || found[0].Score != 7 || !found[0].Malware {
			t.Errorf("%v: %+v", order, found)
		}
	}
}

// A process that is stopped while compiling leaves the data as it was, and nothing behind.
func TestStoppedWhileCompiling(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	export := iter.Seq2[[]byte, error](func(yield func([]byte, error) bool) {
		for i := 0; ; i++ {
			if i == 10 {
				cancel()
			}
			if !yield([]byte(oneRecord("A", "x", `"versions":["1"]`)), nil) {
				return
			}
		}
	})
	err := compileInto(ctx, filepath.Join(dir, "x.db"), npmOnly[0], &Info{Ecosystem: "npm"}, export)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	store := open(t, fixtures)
	before := store.Data()
	// unchanged, so it is not even tried
	if err := store.Refresh(ctx, "npm"); err != nil || store.Data() != before {
		t.Errorf("%v", err)
	}
	store.opts.Source = zipOf(t, npmRecords(3)...)
	if err := store.Refresh(ctx, "npm"); !errors.Is(err, context.Canceled) || store.Data() != before {
		t.Errorf("%v", err)
	}
	leftovers(t, store.opts.Dir, "npm", "pypi")
}

// What a dead process left half done is removed by the next one that has the folder.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "1234.part"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := Open(context.Background(), Options{Dir: dir, Ecosystems: npmOnly})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	leftovers(t, dir)
}

func TestFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: filepath.Join(file, "below"), Ecosystems: npmOnly, Source: zipOf(t, npmRecords(3)...)}
	store, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Refresh(context.Background(), "npm"); err != nil || !store.Data().Loaded("npm") {
		t.Errorf("no data although the source is there: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := store.Refresh(context.Background(), "npm"); err != nil { // the folder can be made now
		t.Fatal(err)
	}
	if numbers, err := databases(o.Dir, "npm"); err != nil || len(numbers) != 1 {
		t.Errorf("nothing is kept: %v, %v", numbers, err)
	}
}

// Whatever fails when the data is kept, the data is in force, the source is asked no more often
// than that it is compiled once, and keeping resumes by itself.
func TestFailingDiskCostsNoData(t *testing.T) {
	for _, step := range []durable.Step{
		durable.StepMkdir, durable.StepCreate, durable.StepWrite, durable.StepSync, durable.StepClose, durable.StepRename, durable.StepSyncDir,
	} {
		for _, fault := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EIO, syscall.EMFILE} {
			t.Run(string(step)+"/"+fault.Error(), func(t *testing.T) {
				fails := true
				s := &source{answer: func(etag string) (*http.Response, error) {
					if etag == `"one"` {
						return respond(http.StatusNotModified, nil), nil
					}
					return respond(http.StatusOK, zipBytes(t, npmRecords(3)...), "ETag", `"one"`), nil
				}}
				dir := t.TempDir()
				o := Options{Dir: dir, Source: "https://osv.example", Ecosystems: npmOnly, Fetcher: s, Around: func(at durable.Step, _ string, call func() error) error {
					if fails && at == step {
						return fault
					}
					return call()
				}}
				store, err := Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := store.Refresh(t.Context(), "npm"); err != nil || !store.Data().Loaded("npm") {
						t.Errorf("no data although the source is there: %v", err)
					}
				}
				if found, err := store.Data().Lookup(registry.Package{Ecosystem: "npm", Name: "x"}, "1.0.0"); err != nil || len(found) != 3 {
					t.Errorf("%v, %v", found, err)
				}
				fails = false
				if err := store.Refresh(t.Context(), "npm"); err != nil {
					t.Fatal(err)
				}
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
				again, err := Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				defer again.Close()
				if !again.Data().Loaded("npm") {
					t.Errorf("nothing was kept when the disk worked again: %+v", again.Status())
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(left) != 0 {
					t.Errorf("left behind: %v", left)
				}
				if s.open != 0 {
					t.Errorf("%d answers are open", s.open)
				}
			})
		}
	}
}
