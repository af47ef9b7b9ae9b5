package segment

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// BenchmarkGzip is a listing of 3.7 MB: as a whole by the library, in runs of 64 KB for the first time, and again when one byte differs.
func BenchmarkGzip(b *testing.B) {
	doc := packument.Generate("p", 2000, 1)
	var cuts []int
	for at := 64 << 10; at < len(doc); at += 64 << 10 {
		cuts = append(cuts, at)
	}
	b.Run("whole", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		size := 0
		for b.Loop() {
			var buf bytes.Buffer
			w, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
			_, _ = w.Write(doc)
			_ = w.Close()
			size = buf.Len()
		}
		b.ReportMetric(float64(size), "packed-bytes")
	})
	b.Run("runs", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		size := 0
		for b.Loop() {
			size = len(New(doc, cuts, nil).Gzip())
		}
		b.ReportMetric(float64(size), "packed-bytes")
	})
	b.Run("one-run-differs", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		other := bytes.Clone(doc)
		other[len(doc)/2] ^= 1
		first := New(doc, cuts, nil)
		first.Gzip()
		for b.Loop() {
			New(other, cuts, first).Gzip()
		}
	})
}
