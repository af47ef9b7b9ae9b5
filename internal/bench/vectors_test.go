package bench_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/cpu"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// BenchmarkVectors is a cold listing with and without the vector instructions of the scanner, in
// pairs of which each has both, one right after the other: "off/on" is the median of their ratios.
// What it brings decides whether assembly stays (docs/performance.md).
func BenchmarkVectors(b *testing.B) {
	if !cpu.X86.HasAVX2 {
		b.Skip("SKIPPED: no AVX2 on this machine")
	}
	for _, size := range []struct {
		name string
		// a small library, one of many versions, and one in the shape of next
		versions, weight, kept int
	}{{"0.4MB", 205, 1860, 47}, {"3.7MB", 2005, 1790, 50}, {"21MB", 2627, 7991, 74}} {
		weight := packument.Weight(size.weight, size.kept)
		vectors(b, "size="+size.name+"/versions=alike", "p", packument.Generate("p", size.versions, 1, weight, packument.Alike()))
		vectors(b, "size="+size.name+"/versions=random", "p", packument.Generate("p", size.versions, 1, weight))
	}
	for _, d := range realDocuments(b) {
		vectors(b, "package="+d.pkg, d.pkg, d.body)
	}
}

func vectors(b *testing.B, name, pkg string, body []byte) {
	b.Helper()
	for cores := 1; cores <= min(2, runtime.NumCPU()); cores++ {
		b.Run(fmt.Sprintf("%s/cores=%d", name, cores), func(b *testing.B) {
			paced(b, body)
			rules := minAge(b)
			procs := runtime.GOMAXPROCS(cores)
			b.Cleanup(func() { runtime.GOMAXPROCS(procs) })
			b.Cleanup(func() { cpu.X86.HasAVX2 = true })
			var on, off, ratios []float64
			for first := true; b.Loop(); first = !first { // each goes first in every second pair
				took := map[bool]float64{}
				for _, with := range []bool{first, !first} {
					cpu.X86.HasAVX2 = with
					start := time.Now()
					coldListing(b, rules, pkg, body)
					took[with] = time.Since(start).Seconds() * 1e3
				}
				on, off, ratios = append(on, took[true]), append(off, took[false]), append(ratios, took[false]/took[true])
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(middle(on), "on-ms")
			b.ReportMetric(middle(off), "off-ms")
			b.ReportMetric(middle(ratios), "off/on")
		})
	}
}
