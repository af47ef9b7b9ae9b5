package segment

import (
	"bytes"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/sys/unix"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// BenchmarkPack is a listing of 3.7 MB: as a whole by the library, in segments for the first time,
// and again when three segments differ, as they do when a version comes of age: what stands before
// the versions, the version's, and its publish time's. "differs" is checksums, comparison,
// compression and assembly together.
func BenchmarkPack(b *testing.B) {
	doc := packument.Generate("p", 2000, 1, packument.Weight(1790, 50))
	const every = 32 << 10 // as listing.RunBytes
	cuts := []int{200}
	for at := every; at < len(doc); at += every {
		cuts = append(cuts, at)
	}
	b.Run("gzip/whole", func(b *testing.B) {
		measured(b, len(doc), func() int {
			var buf bytes.Buffer
			w, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
			_, _ = w.Write(doc)
			_ = w.Close()
			return buf.Len()
		})
	})
	for name, f := range forms {
		b.Run(name+"/segments-cold", func(b *testing.B) {
			measured(b, len(doc), func() int { return len(f.pack(New(doc, cuts, nil))) })
		})
		b.Run(name+"/segments-differ", func(b *testing.B) {
			// the version and its time are in another place of their segments each time
			others := make([][]byte, 9)
			for i := range others {
				others[i] = bytes.Clone(doc)
				for _, at := range []int{100, len(doc)*(i+5)/20 + i*every/len(others), len(doc) - 1000 - i*every/len(others)} {
					others[i][at] ^= 1
				}
			}
			first := New(doc, cuts, nil)
			f.pack(first)
			next := 0
			measured(b, len(doc), func() int {
				next++
				return len(f.pack(New(others[next%len(others)], cuts, first)))
			})
		})
		b.Run(name+"/warm", func(b *testing.B) {
			first := New(doc, cuts, nil)
			measured(b, len(doc), func() int { return len(f.pack(first)) })
		})
	}
}

// measured reports the processor time as well, which neighbours on a busy machine do not stretch as
// they stretch the clock's.
func measured(b *testing.B, plain int, segment func() int) {
	b.Helper()
	b.ReportAllocs()
	packed := 0
	before := processor(b)
	for b.Loop() {
		packed = segment()
	}
	b.ReportMetric(float64(processor(b)-before)/1e6/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(plain), "plain-bytes")
	b.ReportMetric(float64(packed), "packed-bytes")
}

func processor(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
