package documents

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// A start takes over what an earlier process kept, with its age (C61, R87); what is damaged, too
// old a format or another upstream's is not used, and what has gone is not kept.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	toy.Inside(t, func(t *testing.T, w *toy.World) {
		start := func(change func(*Options)) (d *Documents, stop func()) {
			o := options(w)
			if change != nil {
				change(&o)
			}
			o.Archive = OpenArchive(ArchiveOptions{Path: dir, MaxBytes: 64 << 20})
			return New(o), o.Archive.Close
		}
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		d, stop := start(nil)
		get(t, d, "a", time.Minute, Fresh, 1)
		stop()
		time.Sleep(30 * time.Second)
		d, stop = start(nil)
		if got := get(t, d, "a", time.Minute, Fresh, 1); got.Confirmed || time.Since(got.Document.Checked()).Round(time.Second) != 30*time.Second {
			t.Errorf("checked %v, now %v", got.Document.Checked(), time.Now())
		}
		w.Sent(1)
		time.Sleep(time.Minute)
		get(t, d, "a", time.Minute, Fresh, 1) // by a 304
		stop()
		w.Throttle(60)
		time.Sleep(2 * time.Minute)
		d, stop = start(nil)
		get(t, d, "a", time.Minute, Retained, 1)
		failure[*refusal.Unavailable](t, d, "b")
		stop()
		// another upstream
		d, stop = start(func(o *Options) { o.Public = w.PublicUpstream(toy.FilesHost) })
		failure[*refusal.Unavailable](t, d, "a")
		stop()
		d, stop = start(func(o *Options) {
			o.Protocol.Scan = func(registry.Package, registry.Source) (registry.Document, error) { return nil, registry.ErrMalformed }
		})
		failure[*refusal.Unavailable](t, d, "a")
		if !w.Logged("unusable cached document") {
			t.Error("nothing is said of it")
		}
		stop()
		d, stop = start(nil)
		failure[*refusal.Unavailable](t, d, "a") // it was forgotten
		time.Sleep(2 * time.Minute)
		w.Public.Answer(nil)
		get(t, d, "a", 0, Fresh, 1)
		w.Public.Always(http.StatusNotFound)
		get(t, d, "a", 0, Absent, 0)
		stop()
		d, stop = start(nil)
		if d.archived("a") {
			t.Error("what has gone is kept")
		}
		stop()
	})
}

// What one kept document says of itself must be what is asked for: a file that was put in its
// place, or cut, is not used.
func TestForeignArchive(t *testing.T) {
	toy.Inside(t, func(t *testing.T, w *toy.World) {
		o := options(w)
		o.Archive = OpenArchive(ArchiveOptions{Path: t.TempDir(), MaxBytes: 64 << 20})
		defer o.Archive.Close()
		d := New(o)
		body := []byte(`{"versions": {}}`)
		head := func() archived {
			return archived{Format: archiveFormat, Upstream: o.Public.Base(), Ecosystem: toy.Name, Name: "a", Fetched: time.Now()}
		}
		for name, change := range map[string]func(*archived){
			"sound":  func(*archived) {},
			"future": func(h *archived) { h.Fetched = h.Fetched.Add(24 * time.Hour) },
			"format": func(h *archived) { h.Format++ },
			"name":   func(h *archived) { h.Name = "b" },
			"at":     func(h *archived) { h.Upstream = "http://other.test" },
			"other":  func(h *archived) { h.Ecosystem = "other" },
			"url":    func(h *archived) { h.URL = "http://[" },
			"long":   func(h *archived) { h.ETag = strings.Repeat("x", maxHeadLine) },
		} {
			h := head()
			change(&h)
			o.Archive.offer(saving{d.archiveName("a"), h, body})
			synctest.Wait()
			e := d.recall(t.Context(), "a")
			if used := e != nil; used != slices.Contains([]string{"sound", "future"}, name) {
				t.Errorf("%s: used %v", name, used)
			}
			if name == "future" && !e.Checked().IsZero() {
				t.Errorf("a time to come counts as %v", e.Checked())
			}
			d.forget("a")
		}
	})
}

// rw-004, rw-005: a kept document is proved before it is believed. Whatever bit of it flips, also
// where it stays a document that reads well (an older year, another digest), it is dropped and the
// listing read without validators, which a 304 would confirm for ever.
func TestEveryBitOfAKeptDocument(t *testing.T) {
	dir := t.TempDir()
	toy.Inside(t, func(t *testing.T, w *toy.World) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		start := func() (*Documents, *Archive) {
			o := options(w)
			o.Archive = OpenArchive(ArchiveOptions{Path: dir, MaxBytes: 64 << 20})
			return New(o), o.Archive
		}
		d, archive := start()
		get(t, d, "a", time.Minute, Fresh, 1)
		path := filepath.Join(dir, d.archiveName("a"))
		archive.Close()
		sound, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damage := map[string][]byte{
			"cut": sound[:len(sound)-1], "longer": append(slices.Clone(sound), ' '), "zeroed": make([]byte, len(sound)), "empty": {},
			"twice": slices.Concat(sound, sound), "half zeroed": append(slices.Clone(sound[:len(sound)/2]), make([]byte, len(sound)-len(sound)/2)...),
		}
		for i := range sound {
			flipped := slices.Clone(sound)
			flipped[i] ^= 1 << (i % 8)
			damage[fmt.Sprintf("bit of byte %d", i)] = flipped
		}
		for name, text := range damage {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			d, archive := start()
			sent := w.Public.Count()
			get(t, d, "a", time.Minute, Fresh, 1)
			seen := w.Public.Seen()
			if n := w.Public.Count() - sent; n != 1 || seen[len(seen)-1].Header.Get("If-None-Match") != "" {
				t.Errorf("%s: %d requests", name, n)
			}
			archive.Close()
			if healed, err := os.ReadFile(path); err != nil || bytes.Equal(healed, text) {
				t.Errorf("%s: it is still on the disk (%v)", name, err)
			}
		}
	})
}

// A document that an earlier version kept has no checksum: it is read again, without a warning for
// each.
func TestOlderFormat(t *testing.T) {
	toy.Inside(t, func(t *testing.T, w *toy.World) {
		o := options(w)
		dir := t.TempDir()
		o.Archive = OpenArchive(ArchiveOptions{Path: dir, MaxBytes: 64 << 20})
		defer o.Archive.Close()
		d := New(o)
		old := `{"format":1,"ecosystem":"toy","name":"a","etag":"","content_type":"","url":"","fetched":"2000-01-01T00:00:00Z"}` + "\n{}"
		err := o.Archive.files.Put(d.archiveName("a"), func(f io.Writer) error { _, err := io.WriteString(f, old); return err })
		if err != nil {
			t.Fatal(err)
		}
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		get(t, d, "a", time.Minute, Fresh, 1)
		if w.Logged("unusable cached document") {
			t.Error("a warning for an upgrade")
		}
		w.Sent(1)
	})
}
