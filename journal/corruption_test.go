package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/strictjson"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

// damaged copies a journal, damages the copy, and says what the next run says about it. Nothing
// that is read is changed.
func damaged(t *testing.T, from string, damage func(dir string) error) string {
	t.Helper()
	dir := journaltest.Dir(t)
	for name, data := range contents(t, from) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	withHead(t, from, dir)
	if err := damage(dir); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	got := read(dir)
	if after := contents(t, dir); !equal(before, after) {
		t.Error("reading changed the folder")
	}
	if j, err := journal.Open(dir, layout, journal.Options{}); err == nil {
		// What a reader accepts, a writer accepts, with the same verdict; and the other way round.
		if v := verdict(j.Record(), nil, reviewTime); v != got {
			t.Errorf("a reader says %q, a writer %q", got, v)
		}
		j.Close()
	} else if codeOf(err) != got {
		t.Errorf("a reader says %q, a writer %v", got, err)
	}
	return got
}

// withHead copies what is kept beside a journal's folder.
func withHead(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from + ".head")
	if err == nil {
		err = os.WriteFile(to+".head", data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(to + ".head") })
}

func contents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, e := range list {
		if e.Type().IsRegular() {
			if all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

func equal(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for name := range a {
		if !bytes.Equal(a[name], b[name]) {
			return false
		}
	}
	return true
}

const (
	invalid = "file-upload-evidence-invalid"
	missing = "file-upload-provenance-missing"
)

// withMarker is a complete journal that was interrupted in another request, so that every kind of
// file is there.
func withMarker(t testing.TB) string {
	t.Helper()
	s := start(journaltest.Dir(t)+"/j", unsynced)
	calls := script()
	if _, err := s.play(calls[:17]); err != nil { // ends behind "begin GET", after two restrictions
		t.Fatal(err)
	}
	return s.dir
}

// S114 to S116, issue 3: each file removed, emptied, truncated anywhere, extended, duplicated,
// renamed, linked, replaced by a folder, opened to others: refused with the right code.
func TestCorruptFiles(t *testing.T) {
	good := withMarker(t)
	if v := read(good); v != "unresolved: pending-request" {
		t.Fatal(v)
	}
	files := contents(t, good)
	names := sortedNames(files)
	if len(names) != 9 {
		t.Fatalf("files: %v", names)
	}
	outside := filepath.Join(journaltest.Dir(t), "outside")
	for _, name := range names {
		data := files[name]
		at := func(dir, name string) string { return filepath.Join(dir, name) }
		write := func(data []byte) func(string) error {
			return func(dir string) error { return os.WriteFile(at(dir, name), data, 0o600) }
		}
		damages := map[string]func(dir string) error{
			"empty":    write(nil),
			"extended": write(append(slices.Clone(data), '{', '}')),
			"half":     write(data[:len(data)/2]),
			"last":     write(data[:len(data)-2]),
			"binary":   write([]byte{0xff, 0xfe, 0}),
			"spoilt":   write(bytes.Replace(data, []byte(`"sha256:`), []byte(`"sha257:`), 1)),
			"linked": func(dir string) error {
				_ = os.Remove(outside)
				return os.Link(at(dir, name), outside)
			},
			"moved and linked": func(dir string) error {
				return errors.Join(os.Rename(at(dir, name), at(dir, "x")), os.Symlink("x", at(dir, name)))
			},
			"folder": func(dir string) error { return errors.Join(os.Remove(at(dir, name)), os.Mkdir(at(dir, name), 0o700)) },
			"opened": func(dir string) error { return os.Chmod(at(dir, name), 0o640) },
			"copied": func(dir string) error { return os.WriteFile(at(dir, "copy-of-"+name), data, 0o600) },
			"copied hidden": func(dir string) error {
				return os.WriteFile(at(dir, "."+name), data, 0o600)
			},
			"next number": func(dir string) error { return os.WriteFile(at(dir, next(name)), data, 0o600) },
		}
		for what, damage := range damages {
			if got := damaged(t, good, damage); got != invalid {
				t.Errorf("%s %s: %q", name, what, got)
			}
		}
	}
}

// next is the name that follows in the series, or one that no series has.
func next(name string) string {
	for n := range 9 {
		if suffix := fmt.Sprintf("-%04d.json", n); strings.HasSuffix(name, suffix) {
			return strings.TrimSuffix(name, suffix) + "-0007.json"
		}
	}
	return strings.TrimSuffix(name, ".json") + "-0000.json"
}

// S114, S116: each file taken away. Of a result at the very end its attempt tells. Only the marker
// is not noticed, which is the documented limit.
func TestRemovedFiles(t *testing.T) {
	good := withMarker(t)
	for _, name := range sortedNames(contents(t, good)) {
		want := invalid
		switch name {
		case "run.json", "source-ack.json":
			want = missing
		case pendingName:
			want = "waiting"
		}
		if got := damaged(t, good, func(dir string) error { return os.Remove(filepath.Join(dir, name)) }); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// S115: two files of a series exchanged.
func TestExchangedFiles(t *testing.T) {
	good := withMarker(t)
	for _, name := range []string{"attempt", "result", "backoff"} {
		got := damaged(t, good, func(dir string) error {
			a, b := filepath.Join(dir, journal.Numbered(name, 0)), filepath.Join(dir, journal.Numbered(name, 1))
			return errors.Join(os.Rename(a, a+"x"), os.Rename(b, a), os.Rename(a+"x", b))
		})
		if got != invalid {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// S115, issue 3: each field of each record flipped, or taken away, or another one added. With the
// integrity left as it was everything is noticed. With the integrity worked out again, as somebody
// who edits by hand would do, everything that something else is bound to is.
func TestFlippedFields(t *testing.T) {
	good := withMarker(t)
	// What a plain hash cannot show when it is worked out again: facts that nothing else in the
	// journal repeats.
	unbound := map[string]bool{
		"pending-request.json payload.nonce":      true,
		"pending-request.json payload.method":     true,
		"pending-request.json payload.url_digest": true,
	}
	flipped := 0
	for name, data := range contents(t, good) {
		file := filepath.Join(good, name)
		for _, path := range paths(t, data) {
			for what, change := range changes {
				for _, again := range []bool{false, true} {
					spoilt, ok := edit(t, data, path, change, again)
					if !ok {
						continue
					}
					flipped++
					if err := os.WriteFile(file, spoilt, 0o600); err != nil {
						t.Fatal(err)
					}
					got := read(good)
					where := name + " " + strings.Join(path, ".")
					if hidden := again && unbound[where] && what == "flip"; got != invalid && !hidden {
						t.Errorf("%s: %s, integrity worked out again: %v: %q", where, what, again, got)
					}
				}
			}
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if v := read(good); v != "unresolved: pending-request" {
		t.Errorf("the journal was not restored: %q", v)
	}
	if flipped < 300 {
		t.Errorf("only %d edits", flipped)
	}
}

func sortedNames(m map[string][]byte) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// paths lists the way to every member of a document.
func paths(t *testing.T, data []byte) (all [][]string) {
	t.Helper()
	var walk func(prefix []string, v any)
	walk = func(prefix []string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		for k, item := range m {
			p := append(slices.Clone(prefix), k)
			all = append(all, p)
			walk(p, item)
		}
	}
	walk(nil, parse(t, data))
	return all
}

func parse(t *testing.T, data []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// changes are the edits; each gives false where it does not apply.
var changes = map[string]func(m map[string]any, key string) bool{
	"flip": func(m map[string]any, key string) bool {
		switch v := m[key].(type) {
		case string:
			m[key] = flipText(v)
		case json.Number:
			n, _ := v.Int64()
			m[key] = n + 2 // one more second is the fraction that a receipt drops
		case nil:
			m[key] = strings.Repeat("0", 32)
		case bool:
			m[key] = !v
		default:
			return false
		}
		return true
	},
	"remove": func(m map[string]any, key string) bool { delete(m, key); return true },
	"rename": func(m map[string]any, key string) bool {
		m[strings.ToUpper(key[:1])+key[1:]] = m[key]
		delete(m, key)
		return true
	},
	"add": func(m map[string]any, key string) bool { m[key+"2"] = m[key]; return true },
	"number": func(m map[string]any, key string) bool {
		_, ok := m[key].(json.Number)
		m[key] = 1.5
		return !ok || true
	},
	"truth": func(m map[string]any, key string) bool { before := m[key]; m[key] = true; return before != true },
	"list":  func(m map[string]any, key string) bool { m[key] = []any{}; return true },
}

// flipText changes text in a way that keeps its form: a digest stays one, a known word becomes
// another one.
func flipText(s string) string {
	words := map[string]string{"GET": "HEAD", "PUT": "POST", "POST": "PUT", "seconds": "missing", "overlong": "seconds", "response-headers": "typed-metadata"}
	if w, ok := words[s]; ok {
		return w
	}
	last := byte('0')
	if s != "" && s[len(s)-1] == '0' {
		last = '1'
	}
	if s == "" {
		return "x"
	}
	return s[:len(s)-1] + string(last)
}

// edit makes one change; again works the integrity out anew.
func edit(t *testing.T, data []byte, path []string, change func(map[string]any, string) bool, again bool) ([]byte, bool) {
	t.Helper()
	doc := parse(t, data)
	m := doc
	for _, k := range path[:len(path)-1] {
		m = m[k].(map[string]any)
	}
	if !change(m, path[len(path)-1]) {
		return nil, false
	}
	if again {
		if path[0] == "integrity" || doc["payload"] == nil {
			return nil, false
		}
		digest, err := strictjson.Digest(doc["payload"])
		if err != nil {
			t.Fatal(err)
		}
		doc["integrity"] = digest
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out, !bytes.Equal(out, data)
}
