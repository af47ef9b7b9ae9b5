//go:build linux || darwin

package durable_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/durable/durabletest"
)

var errDisk = errors.New("input/output error")

func open(t *testing.T, dir string, opt durable.Options) *durable.Dir {
	t.Helper()
	d, err := durable.Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func ls(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// publishing are the steps of Publish in order; the order is the promise (S94; tc-088: the folder
// is synced too).
var publishing = []durable.Step{
	durable.StepCreate, durable.StepWrite, durable.StepSync, durable.StepReadBack, durable.StepLink,
	durable.StepCheckLink, durable.StepUnlinkTemp, durable.StepSyncDir, durable.StepReopen,
}

// S94: the steps are taken in this order and no other.
func TestPublishOrder(t *testing.T) {
	var steps []durable.Step
	dir := durabletest.Dir(t)
	d := open(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
		steps = append(steps, s)
		return call()
	}})
	if err := d.Publish("a.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(steps, publishing) {
		t.Errorf("took %v", steps)
	}
	info, err := os.Stat(filepath.Join(dir, "a.json"))
	if err != nil || info.Mode() != 0o600 || info.Sys().(*syscall.Stat_t).Nlink != 1 {
		t.Errorf("%v %v", info, err)
	}
	steps = nil
	if err := d.Remove("a.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if want := []durable.Step{durable.StepRemove, durable.StepSyncDir, durable.StepSyncRemoved}; !slices.Equal(steps, want) || len(ls(t, dir)) != 0 {
		t.Errorf("removing took %v and left %v", steps, ls(t, dir))
	}
}

// Style 3: every write point in three states: it worked (above), it failed and left nothing, it
// failed but landed anyway. After each the folder is read again: the file is whole or absent, the
// error says which, and no temporary file of ours stays (S97).
func TestPublishFailsAtEveryStep(t *testing.T) {
	for _, step := range publishing {
		for _, landed := range []bool{false, true} {
			t.Run(fmt.Sprint(step, " landed=", landed), func(t *testing.T) {
				dir := durabletest.Dir(t)
				d := open(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
					if s != step {
						return call()
					}
					if landed {
						if err := call(); err != nil {
							return err
						}
					}
					return errDisk
				}})
				err := d.Publish("a.json", []byte(`{"a":1}`))
				e, ok := errors.AsType[*durable.Error](err)
				if !ok || e.Code != durable.CodeReceipt || !errors.Is(err, errDisk) || e.Op != string(step) {
					t.Fatalf("got %v", err)
				}
				reopened := open(t, dir, durable.Options{})
				data, err := reopened.Read("a.json", durable.MaxRecord)
				exists := !errors.Is(err, fs.ErrNotExist)
				if exists != e.Landed {
					t.Errorf("the error says landed=%v, the folder says %v (%v)", e.Landed, exists, err)
				}
				if exists && (err != nil || string(data) != `{"a":1}`) {
					t.Errorf("half a file: %q %v", data, err)
				}
				after := slices.Index(publishing, step) > slices.Index(publishing, durable.StepLink)
				if want := after || step == durable.StepLink && landed; exists != want {
					t.Errorf("exists=%v, want %v", exists, want)
				}
				if exists && len(ls(t, dir)) != 1 || !exists && len(ls(t, dir)) != 0 {
					t.Errorf("left behind: %v", ls(t, dir))
				}
			})
		}
	}
}

// S98: an existing name is never replaced, whatever it is.
func TestPublishNeverReplaces(t *testing.T) {
	dir := durabletest.Dir(t)
	d := open(t, dir, durable.Options{})
	if err := os.Symlink("elsewhere", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Publish("file.json", []byte("1")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link.json", "folder.json", "file.json"} {
		err := d.Publish(name, []byte("2"))
		if e, _ := errors.AsType[*durable.Error](err); !errors.Is(err, fs.ErrExist) || e.Landed || durable.CodeOf(err) != durable.CodeReceipt {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, _ := d.Read("file.json", 10); string(got) != "1" {
		t.Errorf("replaced by %q", got)
	}
	if got := ls(t, dir); len(got) != 3 {
		t.Errorf("left behind: %v", got)
	}
}

// S94, S97: a temporary name that somebody exchanged is noticed, is not removed, and is reported.
func TestExchangedTemp(t *testing.T) {
	dir := durabletest.Dir(t)
	var temp string
	d := open(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
		if s == durable.StepLink {
			temp = ls(t, dir)[0]
			if err := os.Remove(filepath.Join(dir, temp)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, temp), []byte("forged"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return call()
	}})
	err := d.Publish("a.json", []byte("true"))
	e, ok := errors.AsType[*durable.Error](err)
	if !ok || len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], temp) {
		t.Fatalf("got %v, warnings %v", err, e)
	}
	if !slices.Contains(ls(t, dir), temp) {
		t.Error("a file that is not ours was removed")
	}
}

// A disk that gives back other bytes than were written is noticed before the file has a name (S94).
func TestReadBackDiffers(t *testing.T) {
	dir := durabletest.Dir(t)
	d := open(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
		if s == durable.StepReadBack {
			if err := os.WriteFile(filepath.Join(dir, ls(t, dir)[0]), []byte("flipt"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return call()
	}})
	if err := d.Publish("a.json", []byte("write")); durable.CodeOf(err) != durable.CodeReceipt || len(ls(t, dir)) != 0 {
		t.Fatalf("got %v, left %v", err, ls(t, dir))
	}
}

// S94: when another file with the same bytes has taken the published name, it is noticed.
func TestReopenFindsAnotherFile(t *testing.T) {
	dir := durabletest.Dir(t)
	d := open(t, dir, durable.Options{Around: func(s durable.Step, name string, call func() error) error {
		if s == durable.StepReopen {
			p := filepath.Join(dir, name)
			if err := errors.Join(os.Rename(p, p+".moved"), os.WriteFile(p, []byte("same"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		return call()
	}})
	if err := d.Publish("a.json", []byte("same")); durable.CodeOf(err) != durable.CodeReceipt {
		t.Errorf("got %v", err)
	}
}

// S96, S115: what a reader must refuse, each with its code.
func TestReadRefuses(t *testing.T) {
	dir := durabletest.Dir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, dir, durable.Options{})
	must(os.WriteFile(at("good"), []byte("x"), 0o600))
	must(os.Symlink("good", at("link")))
	must(os.Mkdir(at("folder"), 0o700))
	must(syscall.Mkfifo(at("pipe"), 0o600))
	must(os.WriteFile(at("open"), []byte("x"), 0o600))
	must(os.Chmod(at("open"), 0o640))
	must(os.WriteFile(at("twice"), []byte("x"), 0o600))
	must(os.Link(at("twice"), at("twice2")))
	must(os.WriteFile(at("big"), make([]byte, durable.MaxRecord+1), 0o600))
	must(os.WriteFile(at("limit"), make([]byte, durable.MaxRecord), 0o600))
	for name, want := range map[string]durable.Code{
		"good": "", "limit": "", "link": durable.CodeUnsafe, "folder": durable.CodeUnsafe, "pipe": durable.CodeUnsafe, "open": durable.CodeUnsafe,
		"twice": durable.CodeUnsafe, "big": durable.CodeUnsafe, "absent": durable.CodeUnread, "../good": durable.CodeReceipt, ".hidden": durable.CodeReceipt,
	} {
		if _, err := d.Read(name, 1<<30); durable.CodeOf(err) != want {
			t.Errorf("%s: %v, want code %q", name, err, want)
		}
	}
	if os.Geteuid() == 0 {
		must(os.WriteFile(at("foreign"), []byte("x"), 0o600))
		must(os.Chown(at("foreign"), 12345, 12345))
		if _, err := d.Read("foreign", 10); durable.CodeOf(err) != durable.CodeUnsafe {
			t.Errorf("foreign: %v", err)
		}
	}
}

// S101: only a file that still holds what was written is removed.
func TestRemoveOnlyOurs(t *testing.T) {
	dir := durabletest.Dir(t)
	d := open(t, dir, durable.Options{})
	if err := d.Remove("m.json", []byte("1")); durable.CodeOf(err) != durable.CodeReceipt || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if err := d.Publish("m.json", []byte("2")); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove("m.json", []byte("1")); durable.CodeOf(err) != durable.CodeReceipt || len(ls(t, dir)) != 1 {
		t.Errorf("changed: %v, left %v", err, ls(t, dir))
	}
	for _, step := range []durable.Step{durable.StepRemove, durable.StepSyncDir, durable.StepSyncRemoved} {
		if step == durable.StepSyncRemoved { // the sync before it failed, but the file is gone
			if err := d.Publish("m.json", []byte("2")); err != nil {
				t.Fatal(err)
			}
		}
		failing := open(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
			if s == step {
				return errDisk
			}
			return call()
		}})
		if err := failing.Remove("m.json", []byte("2")); !errors.Is(err, errDisk) || durable.CodeOf(err) != durable.CodeReceipt {
			t.Errorf("%s: %v", step, err)
		}
	}
	if len(ls(t, dir)) != 0 {
		t.Errorf("a removal whose sync failed has still happened here: %v", ls(t, dir))
	}
}
