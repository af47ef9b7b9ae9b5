package app

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/npm"
)

// A merged listing takes over what it shares with the public one, and gives nothing to it: whoever
// asks next, with another private registry's word or none, meets no byte of it, and what is kept
// does not grow by it.
func TestMergedListingLeavesNothing(t *testing.T) {
	inWorld(t, withPrivate+"\ncache: {ttl: 1000h, diskBytes: 0}", func(w *world) {
		w.public.SetDocument("p", packument.Generate("p", 300, 1, packument.Published(time.Now().Add(-10000*time.Hour), time.Hour)))
		own := func(word string) {
			w.private.Publish("p", "99.0.0", longAgo, map[string]any{"readme": strings.Repeat(word+" ", 20_000)})
		}
		look := func(word, other string) {
			t.Helper()
			for _, accept := range []string{"*/*", abbreviated} {
				plain := w.get("/npm/p", "Accept", accept)
				w.want(plain, 200, -1)
				if has := strings.Contains(plain.body, `"99.0.0"`) && strings.Contains(plain.body, word); has != (word != "") && accept == "*/*" {
					t.Errorf("%s: the private version is there: %t", accept, has)
				}
				gzip := gunzip(t, w.get("/npm/p", "Accept", accept, "Accept-Encoding", "gzip").body)
				zstd := unzstd(t, w.get("/npm/p", "Accept", accept, "Accept-Encoding", "zstd").body)
				if gzip != plain.body || zstd != plain.body {
					t.Errorf("%s: the packed forms are other listings", accept)
				}
				if strings.Contains(plain.body, other) {
					t.Errorf("%s: another's private version", accept)
				}
			}
		}
		own("alpha")
		look("alpha", "bravo")
		_, kept := w.app.documents.Size()
		own("bravo")
		look("bravo", "alpha")
		if _, now := w.app.documents.Size(); now != kept {
			t.Errorf("%d bytes are kept after %d", now, kept)
		}
		w.private.Always(404)
		look("", "alpha")
		look("", "bravo")
		look("", "99.0.0")
	})
}

// BenchmarkMerged is a public listing of 3.7 MB merged with a private one of ten versions, which is
// read anew for each request.
func BenchmarkMerged(b *testing.B) {
	up, own := fakenpm.New("http://unused.test"), fakenpm.New("http://unused.test")
	up.SetDocument("p", large(time.Now().Add(-30*24*time.Hour)))
	own.SetDocument("p", packument.Generate("p", 10, 3))
	private := httptest.NewServer(own)
	b.Cleanup(private.Close)
	s := benchServer(b, up, "mounts.npm.private", private.URL+"/")
	for name, encoding := range map[string]documents.Encoding{"identity": documents.Identity, "gzip": documents.Gzip, "zstd": documents.Zstd} {
		b.Run(name, func(b *testing.B) {
			report, size := cpu(b), 0
			for b.Loop() {
				l, err := s.mounts.Named(npm.Ecosystem).Gate.Listing(b.Context(), gate.ListingRequest{Name: "p", Form: "full", Base: "http://gate.test/npm"})
				if err != nil {
					b.Fatal(err)
				}
				size = len(l.Body(encoding))
			}
			report()
			b.ReportMetric(float64(size), "body-bytes")
		})
	}
}
