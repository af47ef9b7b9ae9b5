package documents

import (
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// BenchmarkPack is what it takes to pack a document and to unpack it, without the scan that
// follows.
func BenchmarkPack(b *testing.B) {
	for _, shape := range packument.Shapes() {
		if shape.Name != "lodash" && shape.Name != "react" {
			continue
		}
		body := shape.Generate(1)
		var c codec
		packed := c.pack(body)
		b.Run(shape.Name+"/pack", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				c.pack(body)
			}
			b.ReportMetric(float64(len(packed))/float64(len(body)), "ratio")
		})
		b.Run(shape.Name+"/unpack", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := c.unpack(packed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
