package journal_test

import (
	"errors"
	"maps"
	"path/filepath"
	"testing"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

// S153: a journal moves with every byte, the verdict stays, and the copy goes on like the original.
func TestRestore(t *testing.T) {
	for name, dir := range map[string]string{"complete": complete(t), "interrupted": withMarker(t)} {
		files, r, err := journal.ReadFiles(dir, layout)
		if err != nil || !equal(files, contents(t, dir)) {
			t.Fatalf("%s: %v", name, err)
		}
		copied := filepath.Join(journaltest.Dir(t), "copy")
		if err := files.Restore(copied, layout, journal.Options{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !equal(files, contents(t, copied)) || read(copied) != read(dir) {
			t.Errorf("%s: the copy is another journal: %q instead of %q", name, read(copied), read(dir))
		}
		again, err := journal.Read(copied, layout)
		if err != nil || again.Digest() != r.Digest() {
			t.Errorf("%s: digest %v %v", name, again, err)
		}
		if err := files.Restore(copied, layout, journal.Options{}); codeOf(err) != "file-upload-journal-exists" {
			t.Errorf("%s: over an existing one: %v", name, err)
		}
	}
}

// S153, S115: a bundle with a fault writes nothing.
func TestRestoreVerifiesFirst(t *testing.T) {
	files, _, err := journal.ReadFiles(complete(t), layout)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(map[string][]byte){
		"changed":   func(m map[string][]byte) { m["result-0000.json"] = append([]byte(" {}"), m["result-0000.json"]...) },
		"missing":   func(m map[string][]byte) { delete(m, "source-ack.json") },
		"foreign":   func(m map[string][]byte) { m["../escape"] = []byte("{}") },
		"too large": func(m map[string][]byte) { m["run.json"] = make([]byte, 2<<20) },
		"too many": func(m map[string][]byte) {
			for i := range 5000 {
				m[journal.Numbered("x", i)] = nil
			}
		},
	} {
		m := maps.Clone(files)
		spoil(m)
		dir := filepath.Join(journaltest.Dir(t), "copy")
		if err := m.Restore(dir, layout, journal.Options{}); codeOf(err) != invalid && codeOf(err) != missing {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := journal.Read(dir, layout); codeOf(err) != "private-directory-invalid" {
			t.Errorf("%s: something was written: %v", name, err)
		}
	}
}

// A restoration that is cut short anywhere is no journal.
func TestRestoreCutShort(t *testing.T) {
	files, _, err := journal.ReadFiles(complete(t), layout)
	if err != nil {
		t.Fatal(err)
	}
	for k := 0; ; k += 5 {
		n, reached := 0, false
		dir := filepath.Join(journaltest.Dir(t), "copy")
		err := files.Restore(dir, layout, journal.Options{Around: func(step, name string, call func() error) error {
			if n++; n-1 == k {
				reached = true
				return errDisk
			}
			return unsynced.Around(step, name, call)
		}})
		if !reached {
			return
		}
		got := read(dir)
		whole := n > 2+9*len(files)-5 // at or behind the last link
		if !errors.Is(err, errDisk) || got != missing && got != "private-directory-invalid" && !whole {
			t.Fatalf("step %d: %q after %v", k, got, err)
		}
	}
}
