package documents

import (
	"net/http"
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
			var err error
			if o.Archive, err = OpenArchive(dir, 64<<20); err != nil {
				t.Fatal(err)
			}
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
		var err error
		if o.Archive, err = OpenArchive(t.TempDir(), 64<<20); err != nil {
			t.Fatal(err)
		}
		defer o.Archive.Close()
		d := New(o)
		body := []byte(`{"versions": {}}`)
		head := func() archived {
			return archived{Format: archiveFormat, Ecosystem: toy.Name, Name: "a", Fetched: time.Now()}
		}
		for name, change := range map[string]func(*archived){
			"sound":  func(*archived) {},
			"future": func(h *archived) { h.Fetched = h.Fetched.Add(24 * time.Hour) },
			"format": func(h *archived) { h.Format++ },
			"name":   func(h *archived) { h.Name = "b" },
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
