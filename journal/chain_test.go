package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

func remove(names ...string) func(string) error {
	return func(dir string) (err error) {
		for _, name := range names {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
		return err
	}
}

// S115, S116: entries that were removed together, so that what is left fits, are missed: in the
// middle by the chain, at the end by the head beside the folder.
func TestRemovedTogether(t *testing.T) {
	good := complete(t)
	for what, names := range map[string][]string{
		"the first file":       {"attempt-0000.json", "result-0000.json"},
		"the last file":        {"attempt-0002.json", "result-0002.json"},
		"the last restriction": {"backoff-0001.json", "attempt-0002.json", "result-0002.json"},
		"all after the ack": {
			"attempt-0000.json", "result-0000.json", "attempt-0001.json", "backoff-0000.json", "result-0001.json", "backoff-0001.json",
			"attempt-0002.json", "result-0002.json",
		},
	} {
		if got := damaged(t, good, remove(names...)); got != invalid {
			t.Errorf("%s: %q", what, got)
		}
	}
	var why error
	damaged(t, good, func(dir string) error {
		err := remove("attempt-0000.json", "result-0000.json")(dir)
		_, why = journal.Read(dir, layout)
		return err
	})
	if !strings.Contains(why.Error(), "written before it is missing") {
		t.Errorf("%v", why)
	}
	// The chain alone does not see the end; that is what the head is for.
	headless := func(dir string) error {
		return errors.Join(remove("attempt-0002.json", "result-0002.json")(dir), os.Remove(dir+".head"))
	}
	if got := damaged(t, good, headless); got != "unresolved: "+journal.ReasonMoved {
		t.Errorf("without the head: %q", got)
	}
}

// An older backup that is put in the place of the journal is behind its head: the run is not
// continued from there, whatever that copy would allow. The newest copy put back is fine.
func TestOlderBackup(t *testing.T) {
	for _, calls := range []int{5, 7, 10, 12, 14, 16, 18} {
		s := start(journaltest.Dir(t)+"/j", unsynced)
		all := script()
		if _, err := s.play(all[:calls]); err != nil {
			t.Fatal(err)
		}
		older := contents(t, s.dir)
		restore := func(files map[string][]byte) {
			t.Helper()
			if err := errors.Join(os.RemoveAll(s.dir), os.Mkdir(s.dir, 0o700)); err != nil {
				t.Fatal(err)
			}
			for name, data := range files {
				if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		before := read(s.dir)
		restore(older)
		if got := read(s.dir); got != before {
			t.Errorf("%d calls: the newest copy: %q, was %q", calls, got, before)
		}
		j, err := journal.Open(s.dir, layout, unsynced)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range j.Record().Doubts() {
			if _, err := j.Resolve(tomorrow, tomorrow, tomorrow.Add(quiet), d, approved); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := j.Append("attempt-0150.json", attempt{planDigest(), 150}); err != nil {
			t.Fatal(err)
		}
		j.Close()
		newest := contents(t, s.dir)
		restore(older)
		if got := read(s.dir); got != invalid {
			t.Errorf("%d calls: an older backup: %q", calls, got)
		}
		if _, err := journal.Open(s.dir, layout, unsynced); codeOf(err) != invalid || !strings.Contains(err.Error(), "an older copy of the journal was put back") {
			t.Errorf("%d calls: opened: %v", calls, err)
		}
		if _, _, err := journal.ReadFiles(s.dir, layout); codeOf(err) != invalid {
			t.Errorf("%d calls: exported: %v", calls, err)
		}
		restore(newest)
		if got := read(s.dir); got != "unresolved: "+journal.ReasonNoResult {
			t.Errorf("%d calls: the newest copy: %q", calls, got)
		}
	}
}

// A history that was exchanged for another of the same length is another one.
func TestExchangedHistory(t *testing.T) {
	begin := func(id string) string {
		s := start(journaltest.Dir(t)+"/j", unsynced)
		calls := append(script()[:3], call{"ack", func(s *state) error { return s.append("source-ack.json", ack{201, id}) }})
		if _, err := s.play(calls); err != nil {
			t.Fatal(err)
		}
		return s.dir
	}
	one, other := begin("one"), begin("other")
	got := damaged(t, one, func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "source-ack.json"), contents(t, other)["source-ack.json"], 0o600)
	})
	if got != invalid {
		t.Errorf("%q", got)
	}
}

// S105: after a write that failed, what is already known is still recorded, and the journal fits
// whether the failed entry is there or not.
func TestWriteAfterFailure(t *testing.T) {
	for _, step := range []string{"link", "check-link", "unlink-temp", "fsync-dir", "reopen"} {
		for _, landed := range []bool{false, true} {
			for _, lost := range []int{0, 1, 2} {
				left := lost
				s := start(journaltest.Dir(t)+"/j", journal.Options{Around: func(at, name string, call func() error) error {
					if at != step || left == 0 || !strings.HasPrefix(name, "attempt-") {
						return unsynced.Around(at, name, call)
					}
					left--
					if landed {
						return errors.Join(call(), errDisk)
					}
					return errDisk
				}})
				for _, c := range script()[:6] {
					if err := c.do(s); err != nil {
						t.Fatal(err)
					}
				}
				for n := range 4 {
					if _, err := s.j.Append(journal.Numbered("attempt", n), attempt{planDigest(), n}); (err != nil) != (n < lost) {
						t.Fatal(err)
					}
				}
				s.close()
				// The next run continues from there, and so does one that finds another entry lost
				// to the failing disk.
				j := reopen(t, s.dir)
				if _, err := j.Append("attempt-0009.json", attempt{planDigest(), 9}); err != nil {
					t.Error(err)
				}
				j.Close()
				if got := read(s.dir); got != "unresolved: "+journal.ReasonNoResult {
					t.Errorf("%s, landed %v, %d lost: %q", step, landed, lost, got)
				}
				if text := string(contents(t, s.dir)["attempt-0003.json"]); strings.Contains(text, "unsure") {
					t.Errorf("what failed long before is still unsure: %s", text)
				}
				if lost > 0 {
					_ = os.Remove(filepath.Join(s.dir, "attempt-0000.json"))
					if got := read(s.dir); got != "unresolved: "+journal.ReasonNoResult {
						t.Errorf("%s, landed %v, %d lost, the first for good: %q", step, landed, lost, got)
					}
				}
				if got := damaged(t, s.dir, remove("attempt-0003.json")); got != invalid {
					t.Errorf("%s: an entry that was acknowledged is gone: %q", step, got)
				}
			}
		}
	}
}

// In the place of an entry whose write failed there is that entry or none, and no other.
func TestOtherThanUnsure(t *testing.T) {
	s := start(journaltest.Dir(t)+"/j", journal.Options{Around: func(at, name string, call func() error) error {
		err := unsynced.Around(at, name, call)
		if at == "fsync-dir" && name == "result-0000.json" {
			return errDisk
		}
		return err
	}})
	for n, c := range script()[:9] {
		if err := c.do(s); (err != nil) != (n == 8) {
			t.Fatal(err)
		}
	}
	if err := s.append("attempt-0001.json", attempt{planDigest(), 1}); err != nil {
		t.Fatal(err)
	}
	s.close()
	for again, want := range map[string]string{"request_id": invalid, "": "unresolved: " + journal.ReasonNoResult} {
		got := damaged(t, s.dir, func(dir string) error {
			data := contents(t, dir)["result-0000.json"]
			if again != "" {
				data, _ = edit(t, data, []string{"payload", again}, changes["flip"], true)
			}
			return os.WriteFile(filepath.Join(dir, "result-0000.json"), data, 0o600)
		})
		if got != want {
			t.Errorf("%q changed: %q", again, got)
		}
	}
}

// A journal of a version that chained nothing opens, and its first new entry binds all older ones:
// from then on a removal shows, and an addition.
func TestUnchainedJournal(t *testing.T) {
	b := openBook(t)
	delete(b.payloads, pendingName)
	dir := filepath.Join(journaltest.Dir(t), "j")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range b.seal() {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(dir); got != "waiting" {
		t.Fatal(got)
	}
	if _, err := os.Stat(dir + ".head"); err == nil {
		t.Error("reading wrote a head")
	}
	j := reopen(t, dir)
	if _, err := j.Append("attempt-0002.json", attempt{planDigest(), 2}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if got := read(dir); got != "unresolved: "+journal.ReasonNoResult {
		t.Errorf("%q", got)
	}
	for what, damage := range map[string]func(string) error{
		"old entries removed": remove("attempt-0000.json", "result-0000.json"),
		"an entry added": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "attempt-0007.json"), b.sealed("attempt-0007.json", map[string]any{"plan_digest": planDigest(), "number": 7}), 0o600)
		},
		"the new entry removed": remove("attempt-0002.json"),
	} {
		var why error
		got := damaged(t, dir, func(dir string) error {
			err := damage(dir)
			_, why = journal.Read(dir, layout)
			return err
		})
		if got != invalid || what != "the new entry removed" && !strings.Contains(why.Error(), "an entry from before it") {
			t.Errorf("%s: %q, %v", what, got, why)
		}
	}
}

// sealed is one entry as a version without a chain wrote it.
func (b *book) sealed(name string, payload map[string]any) []byte {
	b.payloads[name] = payload
	defer delete(b.payloads, name)
	return b.seal()[name]
}

// A result at the very end that is taken away leaves its attempt open, also when another process
// looked in between: that shows, and an operator can resolve it.
func TestLastResultRemoved(t *testing.T) {
	dir := complete(t)
	reopen(t, dir).Close()
	if got := damaged(t, dir, remove("result-0002.json")); got != "unresolved: "+journal.ReasonNoResult {
		t.Errorf("%q", got)
	}
}

// The marker is not part of the chain and cannot take a place in it.
func TestMarkerIsNotChained(t *testing.T) {
	got := damaged(t, withMarker(t), func(dir string) error {
		doc := parse(t, contents(t, dir)[pendingName])
		doc["chain"] = map[string]any{"number": 99, "previous": planDigest()}
		data, err := strictjson.Canonical(doc)
		return errors.Join(err, os.WriteFile(filepath.Join(dir, pendingName), data, 0o600))
	})
	if got != invalid {
		t.Errorf("%q", got)
	}
}
