package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

// A folder without its head, or with that of another journal or a damaged one, may be any copy: it
// is unresolved, nothing is written to it, and only the caller's statement frees it.
func TestHeadMissing(t *testing.T) {
	other := crashed(t, 4)
	other.Close()
	foreign, err := os.ReadFile(other.Dir() + ".head")
	if err != nil {
		t.Fatal(err)
	}
	foreign, ok := edit(t, foreign, []string{"payload", "plan_digest"}, changes["flip"], true)
	if !ok {
		t.Fatal("the head has no plan")
	}
	for what, data := range map[string][]byte{"missing": nil, "damaged": []byte("{"), "of another plan": foreign, "open to others": {}} {
		s := start(journaltest.Dir(t)+"/j", unsynced)
		if _, err := s.play(script()[:9]); err != nil { // the marker of the last request is left
			t.Fatal(err)
		}
		var err error
		switch {
		case what == "open to others":
			err = os.Chmod(s.dir+".head", 0o644)
		case data == nil:
			err = os.Remove(s.dir + ".head")
		default:
			err = os.WriteFile(s.dir+".head", data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		before := contents(t, s.dir)
		if got := read(s.dir); got != "unresolved: "+journal.ReasonMoved {
			t.Errorf("%s: %q", what, got)
		}
		j := reopen(t, s.dir)
		if _, err := j.Append("attempt-0001.json", attempt{planDigest(), 1}); !errors.Is(err, journal.CodeUnresolved) {
			t.Errorf("%s: written: %v", what, err)
		}
		if _, err := j.Begin(tomorrow, journal.Request{Method: "GET", URL: listURL}); !errors.Is(err, journal.CodeUnresolved) || j.Record().Exported() {
			t.Errorf("%s: begun: %v", what, err)
		}
		if _, err := j.Export(); !errors.Is(err, journal.CodeUnresolved) {
			t.Errorf("%s: exported: %v", what, err)
		}
		if !equal(before, contents(t, s.dir)) {
			t.Errorf("%s: something was written", what)
		}
		if err := j.Withdraw(); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append("attempt-0001.json", attempt{planDigest(), 1}); err != nil {
			t.Error(err)
		}
		j.Close()
		if got := read(s.dir); got != "unresolved: "+journal.ReasonNoResult {
			t.Errorf("%s: after the statement: %q", what, got)
		}
		if got := damaged(t, s.dir, remove("attempt-0001.json")); got != invalid {
			t.Errorf("%s: and then an entry removed: %q", what, got)
		}
	}
}

// Where nothing can be kept beside the folder a journal works all the same, says so, and still
// misses what was removed from its middle.
func TestNoHead(t *testing.T) {
	dir := filepath.Join(journaltest.Dir(t), "j")
	s := start(dir, journal.Options{Around: func(step, name string, call func() error) error {
		if strings.HasSuffix(name, ".head") {
			return os.ErrPermission
		}
		return unsynced.Around(step, name, call)
	}})
	if _, err := s.play(script()[:10]); err != nil {
		t.Fatal(err)
	}
	r, err := journal.Read(s.dir, layout)
	if err != nil || len(r.Warnings()) != 1 || !strings.Contains(r.Warnings()[0], "older copy") || r.Status(noon, "").State != journal.Clear {
		t.Fatalf("%v %v", r, err)
	}
	j := reopen(t, s.dir)
	if _, err := j.Append("attempt-0001.json", attempt{planDigest(), 1}); err != nil {
		t.Error(err)
	}
	j.Close()
	if _, err := os.Stat(s.dir + ".head"); err == nil {
		t.Error("there is a head that nothing announces")
	}
	if err := remove("attempt-0000.json", "result-0000.json")(s.dir); err != nil {
		t.Fatal(err)
	}
	if got := read(s.dir); got != invalid {
		t.Errorf("%q", got)
	}
}

// A head that cannot be written any more is a failure like any other: latched, and named.
func TestHeadFails(t *testing.T) {
	fail := false
	s := start(journaltest.Dir(t)+"/j", journal.Options{Around: func(step, name string, call func() error) error {
		if fail && strings.HasSuffix(name, ".head") {
			return errDisk
		}
		return unsynced.Around(step, name, call)
	}})
	for _, c := range script()[:6] {
		if err := c.do(s); err != nil {
			t.Fatal(err)
		}
	}
	fail = true
	_, err := s.j.Append("attempt-0000.json", attempt{planDigest(), 0})
	if !errors.Is(err, errDisk) || !errors.Is(err, journal.CodeReceipt) || !strings.Contains(err.Error(), "j.head") || s.j.Failed() == nil {
		t.Errorf("%v", err)
	}
	s.close()
	if got := read(s.dir); got != "unresolved: "+journal.ReasonNoResult {
		t.Errorf("%q", got)
	}
}

// A new journal may begin where another one was whose head is still there.
func TestHeadOfAnEarlierJournal(t *testing.T) {
	dir := complete(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for k := range 20 { // killed anywhere, it is a journal that was begun and no more
		n := 0
		s := start(dir, journal.Options{Around: func(step, name string, call func() error) error {
			if n++; n > k {
				panic(killed{})
			}
			return unsynced.Around(step, name, call)
		}})
		_ = s.once(script()[0])
		if got := read(dir); got != missing && got != "private-directory-invalid" {
			t.Errorf("killed at step %d: %q", k, got)
		}
		if s.j != nil {
			s.j.Close()
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	s := start(dir, unsynced)
	if _, err := s.play(script()[:6]); err != nil {
		t.Fatal(err)
	}
	if got := read(dir); got != "clear" {
		t.Errorf("%q", got)
	}
}

// A process that dies between an entry and the head leaves a head that is behind; the next run
// brings it forward before it does anything else.
func TestHeadCatchesUp(t *testing.T) {
	var heads [][]byte
	dir := journaltest.Dir(t) + "/j"
	s := start(dir, journal.Options{Around: func(step, name string, call func() error) error {
		err := unsynced.Around(step, name, call)
		if data, rerr := os.ReadFile(dir + ".head"); step == "rename" && rerr == nil {
			heads = append(heads, data)
		}
		return err
	}})
	if _, err := s.play(script()[:6]); err != nil {
		t.Fatal(err)
	}
	if len(heads) != 3 { // of no entry, of the founding one, of the acknowledgement
		t.Fatalf("%d heads", len(heads))
	}
	j := reopen(t, s.dir)
	if _, err := j.Append("attempt-0000.json", attempt{planDigest(), 0}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	for _, old := range heads {
		if err := os.WriteFile(s.dir+".head", old, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(s.dir); got != "unresolved: "+journal.ReasonNoResult {
			t.Errorf("%q", got)
		}
		reopen(t, s.dir).Close()
		if got := damaged(t, s.dir, remove("attempt-0000.json")); got != invalid {
			t.Errorf("%q", got)
		}
	}
}
