package osv

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func zipped(t *testing.T, members map[string]string) string {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for name, text := range members {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.zip")
	write(t, path, buf.String())
	return path
}

func read(t *testing.T, path string) (texts []string, err error) {
	t.Helper()
	for data, err := range Export(path) {
		if err != nil {
			return texts, err
		}
		texts = append(texts, string(data))
	}
	slices.Sort(texts)
	return texts, nil
}

// A zip and a folder hold the same: every .json at any depth, and nothing else.
func TestExport(t *testing.T) {
	members := map[string]string{"a.json": "1", "deep/er/b.json": "2", "readme.txt": "no", "json": "no"}
	folder := t.TempDir()
	for name, text := range members {
		write(t, filepath.Join(folder, name), text)
	}
	if err := os.Symlink(filepath.Join(folder, "readme.txt"), filepath.Join(folder, "link.json")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, zipped(t, members)} {
		if texts, err := read(t, path); err != nil || !slices.Equal(texts, []string{"1", "2"}) {
			t.Errorf("%s: %q, %v", path, texts, err)
		}
		for range Export(path) {
			break // stopping early is no error
		}
	}
}

func TestBadExports(t *testing.T) {
	truncated := zipped(t, map[string]string{"a.json": strings.Repeat("1", 1000)})
	whole, _ := os.ReadFile(truncated)
	write(t, truncated, string(whole[:len(whole)/2]))
	text := filepath.Join(t.TempDir(), "x.zip")
	write(t, text, "no zip")
	for _, path := range []string{"testdata/absent", truncated, text} {
		if texts, err := read(t, path); err == nil {
			t.Errorf("%s: %q", path, texts)
		}
	}
}

// A member that lies about its content comes as no record, not as half of one.
func TestDamagedMember(t *testing.T) {
	path := zipped(t, map[string]string{"a.json": strings.Repeat("x", 200)})
	whole, _ := os.ReadFile(path)
	at := bytes.Index(whole, []byte("a.json")) + len("a.json") + 3
	whole[at] ^= 0xff
	write(t, path, string(whole))
	if texts, err := read(t, path); err != nil || len(texts) != 1 || texts[0] != "" {
		t.Errorf("%.20q, %v", texts, err)
	}
}

// Bounds: one member that unpacks to more than a record may have, and more members or bytes than an
// export may have.
func TestBounds(t *testing.T) {
	path := zipped(t, map[string]string{"bomb.json": strings.Repeat("0", maxRecord+1), "a.json": "1", "b.json": "2"})
	if texts, err := read(t, path); err != nil || !slices.Equal(texts, []string{"", "1", "2"}) {
		t.Errorf("%.20q, %v", texts, err)
	}
	for _, b := range []*budget{{records: 2, bytes: 100}, {records: 3, bytes: 1}} {
		if err := b.zip(path, func([]byte, error) bool { return true }); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

func TestFingerprint(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "a.json"), "1")
	first, err := Fingerprint(folder)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "readme.txt"), "no matter")
	if same, _ := Fingerprint(folder); same != first {
		t.Errorf("%s after %s", same, first)
	}
	write(t, filepath.Join(folder, "b.json"), "")
	second, _ := Fingerprint(folder)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(folder, "a.json"), later, later); err != nil {
		t.Fatal(err)
	}
	third, _ := Fingerprint(folder)
	if first == second || second == third {
		t.Errorf("%s, %s, %s", first, second, third)
	}
	if _, err := Fingerprint(filepath.Join(folder, "absent")); err == nil {
		t.Error("absent")
	}
}
