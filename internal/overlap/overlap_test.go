package overlap

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// listing is a private document.
type listing struct {
	registry.Document
	versions []string
	dropped  int
}

func (l listing) Versions() (out []registry.Version) {
	for _, v := range l.versions {
		e := registry.Version{Version: v}
		if v != "" {
			e.Artifacts = []registry.Artifact{{File: "a-" + v + ".tgz"}}
		}
		out = append(out, e)
	}
	return out
}

func (l listing) Dropped() int { return l.dropped }

func open(t *testing.T, dir string) (*Book, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	b := Open(dir, slog.New(slog.NewTextHandler(log, nil)), obs.NewMetrics())
	t.Cleanup(b.Close)
	return b, log
}

func shadow(b *Book) *Names { return b.Mount(Options{Ecosystem: "npm", Shadow: true}) }

// R106: what the mirror copied hides nothing; one version from elsewhere does, and so does an entry
// that cannot be read. A name that is not there hides nothing.
func TestMirroredVersionsHideNothing(t *testing.T) {
	for _, c := range []struct {
		doc  registry.Document
		hide bool
	}{
		{nil, false},
		{listing{}, false},
		{listing{versions: []string{"1.0.0", "1.1.0"}}, false},
		{listing{versions: []string{"1.0.0", "2.0.0"}}, true},
		{listing{versions: []string{"2.0.0"}}, true},
		{listing{versions: []string{""}}, true}, // one without a file
		{listing{versions: []string{"1.0.0"}, dropped: 1}, true},
	} {
		dir := t.TempDir()
		worker, _ := open(t, dir)
		b, _ := open(t, dir)
		for _, v := range []string{"1.0.0", "1.1.0", ""} {
			worker.Copy("npm", "a", "a-"+v+".tgz")
		}
		worker.Copy("npm", "b", "a-2.0.0.tgz")
		worker.Copy("pypi", "a", "a-2.0.0.tgz")
		n := shadow(b)
		n.Private("a", c.doc)
		if n.Hide("a") != c.hide || n.Hide("b") {
			t.Errorf("%+v: hidden %t", c.doc, n.Hide("a"))
		}
		if c.doc != nil {
			n.Both("a", c.doc)
		}
		if merged := slices.Contains(b.Entries(), Entry{Ecosystem: "npm", Package: "a"}); merged != c.hide {
			t.Errorf("%+v: %v", c.doc, b.Entries())
		}
	}
	b, _ := open(t, t.TempDir())
	merge := b.Mount(Options{Ecosystem: "npm"})
	if merge.Private("a", listing{versions: []string{"1.0.0"}}); merge.Hide("a") || len(b.Entries()) != 0 {
		t.Error("merge hides")
	}
	if merge.Both("a", listing{versions: []string{"1.0.0"}}); len(b.Entries()) != 1 {
		t.Error("without a mirror every private version is from elsewhere")
	}
	var none *Names
	none.Private("a", listing{versions: []string{"1.0.0"}})
	none.Both("a", listing{versions: []string{"1.0.0"}})
	if none.Hide("a") {
		t.Error("nil hides")
	}
}

// R106: names are on the disk when Private returns, are found by the next process and by one that
// runs already, and a person can take one out.
func TestNamesAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data") // which nobody has made yet
	first, _ := open(t, dir)
	beside, _ := open(t, dir)
	doc := listing{versions: []string{"2.0.0"}}
	n := shadow(first)
	n.Private("@acme/b", doc)
	n.Private("a", doc)
	text, err := os.ReadFile(filepath.Join(dir, NamesFile))
	if err != nil || string(text) != "npm @acme/b\nnpm a\n" {
		t.Errorf("%q %v", text, err)
	}
	next, _ := open(t, dir)
	for what, b := range map[string]*Book{"the same": first, "one beside": beside, "the next": next} {
		if n := shadow(b); !n.Hide("a") || !n.Hide("@acme/b") || n.Hide("c") {
			t.Errorf("%s: %v", what, b.Entries())
		}
		if b.Mount(Options{Ecosystem: "pypi", Shadow: true}).Hide("a") {
			t.Errorf("%s: a name of another ecosystem", what)
		}
	}
	shadow(beside).Private("c", doc)
	if err := os.WriteFile(filepath.Join(dir, NamesFile), []byte("# a note of mine\nnpm   c\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := next.Entries(); !slices.Equal(got, []Entry{{"npm", "c", true}}) {
		t.Errorf("%v", got)
	}
	if shadow(next).Private("d", doc); !shadow(next).Hide("d") || shadow(next).Hide("b") {
		t.Errorf("%v", next.Entries())
	}
}

// Many requests see the same names at once, in two processes.
func TestNamesTogether(t *testing.T) {
	dir := t.TempDir()
	one, _ := open(t, dir)
	two, _ := open(t, dir)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			n := shadow([]*Book{one, two}[i%2])
			name := fmt.Sprintf("name-%d", i/4)
			if n.Private(name, listing{versions: []string{"1.0.0"}}); !n.Hide(name) {
				t.Error(name)
			}
			n.Both(name, listing{versions: []string{"1.0.0"}})
		})
	}
	all.Wait()
	text, err := os.ReadFile(filepath.Join(dir, NamesFile))
	if n := strings.Count(string(text), "\n"); n != 10 || err != nil {
		t.Errorf("%d names: %s %v", n, text, err)
	}
}

// A name that cannot be written down is hidden all the same until the process ends, which is said
// once, and written as soon as that works again.
func TestUnwritableNames(t *testing.T) {
	dir := t.TempDir()
	b, log := open(t, dir)
	n, doc, path := shadow(b), listing{versions: []string{"1.0.0"}}, filepath.Join(dir, NamesFile)
	n.Private("before", doc)
	if os.Remove(path) != nil || os.Mkdir(path, 0o700) != nil {
		t.Fatal(path)
	}
	if n.Hide("unknown") || !n.Hide("before") { // the first has the file looked at
		t.Error("what is known was forgotten when the file could not be read")
	}
	n.Private("a", doc)
	n.Private("b", doc)
	if !n.Hide("a") || !n.Hide("b") || strings.Count(log.String(), "level=ERROR") != 1 {
		t.Errorf("%v; log %s", b.Entries(), log)
	}
	if os.Remove(path) != nil || os.WriteFile(path, []byte("npm z\n"), 0o600) != nil {
		t.Fatal(path)
	}
	if !n.Hide("z") || !n.Hide("a") {
		t.Errorf("another process has written: %v", b.Entries())
	}
	n.Private("c", doc)
	again, _ := open(t, dir)
	for _, name := range []string{"a", "b", "c", "z"} {
		if !n.Hide(name) || !shadow(again).Hide(name) {
			t.Errorf("%s: %v, %v", name, b.Entries(), again.Entries())
		}
	}
}

// A name that could not be written down is written when there is room again, without another name
// to bring it along, and at the latest when the gate closes.
func TestUnwrittenNamesAreTriedAgain(t *testing.T) {
	doc := listing{versions: []string{"1.0.0"}}
	for way, again := range map[string]func(*Book, *Names){
		"asked later": func(_ *Book, n *Names) {
			n.Hide("a")
			time.Sleep(retryAfter)
			n.Hide("a")
		},
		"closed": func(b *Book, _ *Names) { b.Close() },
	} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				b, log := open(t, dir)
				n, path := shadow(b), filepath.Join(dir, NamesFile)
				if os.Mkdir(path, 0o700) != nil {
					t.Fatal(path)
				}
				n.Private("a", doc)
				if os.Remove(path) != nil {
					t.Fatal(path)
				}
				again(b, n)
				if content, err := os.ReadFile(path); string(content) != "npm a\n" || strings.Count(log.String(), "level=ERROR") != 1 {
					t.Errorf("%q %v, log %s", content, err, log)
				}
			})
		})
	}
}

// Without a data folder names are hidden until the process ends, and the memory for counted ones is
// bounded.
func TestNamesInMemory(t *testing.T) {
	b, log := open(t, "")
	n, doc := shadow(b), listing{versions: []string{"1.0.0"}}
	if n.Private("a", doc); !n.Hide("a") || n.Hide("b") {
		t.Error(b.Entries())
	}
	b.logger = obs.Discard() // a line for each
	for i := range maxMerged + 10 {
		n.Both(fmt.Sprint(i), doc)
	}
	if got := len(b.Entries()); got != maxMerged+1 || strings.Contains(log.String(), "ERROR") {
		t.Errorf("%d names; log %s", got, log)
	}
}
