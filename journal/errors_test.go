package journal_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

// Whatever goes wrong is an *Error that errors.Is finds by its code, the folder's rules and locks
// included, and keeps its cause. S93, S152.
func TestErrorsAreTyped(t *testing.T) {
	for ours, folder := range map[journal.Code]durable.Code{
		journal.CodeFolder: durable.CodeDirectory, journal.CodeReceipt: durable.CodeReceipt, journal.CodeLocked: durable.CodeLocked,
	} {
		if string(ours) != string(folder) {
			t.Errorf("%s is not %s", ours, folder)
		}
	}
	root := journaltest.Dir(t)
	j, err := journal.Create(filepath.Join(root, "j"), layout, founding{plan}, unsynced)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	files := func(dir string) error { _, _, err := journal.ReadFiles(dir, layout); return err }
	inspect := func(dir string) error { _, _, err := journal.Inspect(dir, layout); return err }
	open := func(dir string) error { _, err := journal.Open(dir, layout, journal.Options{}); return err }
	create := func(dir string) error {
		_, err := journal.Create(dir, layout, founding{plan}, journal.Options{})
		return err
	}
	for name, tt := range map[string]struct {
		err  error
		code journal.Code
		text string
	}{
		"open nothing":         {open(filepath.Join(root, "none")), journal.CodeFolder, "private-directory-invalid"},
		"read nothing":         {inspect(filepath.Join(root, "none")), journal.CodeFolder, "private-directory-invalid"},
		"files of nothing":     {files(filepath.Join(root, "none")), journal.CodeFolder, "private-directory-invalid"},
		"create in nothing":    {create(filepath.Join(root, "none", "j")), journal.CodeFolder, "private-directory-invalid"},
		"open a locked one":    {open(j.Dir()), journal.CodeLocked, "journal-locked"},
		"read a locked one":    {inspect(j.Dir()), journal.CodeLocked, "journal-locked"},
		"files of a locked":    {files(j.Dir()), journal.CodeLocked, "journal-locked"},
		"create a locked one":  {create(j.Dir()), journal.CodeLocked, "journal-locked"},
		"create over files":    {create(root), journal.CodeExists, "file-upload-journal-exists"},
		"append a strange one": {func() error { _, err := j.Append("x.json", founding{}); return err }(), journal.CodeInvalid, invalid},
		"what an entry is not": {func() error { e, _ := j.Record().Entry("run.json"); return e.Decode(&ack{}) }(), journal.CodeInvalid, invalid},
	} {
		e, ok := errors.AsType[*journal.Error](tt.err)
		if !ok || !errors.Is(tt.err, tt.code) || errors.Is(tt.err, journal.CodeWaiting) || e.FullCode() != tt.text {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
	if err := open(filepath.Join(root, "none")); !errors.Is(err, journal.CodeFolder) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cause is lost: %v", err)
	}
}
