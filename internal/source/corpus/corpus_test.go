//go:build unix

package corpus_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source/corpus"
)

// realTemp is t.TempDir with links resolved: S68 refuses a link anywhere, also one that the machine
// put there.
func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func codeOf(err error) string {
	if e, ok := errors.AsType[*corpus.Error](err); ok {
		return e.Code
	}
	return ""
}

// S68, S69
func TestCheckPath(t *testing.T) {
	for _, good := range []string{"a.txt", "a/b c/d.md", "monkey.txt", "keys/readme.md", "environment.txt", ".envoy", "çà/é.txt", "credentials.md"} {
		if err := corpus.CheckPath(good); err != nil {
			t.Errorf("%q refused: %v", good, err)
		}
	}
	for name, code := range map[string]string{
		"": corpus.CodePath, "/a": corpus.CodePath, "a//b": corpus.CodePath, "a/": corpus.CodePath, ".": corpus.CodePath,
		"a/../b": corpus.CodePath, "./a": corpus.CodePath, `a\b`: corpus.CodePath, "c:/a": corpus.CodePath, "a:b": corpus.CodePath,
		"a\nb": corpus.CodePath, "a\rb": corpus.CodePath, "a\x00b": corpus.CodePath, "\xff": corpus.CodePath,
		strings.Repeat("x", 1025): corpus.CodePath,
		".ssh/known_hosts":        corpus.CodeCredential, "a/.aws/config": corpus.CodeCredential, ".azure/x": corpus.CodeCredential,
		".git/HEAD": corpus.CodeCredential, "a/Credentials": corpus.CodeCredential, ".env": corpus.CodeCredential,
		".ENV.local": corpus.CodeCredential, "id_rsa": corpus.CodeCredential, "x/id_ed25519": corpus.CodeCredential,
		"a.pem": corpus.CodeCredential, "a.KEY": corpus.CodeCredential, "a.pfx": corpus.CodeCredential, "a.p12": corpus.CodeCredential,
		"a.kdbx": corpus.CodeCredential,
	} {
		if got := codeOf(corpus.CheckPath(name)); got != code {
			t.Errorf("%.40q: code %q, want %q", name, got, code)
		}
	}
}

// S68
func TestOpenRootRefuses(t *testing.T) {
	dir := realTemp(t)
	put(t, dir, "real/a.txt", "a")
	if err := os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	if _, err := corpus.OpenRoot(filepath.Join(dir, "real")); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", "real", dir + "/real/", dir + "/./real", dir + "/x/../real", dir + "/absent", dir + "/real/a.txt",
		dir + "/link", dir + "/link/sub",
	} {
		_, err := corpus.OpenRoot(bad)
		if codeOf(err) != corpus.CodeRoot {
			t.Errorf("%q: %v", bad, err)
		}
		if err != nil && strings.Contains(err.Error(), dir) { // S146
			t.Errorf("the refusal names the local root: %v", err)
		}
	}
}

// S68, S70
func TestScanRefuses(t *testing.T) {
	dir := realTemp(t)
	put(t, dir, "ok.txt", "hello")
	put(t, dir, "empty.txt", "")
	put(t, dir, "big.txt", "123456")
	put(t, dir, "sub/in.txt", "x")
	put(t, dir, "secret.txt", "x")
	if err := errors.Join(os.Symlink("ok.txt", dir+"/link.txt"), os.Symlink("sub", dir+"/dirlink"),
		syscall.Mkfifo(dir+"/fifo", 0o600), os.Chmod(dir+"/secret.txt", 0)); err != nil {
		t.Skip(err)
	}
	root, err := corpus.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]string{
		"empty.txt": corpus.CodeSize, "big.txt": corpus.CodeSize, "link.txt": corpus.CodeUnreadable, "dirlink/in.txt": corpus.CodeUnreadable,
		"fifo": corpus.CodePath, "sub": corpus.CodePath, "absent.txt": corpus.CodeUnreadable, "../x": corpus.CodePath,
	} {
		if _, err := root.Scan(t.Context(), name, 5); codeOf(err) != code {
			t.Errorf("%s: %v, want %s", name, err, code)
		}
	}
	if os.Getuid() != 0 {
		if _, err := root.Scan(t.Context(), "secret.txt", 5); codeOf(err) != corpus.CodeUnreadable {
			t.Errorf("secret.txt: %v", err)
		}
	}
	f, err := root.Scan(t.Context(), "ok.txt", 5)
	if err != nil || f.Size != 5 || f.SHA256 != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
		t.Errorf("ok.txt: %+v, %v", f, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := root.Scan(ended, "ok.txt", 5); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// S70: every way in which a file can differ from what was approved is noticed by Check, and by Stat
// and Open unless size and time were restored.
func TestDrift(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(file string) error
		code   string
		// sneaky changes restore size and time, so that only the digest tells.
		sneaky bool
	}{
		{"appended", func(f string) error { return appendTo(f, "x") }, corpus.CodeDrift, false},
		{"truncated", func(f string) error { return os.Truncate(f, 2) }, corpus.CodeDrift, false},
		{"emptied", func(f string) error { return os.Truncate(f, 0) }, corpus.CodeDrift, false},
		{"touched", func(f string) error { return os.Chtimes(f, time.Unix(9, 9), time.Unix(9, 9)) }, corpus.CodeDrift, false},
		{"removed", os.Remove, corpus.CodeUnreadable, false},
		{"linked", func(f string) error {
			return errors.Join(os.Rename(f, f+"2"), os.Symlink(f+"2", f))
		}, corpus.CodeUnreadable, false},
		{"rewritten", func(f string) error { return rewrite(f, "HELLO") }, corpus.CodeDrift, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := realTemp(t)
			put(t, dir, "a.txt", "hello")
			root, _ := corpus.OpenRoot(dir)
			known, err := root.Scan(t.Context(), "a.txt", 100)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.change(dir + "/a.txt"); err != nil {
				t.Fatal(err)
			}
			if err := root.Check(t.Context(), known); codeOf(err) != tt.code {
				t.Errorf("Check: %v", err)
			}
			if err := root.Stat(known); !tt.sneaky && codeOf(err) != tt.code {
				t.Errorf("Stat: %v", err)
			}
			if r, err := root.Open(known); !tt.sneaky {
				if codeOf(err) != tt.code {
					t.Errorf("Open: %v", err)
				}
			} else if err == nil {
				r.Close()
			}
		})
	}
}

func TestOpenReadsAll(t *testing.T) {
	dir := realTemp(t)
	content := strings.Repeat("abc", 50_000)
	put(t, dir, "d/a.txt", content)
	root, _ := corpus.OpenRoot(dir)
	known, _ := root.Scan(t.Context(), "d/a.txt", 1<<20)
	r, err := root.Open(known)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != content {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func rewrite(file, text string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chtimes(file, info.ModTime(), info.ModTime()))
}
