//go:build linux || darwin

package durable_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/durable/durabletest"
)

// S95.
func TestCheckLeaf(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "backoff-0000.json": true, "A_b-c.9": true, strings.Repeat("a", 200): true, "com": true, "com10.x": true, "console": true,
		"": false, strings.Repeat("a", 201): false, ".a": false, "-a": false, "_a": false, "a.": false, "a/b": false, "a b": false, "é": false, "a\x00": false,
		"..": false, "con": false, "CON.json": false, "nul.tar.gz": false, "com1": false, "LPT9.txt": false, "aux": false,
	} {
		if err := durable.CheckLeaf(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// S93: every weakness of the folder and of its ancestors.
func TestPrivateDirectory(t *testing.T) {
	base := durabletest.Dir(t)
	mk := func(mode fs.FileMode, parts ...string) string {
		p := filepath.Join(append([]string{base}, parts...)...)
		if err := os.MkdirAll(p, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(mk(0o700, "target", "inner"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(base, "target"), filepath.Join(base, "via")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mk(0o700, "sticky", "inner")
	mk(0o700, "grouped", "inner")
	cases := map[string]bool{
		mk(0o700, "good"):                       true,
		mk(0o700, "readable", "inner"):          true,
		mk(0o755, "readable"):                   false, // as the folder itself
		mk(0o710, "searchable"):                 false,
		mk(0o1777|fs.ModeSticky, "sticky"):      false,
		filepath.Join(base, "sticky", "inner"):  false, // a world-writable ancestor, sticky or not
		mk(0o770, "grouped"):                    false,
		filepath.Join(base, "grouped", "inner"): false,
		link:                                    false,
		filepath.Join(base, "via", "inner"):     false,
		file:                                    false,
		filepath.Join(base, "absent"):           false,
		"relative":                              false,
		base + "/good/":                         false,
		base + "/good/../good":                  false,
		"/":                                     false,
	}
	// some machines have a private one
	if info, err := os.Stat(os.TempDir()); err == nil && info.Mode().Perm()&0o002 != 0 {
		cases[os.TempDir()] = false
	}
	for path, ok := range cases {
		d, err := durable.Open(path, durable.Options{})
		if err == nil {
			d.Close()
		}
		if (err == nil) != ok || !ok && durable.CodeOf(err) != durable.CodeDirectory {
			t.Errorf("%s: %v, want ok=%v", path, err, ok)
		}
	}
	if os.Geteuid() == 0 {
		other := mk(0o700, "other")
		inner := mk(0o700, "other", "inner")
		if err := os.Chown(inner, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := durable.Open(inner, durable.Options{}); durable.CodeOf(err) != durable.CodeDirectory {
			t.Errorf("a stranger's folder: %v", err)
		}
		if err := errors.Join(os.Chown(inner, 0, -1), os.Chown(other, 12345, -1)); err != nil {
			t.Fatal(err)
		}
		if _, err := durable.Open(inner, durable.Options{}); durable.CodeOf(err) != durable.CodeDirectory {
			t.Errorf("below a stranger's folder: %v", err)
		}
	}
}

// Make creates the folder privately, accepts a good existing one, and refuses a bad one; its parent
// is never created.
func TestMake(t *testing.T) {
	base := durabletest.Dir(t)
	path := filepath.Join(base, "new")
	for range 2 {
		d, err := durable.Make(path, durable.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
	if _, err := durable.Make(filepath.Join(base, "a", "b"), durable.Options{}); durable.CodeOf(err) != durable.CodeDirectory {
		t.Errorf("missing parent: %v", err)
	}
	for _, step := range []durable.Step{durable.StepMkdir, durable.StepSyncParent} {
		_, err := durable.Make(filepath.Join(base, string(step)), durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
			if s == step {
				return errDisk
			}
			return call()
		}})
		if !errors.Is(err, errDisk) || durable.CodeOf(err) != durable.CodeReceipt {
			t.Errorf("%s: %v", step, err)
		}
	}
}

// A process killed between link and unlink leaves a whole file with two names: readable, and
// finished by Settle. A temporary file without a second name was never published and stays (S97).
func TestSettle(t *testing.T) {
	dir := durabletest.Dir(t)
	killed := errors.New("killed")
	for name, step := range map[string]durable.Step{"linked": durable.StepUnlinkTemp, "unlinked": durable.StepLink} {
		d := open(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
			if s == step {
				panic(killed) // the process is gone: no cleanup runs
			}
			return call()
		}})
		func() {
			defer func() {
				if r := recover(); r != killed { //nolint:errorlint // identity
					t.Fatal(r)
				}
			}()
			_ = d.Publish(name, []byte(name))
		}()
	}
	d := open(t, dir, durable.Options{})
	if got, err := d.Read("linked", 100); err != nil || string(got) != "linked" {
		t.Fatalf("before settling: %q %v", got, err)
	}
	names, temps, err := d.List(10)
	if err != nil || !slices.Equal(names, []string{"linked"}) || len(temps) != 2 {
		t.Fatalf("%v %v %v", names, temps, err)
	}
	warnings, err := d.Settle()
	if err != nil || len(warnings) != 1 {
		t.Fatalf("%v %v", warnings, err)
	}
	if got := ls(t, dir); len(got) != 2 || !slices.Contains(got, "linked") {
		t.Errorf("settled to %v", got)
	}
	if got, err := d.Read("linked", 100); err != nil || string(got) != "linked" {
		t.Errorf("after settling: %q %v", got, err)
	}
	// Somebody's own second link is no leftover.
	if err := os.Link(filepath.Join(dir, "linked"), filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read("linked", 100); durable.CodeOf(err) != durable.CodeUnsafe {
		t.Errorf("a linked file was read: %v", err)
	}
}

// The listing is bounded.
func TestListBound(t *testing.T) {
	dir := durabletest.Dir(t)
	for i := range 4 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, dir, durable.Options{})
	if _, _, err := d.List(3); durable.CodeOf(err) != durable.CodeUnsafe {
		t.Errorf("got %v", err)
	}
	if names, _, err := d.List(4); err != nil || len(names) != 4 {
		t.Errorf("got %v %v", names, err)
	}
}

// S152: a second process is refused at once while a first one writes, readers share, and the lock
// dies with its holder.
func TestLock(t *testing.T) {
	if dir := os.Getenv("DURABLE_TEST_LOCK"); dir != "" {
		d, err := durable.Open(dir, durable.Options{})
		if err == nil {
			err = d.Lock(os.Getenv("DURABLE_TEST_SHARED") != "")
		}
		fmt.Printf("code=%q\n", durable.CodeOf(err))
		return
	}
	dir := durabletest.Dir(t)
	other := func(shared string) string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLock$", "-test.v")
		cmd.Env = append(os.Environ(), "DURABLE_TEST_LOCK="+dir, "DURABLE_TEST_SHARED="+shared)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, rest, _ := strings.Cut(string(out), "code=")
		code, _, _ := strings.Cut(rest, "\n")
		return code
	}
	d := open(t, dir, durable.Options{})
	if err := d.Lock(false); err != nil {
		t.Fatal(err)
	}
	for _, shared := range []string{"", "1"} {
		if got := other(shared); got != `"journal-locked"` {
			t.Errorf("shared=%q beside a writer: %s", shared, got)
		}
	}
	again := open(t, dir, durable.Options{})
	if err := again.Lock(false); durable.CodeOf(err) != durable.CodeLocked {
		t.Errorf("the same process: %v", err)
	}
	d.Close()
	if err := again.Lock(true); err != nil {
		t.Fatal(err)
	}
	if got := other("1"); got != `""` {
		t.Errorf("two readers: %s", got)
	}
	if got := other(""); got != `"journal-locked"` {
		t.Errorf("a writer beside a reader: %s", got)
	}
}

// A folder that was closed is free at once, also while other goroutines start child processes:
// between fork and exec a child holds a copy of every descriptor, and a lock lives as long as its
// last copy (S152).
func TestLockEndsWithClose(t *testing.T) {
	dir := durabletest.Dir(t)
	durabletest.StartChildren(t)
	for i := range 3000 {
		d, err := durable.Open(dir, durable.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Lock(false); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// S96, S94: sizes.
func TestSizes(t *testing.T) {
	d := open(t, durabletest.Dir(t), durable.Options{})
	for size, ok := range map[int]bool{0: false, 1: true, durable.MaxRecord: true, durable.MaxRecord + 1: false} {
		if err := d.Publish(fmt.Sprint("s", size), make([]byte, size)); (err == nil) != ok {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
