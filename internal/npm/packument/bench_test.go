package packument

import (
	"fmt"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// The sizes of the benchmarks: small, 0.5 MB, 4 MB and 20 MB, as real packages have them.
func benchShapes(b *testing.B, run func(b *testing.B, pkg registry.Package, body []byte)) {
	for _, shape := range packument.Shapes() {
		switch shape.Name {
		case "is-number", "express", "react", "next":
			body := shape.Generate(1)
			b.Run(fmt.Sprintf("%s_%dkB", shape.Name, shape.Bytes/1000), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				run(b, registry.Package{Ecosystem: npm.Ecosystem, Name: shape.Name}, body)
			})
		}
	}
}

func BenchmarkScan(b *testing.B) {
	benchShapes(b, func(b *testing.B, pkg registry.Package, body []byte) {
		for b.Loop() {
			if _, err := Scan(pkg, body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRender(b *testing.B) {
	for _, form := range []string{npm.FormFull, npm.FormAbbreviated} {
		b.Run(form, func(b *testing.B) {
			benchShapes(b, func(b *testing.B, pkg registry.Package, body []byte) {
				doc, err := Scan(pkg, body)
				if err != nil {
					b.Fatal(err)
				}
				view := registry.View{Package: pkg, Form: form, Base: "https://gate.example/npm", Parts: []registry.Part{{Document: doc, Keep: keepOld(doc)}}}
				for b.Loop() {
					if _, err := Render(view); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// A cold listing: scan, a verdict per version, splice.
func BenchmarkScanAndRender(b *testing.B) {
	benchShapes(b, func(b *testing.B, pkg registry.Package, body []byte) {
		for b.Loop() {
			doc, err := Scan(pkg, body)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := Render(registry.View{Package: pkg, Form: npm.FormFull, Base: "https://gate.example/npm", Parts: []registry.Part{{Document: doc, Keep: keepOld(doc)}}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// keepOld withholds the newest twentieth, latest with it.
func keepOld(doc registry.Document) []bool {
	keep := make([]bool, len(doc.Versions()))
	for i := range len(keep) * 19 / 20 {
		keep[i] = true
	}
	return keep
}
