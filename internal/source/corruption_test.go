package source_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"

	"github.com/ecluse-gate/ecluse/internal/source"
)

// corrupted is a world whose journal holds every type of entry, with every restriction passed: a
// resume of it as it is plans the third file.
func corrupted(t *testing.T, f func(t *testing.T, w *world)) {
	inWorld(t, three, func(t *testing.T, w *world) {
		out := w.created(rules([3]string{"POST files", "1", throttle2}, [3]string{"POST files", "3", throttle60}))
		filesAre(t, out, "accepted/confirmed", "rejected/failed", "not_attempted/")
		time.Sleep(2 * time.Minute)
		w.script(`[]`)
		if _, out := w.tool().Resume(t.Context(), w.copied("sound"), ""); out.Status != source.StatusPlanned {
			t.Fatalf("the sound journal: %+v", out)
		}
		w.requests()
		w.tokens.Store(0)
		f(t, w)
		w.saw()
		if n := w.tokens.Load(); n != 0 {
			t.Errorf("%d tokens were asked for", n)
		}
	})
}

func (w *world) entries() []string {
	list, err := os.ReadDir(w.path("journal"))
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// copied is the journal in a folder of its own.
func (w *world) copied(name string) string {
	w.t.Helper()
	dir := w.path("copies/" + name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	for _, n := range w.entries() {
		data, err := os.ReadFile(w.path("journal/" + n))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, n), data, 0o600)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	data, err := os.ReadFile(w.path("journal.head"))
	if err == nil {
		err = os.WriteFile(dir+".head", data, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return dir
}

func (w *world) refused(dir, what string, codes ...string) {
	w.t.Helper()
	_, out := w.tool().Resume(w.t.Context(), dir, "")
	if out.Status != source.StatusBlocked || !slices.Contains(codes, out.Code) {
		w.t.Errorf("%s: %s %s (%s), want one of %v", what, out.Status, out.Code, out.Message, codes)
	}
	_ = os.RemoveAll(dir)
}

const (
	invalid = "file-upload-evidence-invalid"
	missing = "file-upload-provenance-missing"
)

// S115, S116: each file removed, truncated, emptied, linked, opened to others, copied to another
// number, renamed.
func TestCorruptFiles(t *testing.T) {
	corrupted(t, func(t *testing.T, w *world) {
		removed := map[string]string{
			"run.json": missing, "source-ack.json": missing, "attempt-0000.json": invalid, "attempt-0001.json": invalid, "result-0000.json": invalid,
			"retry-attempt-0000.json": invalid, "retry-result-0000.json": invalid, "backoff-0000.json": invalid, "backoff-0001.json": invalid,
		}
		for i, name := range w.entries() {
			at := func(kind string) (string, string, string) {
				dir := w.copied(fmt.Sprintf("%d-%s", i, kind))
				return dir, filepath.Join(dir, name), kind + " " + name
			}
			if dir, file, what := at("removed"); removed[name] != "" {
				must(t, os.Remove(file))
				w.refused(dir, what, removed[name])
			}
			for _, keep := range []int64{0, 1, 100} {
				dir, file, what := at(fmt.Sprint("truncated-", keep))
				must(t, os.Truncate(file, keep))
				w.refused(dir, what, invalid)
			}
			dir, file, what := at("hardlinked")
			must(t, os.Link(file, w.path("copies/link")))
			w.refused(dir, what, invalid)
			must(t, os.Remove(w.path("copies/link")))
			dir, file, what = at("symlinked")
			must(t, os.Rename(file, w.path("copies/real")))
			must(t, os.Symlink(w.path("copies/real"), file))
			w.refused(dir, what, invalid)
			dir, file, what = at("opened")
			must(t, os.Chmod(file, 0o640))
			w.refused(dir, what, invalid)
			dir, file, what = at("renamed")
			must(t, os.Rename(file, filepath.Join(dir, "other.json")))
			w.refused(dir, what, invalid, missing)
			dir, file, what = at("copied")
			data, _ := os.ReadFile(file)
			must(t, os.WriteFile(filepath.Join(dir, strings.NewReplacer("-0000", "-0002", "-0001", "-0002").Replace("copy-of-"+name)), data, 0o600))
			w.refused(dir, what, invalid)
			if strings.Contains(name, "-000") {
				dir, _, what = at("renumbered")
				must(t, os.WriteFile(filepath.Join(dir, strings.NewReplacer("-0000", "-0002", "-0001", "-0002").Replace(name)), data, 0o600))
				w.refused(dir, what, invalid)
			}
		}
		dir := w.copied("folder")
		must(t, os.Mkdir(filepath.Join(dir, "attempt-0002.json"), 0o700))
		w.refused(dir, "a folder for an entry", invalid)
		dir = w.copied("crowd")
		for i := range 1003 {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("x%d", i)), []byte("x"), 0o600))
		}
		w.refused(dir, "more than 1003 files", missing) // S114
		dir = w.copied("pending")
		must(t, os.WriteFile(filepath.Join(dir, "pending-request.json"), []byte("{}"), 0o600))
		w.refused(dir, "an empty marker", invalid)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// S115: each field of each entry changed and left so: the integrity tells. Then the integrity is
// made right again: the bindings tell, or the chain, or the head.
func TestCorruptFields(t *testing.T) {
	corrupted(t, func(t *testing.T, w *world) {
		flips := 0
		for i, name := range w.entries() {
			whole := readJSON(t, w.path("journal/"+name))
			for _, path := range leaves("", whole) {
				flips++
				for _, sealed := range []bool{false, true} {
					changed := clone(whole)
					if !flip(changed, strings.Split(path, ".")) {
						t.Fatalf("%s has no %s", name, path)
					}
					if sealed {
						if path == "integrity" || path == "schema_version" || path == "kind" {
							continue
						}
						digest, err := strictjson.Digest(changed["payload"])
						must(t, err)
						changed["integrity"] = digest
					}
					data, err := strictjson.Canonical(changed)
					must(t, err)
					dir := w.copied(fmt.Sprintf("%d-%d-%v", i, flips, sealed))
					must(t, os.WriteFile(filepath.Join(dir, name), append(data, '\n'), 0o600))
					w.refused(dir, fmt.Sprintf("%s %s, sealed %v", name, path, sealed), invalid, missing)
				}
			}
		}
		if flips < 80 {
			t.Errorf("only %d fields were tried", flips)
		}
	})
}

// leaves names every value of a document that is no object or list with members.
func leaves(path string, node any) []string {
	var all []string
	switch v := node.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = append(all, leaves(strings.TrimPrefix(path+"."+k, "."), v[k])...)
		}
	case []any:
		for i, item := range v {
			all = append(all, leaves(fmt.Sprintf("%s.%d", path, i), item)...)
		}
	default:
		return []string{path}
	}
	return all
}

func clone(m map[string]any) map[string]any {
	data, _ := json.Marshal(m)
	var c map[string]any
	_ = json.Unmarshal(data, &c)
	return c
}

// flip changes one value to another of its type, null to a text.
func flip(node any, path []string) bool {
	var value any
	var set func(any)
	switch v := node.(type) {
	case map[string]any:
		value, set = v[path[0]], func(x any) { v[path[0]] = x }
	case []any:
		i := 0
		_, _ = fmt.Sscan(path[0], &i)
		value, set = v[i], func(x any) { v[i] = x }
	default:
		return false
	}
	if len(path) > 1 {
		return flip(value, path[1:])
	}
	switch v := value.(type) {
	case nil:
		set("x")
	case bool:
		set(!v)
	case float64:
		set(v + 1)
	case string:
		if v == "" {
			set("x")
			return true
		}
		last := byte('0')
		if v[len(v)-1] == '0' {
			last = '1'
		}
		set(v[:len(v)-1] + string(last))
	default:
		return false
	}
	return true
}
