package page

import (
	"encoding/json"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// A project of 2,000 files, in both forms.
func bigPage(files int) map[string]registry.Source {
	asJSON, asHTML := fakepypi.Generate("x", files, 1, "https://files.example")
	return map[string]registry.Source{pypi.FormJSON: jsonSource(string(asJSON)), pypi.FormHTML: htmlSource(string(asHTML))}
}

// keepOld withholds the newest twentieth.
func keepOld(doc registry.Document) registry.Part {
	keep := make([]bool, len(doc.Versions()))
	for i := range len(keep) * 19 / 20 {
		keep[i] = true
	}
	return registry.Part{Document: doc, Keep: keep}
}

func BenchmarkScan(b *testing.B) {
	for links, filesURL := range map[string]string{"https": "https://files.example", "port": "http://127.0.0.1:9", "relative": "../.."} {
		asJSON, asHTML := fakepypi.Generate("x", 2_000, 1, filesURL)
		for form, src := range map[string]registry.Source{pypi.FormJSON: jsonSource(string(asJSON)), pypi.FormHTML: htmlSource(string(asHTML))} {
			b.Run("from_"+form+"_"+links, func(b *testing.B) {
				b.SetBytes(int64(len(src.Body)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Scan(pkg("x"), src); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRender(b *testing.B) {
	for from, src := range bigPage(2_000) {
		doc, err := Scan(pkg("x"), src)
		if err != nil {
			b.Fatal(err)
		}
		for _, form := range []string{pypi.FormJSON, pypi.FormHTML} {
			b.Run("from_"+from+"_to_"+form, func(b *testing.B) {
				view := registry.View{Package: pkg("x"), Form: form, Base: mount, Parts: []registry.Part{keepOld(doc)}}
				r, err := Render(view)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(r.Body)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Render(view); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// A cold page: scan, a verdict per file, splice.
func BenchmarkScanAndRender(b *testing.B) {
	for from, src := range bigPage(2_000) {
		b.Run("from_"+from, func(b *testing.B) {
			b.SetBytes(int64(len(src.Body)))
			b.ReportAllocs()
			for b.Loop() {
				doc, err := Scan(pkg("x"), src)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Render(registry.View{Package: pkg("x"), Form: pypi.FormJSON, Base: mount, Parts: []registry.Part{keepOld(doc)}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What decoding into maps and encoding again would cost, to compare with.
func BenchmarkDecodeAndEncode(b *testing.B) {
	body := bigPage(2_000)[pypi.FormJSON].Body
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var v map[string]any
		if err := json.Unmarshal(body, &v); err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}
