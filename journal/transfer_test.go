package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

const elsewhere = "unresolved: " + journal.ReasonMoved

// S153: an exported journal goes on where it was imported and nowhere else; the folder that it left
// refuses everything until the export is withdrawn.
func TestExport(t *testing.T) {
	for name, calls := range map[string]int{"sound": 10, "waiting": 16, "interrupted": 17, "attempt without result": 11, "429 without result": 13} {
		t.Run(name, func(t *testing.T) {
			j := crashed(t, calls)
			dir, before := j.Dir(), verdict(j.Record(), nil, reviewTime)
			files, err := j.Export()
			if err != nil {
				t.Fatal(err)
			}
			if got := verdict(j.Record(), nil, reviewTime); !equal(files, contents(t, dir)) || got != elsewhere || !j.Record().Exported() {
				t.Errorf("exported: %q", got)
			}
			_, appended := j.Append("attempt-0100.json", attempt{planDigest(), 100})
			_, begun := j.Begin(tomorrow, journal.Request{Method: "GET", URL: listURL})
			var resolved error = journal.CodeUnresolved
			for _, d := range j.Record().Doubts() {
				_, resolved = j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), d, approved)
			}
			for what, err := range map[string]error{"append": appended, "begin": begun, "resolve": resolved} {
				if !errors.Is(err, journal.CodeUnresolved) {
					t.Errorf("%s: %v", what, err)
				}
			}
			again, err := j.Export()
			if err != nil || !equal(files, again) {
				t.Errorf("exported again: %v", err)
			}
			j.Close()
			if got := read(dir); got != elsewhere {
				t.Errorf("exported: %q", got)
			}
			reopen(t, dir).Close()
			if !equal(files, contents(t, dir)) {
				t.Error("something was written to an exported journal")
			}

			// Imported elsewhere it is what it was, and writes.
			copied := filepath.Join(journaltest.Dir(t), "copy")
			if err := files.Restore(copied, layout, unsynced); err != nil {
				t.Fatal(err)
			}
			if got := read(copied); got != before {
				t.Errorf("imported: %q, was %q", got, before)
			}
			k := reopen(t, copied)
			if _, err := k.Append("attempt-0100.json", attempt{planDigest(), 100}); err != nil {
				t.Error(err)
			}
			if err := k.Withdraw(); codeOf(err) != invalid {
				t.Errorf("nothing to withdraw: %v", err)
			}
			k.Close()
			if got := damaged(t, copied, remove("attempt-0100.json")); got != invalid {
				t.Errorf("the copy's own history: %q", got)
			}
			if got := damaged(t, copied, remove("transfer-0001.json")); got != invalid {
				t.Errorf("the import removed: %q", got)
			}

			// Withdrawn, the first folder goes on.
			j = reopen(t, dir)
			if err := j.Withdraw(); err != nil {
				t.Fatal(err)
			}
			j.Close()
			if got := read(dir); got != before {
				t.Errorf("withdrawn: %q, was %q", got, before)
			}
			// And the bundle of before is an older copy of it now, in its place.
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := files.Restore(dir, layout, unsynced); codeOf(err) != invalid {
				t.Errorf("the bundle over the withdrawn journal: %v", err)
			}
		})
	}
}

// There and back, and out again: each export is settled once.
func TestExportTwice(t *testing.T) {
	first := crashed(t, 10)
	dir := first.Dir()
	first.Close()
	for n := range 4 {
		j, err := journal.Open(dir, layout, unsynced)
		if err != nil {
			t.Fatal(err)
		}
		files, err := j.Export()
		j.Close()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(journaltest.Dir(t), journal.Numbered("copy", n))
		if err := files.Restore(dir, layout, unsynced); err != nil {
			t.Fatal(err)
		}
		if got := read(dir); got != "clear" {
			t.Fatalf("copy %d: %q", n, got)
		}
	}
}

// A kill or a failing disk at any step of an export, a withdrawal and an import leaves one place
// where the journal goes on, or none, and never two.
func TestTransfersFailAtEveryStep(t *testing.T) {
	for _, mode := range modes {
		for k := range 60 {
			dir := crashed(t, 10)
			at, folder := 0, dir.Dir()
			dir.Close()
			fail := journal.Options{Around: func(step, name string, call func() error) error {
				if at++; at-1 != k {
					return unsynced.Around(step, name, call)
				}
				if mode != "error" {
					if err := call(); err != nil {
						return err
					}
				}
				if mode == "killed" {
					panic(killed{})
				}
				return errDisk
			}}
			failed := func(do func() error) (err error) {
				s := &state{}
				return s.once(call{"", func(*state) error { return do() }})
			}
			var files journal.Files
			err := failed(func() error {
				j, err := journal.Open(folder, layout, fail)
				if err != nil {
					return err
				}
				defer j.Close()
				files, err = j.Export()
				return err
			})
			got := read(folder)
			if err == nil && got != elsewhere || err != nil && got != elsewhere && got != "clear" || files != nil && got != elsewhere {
				t.Fatalf("%s, step %d of export: %q after %v", mode, k, got, err)
			}
			if err != nil { // it can be repeated
				j := reopen(t, folder)
				files, err = j.Export()
				j.Close()
				if err != nil {
					t.Fatalf("%s, step %d: exported again: %v", mode, k, err)
				}
			}
			copied := filepath.Join(journaltest.Dir(t), "copy")
			err = failed(func() error { return files.Restore(copied, layout, fail) })
			if got := read(copied); err == nil && got != "clear" || got != "clear" && got != missing && got != "private-directory-invalid" {
				t.Fatalf("%s, step %d of import: %q after %v", mode, k, got, err)
			}
			err = failed(func() error {
				j, err := journal.Open(folder, layout, fail)
				if err != nil {
					return err
				}
				defer j.Close()
				return j.Withdraw()
			})
			if got := read(folder); err == nil && got != "clear" || got != "clear" && got != elsewhere {
				t.Fatalf("%s, step %d of withdrawal: %q after %v", mode, k, got, err)
			}
			_ = os.Remove(copied + ".head")
		}
	}
}

// Transfers that contradict each other are refused, although every hash is right.
func TestTransferContradictions(t *testing.T) {
	j := crashed(t, 10)
	files, err := j.Export()
	if err != nil {
		t.Fatal(err)
	}
	export := parse(t, files["transfer-0000.json"])
	digest := export["integrity"].(string)
	b := &book{t, map[string]map[string]any{}}
	for name, data := range files {
		b.payloads[name] = parse(t, data)["payload"].(map[string]any)
	}
	settled := func(action string, of any) map[string]any {
		return map[string]any{"version": "1.0", "plan_digest": planDigest(), "action": action, "export": of}
	}
	for name, tt := range map[string]struct {
		second map[string]any
		field  string
	}{
		"sound":                  {settled("import", digest), ""},
		"withdrawn":              {settled("withdraw", digest), ""},
		"exported twice":         {settled("export", nil), "action"},
		"of nothing":             {settled("import", nil), "export"},
		"of something else":      {settled("withdraw", planDigest()), "export"},
		"an export of an export": {settled("export", digest), "export"},
		"another action":         {settled("moved", digest), "action"},
		"another plan":           {map[string]any{"version": "1.0", "plan_digest": digest, "action": "import", "export": digest}, "plan_digest"},
		"another version":        {map[string]any{"version": "2.0", "plan_digest": planDigest(), "action": "import", "export": digest}, "version"},
	} {
		b.payloads["transfer-0001.json"] = tt.second
		_, faults, err := journal.Files(b.seal()).Inspect(layout)
		switch {
		case err != nil:
			t.Fatal(err)
		case tt.field == "" && len(faults) > 0, tt.field != "" && (len(faults) == 0 || faults[0].Field != tt.field):
			t.Errorf("%s: %v", name, faults)
		}
	}
	delete(b.payloads, "transfer-0001.json")
	b.payloads["transfer-0002.json"] = settled("import", digest)
	if _, faults, _ := journal.Files(b.seal()).Inspect(layout); len(faults) == 0 {
		t.Error("a gap was not noticed")
	}
	b.payloads["transfer-0000.json"] = settled("import", nil)
	delete(b.payloads, "transfer-0002.json")
	if _, faults, _ := journal.Files(b.seal()).Inspect(layout); len(faults) == 0 {
		t.Error("an import of nothing was not noticed")
	}
}

// Transfers count among the restrictions: a request begins only when its restriction has room, and
// an export only when its import has.
func TestTransfersCount(t *testing.T) {
	j := begun(t)
	now := noon
	for range 198 {
		restrict(t, j, now, header(now, "0"))
		now = now.Add(2 * time.Second)
	}
	dir := j.Dir()
	if _, err := j.Export(); err != nil {
		t.Fatal(err)
	}
	if err := j.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Begin(now, journal.Request{Method: "GET", URL: listURL}); !errors.Is(err, journal.CodeLimit) || !j.Record().Full() {
		t.Errorf("begun: %v", err)
	}
	// A full journal can be taken away, unmarked: nothing can be done with it here or there.
	if files, err := j.Export(); err != nil || !equal(files, contents(t, dir)) || j.Record().Exported() {
		t.Errorf("a full journal: %v", err)
	}
	k := begun(t)
	now = noon
	for range 199 {
		restrict(t, k, now, header(now, "0"))
		now = now.Add(2 * time.Second)
	}
	if _, err := k.Export(); !errors.Is(err, journal.CodeLimit) {
		t.Errorf("an export without room for its import: %v", err)
	}
	if err := os.Remove(k.Dir() + ".head"); err != nil {
		t.Fatal(err)
	}
	k.Close()
	k = reopen(t, k.Dir())
	if err := k.Withdraw(); err != nil {
		t.Error(err)
	}
	if got := verdict(k.Record(), nil, now); got != "elapsed" {
		t.Errorf("%q", got)
	}

	// A full journal takes no statement: no request could follow it.
	l := begun(t)
	now = noon
	for range 199 {
		restrict(t, l, now, header(now, "0"))
		now = now.Add(2 * time.Second)
	}
	restrict(t, l, now, header(now, "99999999999999999999"))
	if _, err := l.Resolve(now, now, now.Add(quiet), l.Record().Doubts()[0], approved); !errors.Is(err, journal.CodeLimit) {
		t.Errorf("a statement in a full journal: %v", err)
	}
}

// S153: a bundle that is older than the journal which stood in a place is not put back there, while
// a restoration that was interrupted can be repeated, and the newest bundle may come back to the
// folder that it left.
func TestOlderBundleIsNotPutBack(t *testing.T) {
	j := crashed(t, 10)
	home := j.Dir()
	files, err := j.Export()
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
	away := filepath.Join(journaltest.Dir(t), "away")
	leave := func(dir string) {
		t.Helper()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	restore := func(dir string) error { return files.Restore(dir, layout, unsynced) }

	// Interrupted after any step, and repeated.
	for step := 0; ; step++ {
		n := 0
		failing := unsynced
		around := unsynced.Around
		failing.Around = func(name, file string, call func() error) error {
			if n++; n > step {
				return errors.New("the process was killed")
			}
			if around != nil {
				return around(name, file, call)
			}
			return call()
		}
		err := files.Restore(away, layout, failing)
		if err == nil {
			break
		}
		leave(away)
		if err := restore(away); err != nil {
			t.Fatalf("repeated after %d steps: %v", step, err)
		}
		leave(away)
	}

	k := reopen(t, away)
	if _, err := k.Append("attempt-0100.json", attempt{planDigest(), 100}); err != nil {
		t.Fatal(err)
	}
	k.Close()
	newer := contents(t, away)
	leave(away)
	if err := restore(away); codeOf(err) != invalid {
		t.Errorf("an older bundle in the place of a newer journal: %v", err)
	}
	if got := contents(t, away); len(got) != 0 {
		t.Errorf("%d files were written", len(got))
	}
	leave(away)
	if err := journal.Files(newer).Restore(away, layout, unsynced); err != nil {
		t.Errorf("the newest copy: %v", err)
	}
	leave(home)
	if err := restore(home); err != nil {
		t.Errorf("back where it came from: %v", err)
	}
}
