package app

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// gunzip unpacks one member and demands that nothing follows it.
func gunzip(t *testing.T, packed string) string {
	t.Helper()
	in := strings.NewReader(packed)
	zr, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	zr.Multistream(false)
	out, err := io.ReadAll(zr)
	if err != nil || in.Len() > 0 {
		t.Fatalf("%v, %d bytes behind the member", err, in.Len())
	}
	return string(out)
}

// A large listing whose versions come of age one by one, whose rules change and whose document
// changes is, packed, always the listing that is served plain, under tags that follow its bytes;
// and its cost is charged exactly, kept runs included.
func TestPackedListingFollows(t *testing.T) {
	const versions, every = 300, time.Hour
	inWorld(t, "cache: {ttl: 1h, diskBytes: 0}", func(w *world) {
		// the last seven wait, the first of them for an hour
		young := packument.Published(time.Now().Add(-versions*every-160*time.Hour), every)
		w.public.SetDocument("p", packument.Generate("p", versions, 1, young))
		tags, sizes, index := map[string]string{}, map[string]int{}, int64(0)
		look := func(what string, want int, changed bool) {
			t.Helper()
			for form, accept := range map[string]string{"full": "*/*", "abbreviated": abbreviated} {
				plain := w.get("/npm/p", "Accept", accept)
				w.want(plain, 200, -1)
				packed := w.get("/npm/p", "Accept", accept, "Accept-Encoding", "gzip")
				if gunzip(t, packed.body) != plain.body || packed.header.Get("Content-Encoding") != "gzip" {
					t.Errorf("%s, %s: the packed form is another document", what, form)
				}
				if got := len(w.versions(plain)); got != want {
					t.Errorf("%s, %s: %d versions, want %d", what, form, got, want)
				}
				tag := plain.header.Get("ETag")
				if (tag != tags[form]) != changed || len(tag) < 10 || packed.header.Get("ETag") != strings.TrimSuffix(tag, `"`)+`-gzip"` {
					t.Errorf("%s, %s: tag %s after %s, packed %s", what, form, tag, tags[form], packed.header.Get("ETag"))
				}
				other := w.get("/npm/p", "Accept", accept, "Accept-Encoding", "gzip, deflate, br, zstd")
				if unzstd(t, other.body) != plain.body || other.header.Get("ETag") != strings.TrimSuffix(tag, `"`)+`-zstd"` {
					t.Errorf("%s, %s: Zstandard's form is another document, %s", what, form, other.header.Get("ETag"))
				}
				tags[form], sizes[form] = tag, len(plain.body)+2*len(packed.body)+2*len(other.body)
			}
			n, cost := w.app.documents.Size()
			least := int64(sizes["full"] + sizes["abbreviated"])
			// the document with its index, and what runs take beside their bytes
			rest := cost - least
			if index == 0 {
				index = rest
			}
			// as buffers and the heap round sizes
			if n != 1 || rest < versions*1300 || max(rest-index, index-rest) > 24<<10 {
				t.Errorf("%s: %d documents cost %d, of which the renderings %d", what, n, cost, least)
			}
		}
		look("first", 293, true)
		time.Sleep(50 * time.Minute)
		look("before it is of age", 293, false)
		time.Sleep(11 * time.Minute)
		look("one came of age", 294, true)
		time.Sleep(3 * time.Hour)
		look("three more", 297, true)
		w.app.Reload(w.t.Context(), w.config("rules: {min-age: {age: 10h}}"), nil)
		look("other rules", 300, true)
		w.public.SetDocument("p", packument.Generate("p", versions+1, 1, young))
		time.Sleep(61 * time.Minute)
		look("another document", 301, true)
	})
}

// The same for both forms of a large page: releases come of age day by day, and every encoding is
// the page that is served plain.
func TestPackedPageFollows(t *testing.T) {
	const releases, each = 30, 20
	inWorld(t, "cache: {ttl: 1000h, diskBytes: 0}", func(w *world) {
		page, _ := fakepypi.Generate("p", releases*each, 1, "http://"+filesHost)
		// one release on each day at ten
		w.pypi.SetPage("p", pypiJSON, bytes.ReplaceAll(page, []byte("2015-03-"), []byte("1999-12-")))
		tags := map[string]bool{}
		look := func(want int) {
			t.Helper()
			for _, form := range []string{pypiJSON, "text/html"} {
				plain := w.get("/pypi/simple/p/", "Accept", form)
				w.want(plain, 200, -1)
				if got := strings.Count(plain.body, `"filename":`) + strings.Count(plain.body, "</a>"); got != want*each {
					t.Errorf("%s: %d files, want %d releases", form, got, want)
				}
				gzip := w.get("/pypi/simple/p/", "Accept", form, "Accept-Encoding", "gzip")
				zstd := w.get("/pypi/simple/p/", "Accept", form, "Accept-Encoding", "zstd")
				if gunzip(t, gzip.body) != plain.body || unzstd(t, zstd.body) != plain.body {
					t.Errorf("%s, %d releases: a packed form is another page", form, want)
				}
				for _, a := range []answer{plain, gzip, zstd} {
					if tag := a.header.Get("ETag"); tags[tag] || len(tag) < 10 {
						t.Errorf("%s, %d releases: the tag %s again", form, want, tag)
					} else {
						tags[tag] = true
					}
				}
			}
		}
		look(24)
		time.Sleep(11 * time.Hour)
		look(25)
		time.Sleep(24 * time.Hour)
		look(26)
		time.Sleep(96 * time.Hour)
		look(30)
	})
}
