package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/pypi"
)

// large is a listing of 2,000 versions and 3.7 MB, whose last version was published at the given
// time.
func large(last time.Time) []byte {
	const versions, every = 2000, 24 * time.Hour
	return packument.Generate("p", versions, 1, packument.Weight(1790, 50), packument.Published(last.Add(-(versions-1)*every), every))
}

// cpu measures the processor time of a benchmark's loop, which neighbours on a busy machine do not
// change as they change the clock's.
func cpu(b *testing.B) (report func()) {
	b.Helper()
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/1e6/float64(b.N), "cpu-ms/op") }
}

// BenchmarkComesOfAge is the newest version of a listing of 3.7 MB coming of age, or, every other
// time, being withheld again: from the first request after it to the new packed body. That is every
// verdict, the rendering, its tag and the compression. Beside it, what the compression alone takes
// when the body is packed as a whole. The same for the newest release of a page of 10,000 files.
func BenchmarkComesOfAge(b *testing.B) {
	last := time.Now().Add(-30 * 24 * time.Hour)
	up := fakenpm.New("http://unused.test")
	up.SetDocument("p", large(last))
	s := benchServer(b, up)
	for _, form := range []string{"full", "abbreviated"} {
		comesOfAge(b, s.mounts.Named(npm.Ecosystem).Gate, last, gate.ListingRequest{Name: "p", Form: form, Base: "http://gate.test/npm"})
	}
	const files, filesURL = 10_000, "https://files.test"
	page, _ := fakepypi.Generate("p", files, 1, filesURL)
	index := httptest.NewServer(pages(page, pypiJSON))
	b.Cleanup(index.Close)
	s = benchServer(b, http.NotFoundHandler(), "mounts.pypi.public", index.URL+"/simple/", "mounts.pypi.files", filesURL)
	last = fakepypi.Old().Add((files/20 - 1) * 24 * time.Hour)
	for _, form := range []string{pypi.FormJSON, pypi.FormHTML} {
		comesOfAge(b, s.mounts.Named(pypi.Ecosystem).Gate, last, gate.ListingRequest{Name: "p", Form: form, Base: "http://gate.test/pypi"})
	}
}

// comesOfAge measures one representation of a listing whose newest part was published at the given
// time, alone on its day.
func comesOfAge(b *testing.B, g *gate.Gate, last time.Time, request gate.ListingRequest) {
	b.Helper()
	var rules [2]*policy.Set
	for i, half := range []time.Duration{-12 * time.Hour, 12 * time.Hour} {
		var err error
		if rules[i], err = policy.New([]policy.Spec{{Name: "min-age", Type: policy.AllowIfOlderThan, Age: time.Since(last) + half}}, nil); err != nil {
			b.Fatal(err)
		}
	}
	packed := func(b *testing.B, turn int, encoding documents.Encoding) (plain, body []byte) {
		b.Helper()
		g.SetPolicy(rules[turn%2])
		l, err := g.Listing(b.Context(), request)
		if err != nil {
			b.Fatal(err)
		}
		return l.Body(documents.Identity), l.Body(encoding)
	}
	plain, _ := packed(b, 0, documents.Gzip)
	if other, _ := packed(b, 1, documents.Gzip); len(other) >= len(plain) {
		b.Fatal("nothing comes of age")
	}
	for _, encoding := range []documents.Encoding{documents.Gzip, documents.Zstd} {
		b.Run(g.Ecosystem()+"-"+request.Form+"/kept-runs-"+string(encoding), func(b *testing.B) {
			report, turn, size := cpu(b), 0, 0
			for b.Loop() {
				_, body := packed(b, turn, encoding)
				turn, size = turn+1, len(body)
			}
			report()
			b.ReportMetric(float64(len(plain)), "plain-bytes")
			b.ReportMetric(float64(size), "packed-bytes")
		})
	}
	b.Run(g.Ecosystem()+"-"+request.Form+"/whole-compression", func(b *testing.B) {
		report, size := cpu(b), 0
		for b.Loop() {
			size = len(packument.Gzip(plain))
		}
		report()
		b.ReportMetric(float64(len(plain)), "plain-bytes")
		b.ReportMetric(float64(size), "packed-bytes")
	})
}
