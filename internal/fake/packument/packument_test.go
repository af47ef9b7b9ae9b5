package packument_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// Every shape is good JSON, within a tenth of the real size, and the same for the same seed only.
func TestShapes(t *testing.T) {
	for _, shape := range packument.Shapes() {
		if testing.Short() && shape.Bytes > 5_000_000 {
			continue
		}
		doc := shape.Generate(1)
		if shape.Bytes < 5_000_000 && !json.Valid(doc) {
			t.Fatalf("%s: not JSON", shape.Name)
		}
		if low, high := shape.Bytes*9/10, shape.Bytes*11/10+4096; len(doc) < low || len(doc) > high {
			t.Errorf("%s: %d bytes, want %d to %d", shape.Name, len(doc), low, high)
		}
		if shape.Versions < 500 {
			if !bytes.Equal(doc, shape.Generate(1)) || bytes.Equal(doc, shape.Generate(2)) {
				t.Errorf("%s: the seed does not decide", shape.Name)
			}
		}
	}
}

// gzipped is the size of a body as the gzip command packs it.
func gzipped(body []byte) int {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(body)
	_ = w.Close()
	return buf.Len()
}

// Versions that are alike pack as real ones do, but for their signatures, which nothing packs: a
// digest in base64, a key's name and a commit.
func TestAlikePacksAsRealOnes(t *testing.T) {
	for _, shape := range packument.Shapes() {
		if testing.Short() && shape.Bytes > 5_000_000 {
			continue
		}
		const signed = 110
		doc := shape.Generate(1, packument.Alike())
		if low, high := shape.Bytes*9/10, shape.Bytes*11/10+4096; len(doc) < low || len(doc) > high {
			t.Errorf("%s: %d bytes, want %d to %d", shape.Name, len(doc), low, high)
		}
		packed, want := gzipped(doc), shape.Packed+signed*shape.Versions
		t.Logf("%-12s %8d bytes pack to %7d, a real one to %7d", shape.Name, len(doc), packed, want)
		if ratio := float64(packed) / float64(want); ratio < 0.85 || ratio > 1.15 {
			t.Errorf("%s packs to %d bytes, a real one to %d", shape.Name, packed, want)
		}
		if shape.Versions < 500 && (!json.Valid(doc) || !bytes.Equal(doc, shape.Generate(1, packument.Alike()))) {
			t.Errorf("%s: not JSON, or the seed does not decide", shape.Name)
		}
	}
}

// A document of long texts has the size that was asked for, too.
func TestTexts(t *testing.T) {
	doc := packument.Generate("vite", 100, 1, packument.Weight(10_000, 10), packument.Texts())
	if !json.Valid(doc) || len(doc) < 900_000 || len(doc) > 1_100_000 {
		t.Errorf("%d bytes, valid: %v", len(doc), json.Valid(doc))
	}
}

// Very many bare versions fit into what a gate reads.
func TestBare(t *testing.T) {
	doc := packument.Generate("p", 1000, 1, packument.Bare())
	if !json.Valid(doc) || len(doc) > 350_000 {
		t.Errorf("%d bytes, valid: %v", len(doc), json.Valid(doc))
	}
}

// The versions are all different, also many of them.
func TestVersionsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for i := range 100_000 {
		v := packument.VersionAt(i)
		if seen[v] {
			t.Fatalf("version %d, %s, again", i, v)
		}
		seen[v] = true
	}
}
