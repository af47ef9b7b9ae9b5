package npm

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// whole is a scan in one piece.
func whole() halving { return halving{listing.MaxBytes + 1, middle} }

// from is a scan whose second half begins at a place, whatever stands there.
func from(at int) halving { return halving{0, func([]byte, int) int { return at }} }

// sameScan fails unless both ways of reading give the same document or the same error.
func sameScan(t *testing.T, body []byte, how halving) {
	t.Helper()
	pkg := registry.Package{Ecosystem: Ecosystem, Name: "p"}
	want, wantErr := scanWith(pkg, body, whole())
	got, err := scanWith(pkg, body, how)
	if wantErr != nil || err != nil {
		if wantErr == nil || err == nil || wantErr.Error() != err.Error() {
			t.Fatalf("in halves: %v; whole: %v", err, wantErr)
		}
		return
	}
	a, b := *want.(*document), *got.(*document)
	for i, v := range b.versions {
		if b.Lookup(v.Version) != i {
			t.Fatalf("version %q is found at %d instead of %d", v.Version, b.Lookup(v.Version), i)
		}
	}
	for _, d := range []*document{&a, &b} {
		d.names = listing.Names{} // each has its own seed
		if len(d.runs) == 0 {
			d.runs = nil
		}
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("in halves:\n%+v\nwhole:\n%+v", b, a)
	}
}

// small is a document with all that a guess can go wrong about: versions in versions' members, escapes, a key that is there twice, digests of
// several kinds, white space, and what stands behind the versions.
const small = `{"name":"p","a":{"0":{"x":1},"1":{}},"versions":{
 "1.0.0":{"name":"p","version":"1.0.0","dist":{"tarball":"http://r.test/a.tgz","shasum":"da39a3ee5e6b4b0d3255bfef95601890afd80709"},"x":[{"1":{"a":{}}},{"y":1}]},
 "1.1.0" : { "version":"1.1.0","versions":{"1":{"dist":{}},"2":{"dist":{"tarball":"n"}},"3":{}},"dist":{"tarball":"http:\/\/r.test\/b.tgz"}, "s":"},\"9\":{" },
 "2.0.0":{"dist":{"tarball":"http://r.test/c.tgz","integrity":"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},"bin":{"1":{}},"2":{}},"1.1.0":{"dist":{"tarball":"d"}},
 "3.0.0":{"scripts":{"install":"x"},"dist":{"tarball":"http://r.test/e.tgz"}},"4.0.0":{},"5.0.0":{"dist":{"tarball":"f"},"license":"MIT","_id":"\u00e9"}
 },"time":{"1.0.0":"2020-01-01T00:00:00Z","5.0.0":"2021-01-01T00:00:00Z","9":{"a":{}},"8":{}},"dist-tags":{"latest":"5.0.0"}}`

func TestHalvesFromAnywhere(t *testing.T) {
	for at := range len(small) + 1 {
		sameScan(t, []byte(small), from(at))
	}
}

func TestHalvesOfBrokenDocuments(t *testing.T) {
	for i := 0; i < len(small); i += 13 {
		for _, broken := range []string{small[:i], small[:i] + "}" + small[i:], small[:i] + `"` + small[i+1:]} {
			for at := i % 17; at < len(small); at += 17 {
				sameScan(t, []byte(broken), from(min(at, len(broken))))
			}
		}
	}
}

func TestHalvesOfTooManyVersions(t *testing.T) {
	body := []byte(`{"name":"p","versions":{` + many(maxVersions+1, func(int) string { return `"1":{"dist":{}}` }) + `}}`)
	sameScan(t, body, halving{0, middle})
}

func TestHalvesNestedTooDeep(t *testing.T) {
	deep := strings.Repeat("[", listing.MaxDepth-2)
	body := `{"name":"p","versions":{"1.0.0":{},"2.0.0":{},"3.0.0":{"x":` + deep + strings.Repeat("]", len(deep)) + `},"4.0.0":{}}}`
	for at := range len(body) {
		sameScan(t, []byte(body), from(at))
	}
	sameScan(t, []byte(strings.Replace(body, "[[", "[", 1)), halving{0, middle})
}

// The documents that are large enough are really read in halves: the place that is found is just before a version, where the first half comes by.
func TestLargeDocumentsAreReadInHalves(t *testing.T) {
	for _, indent := range []bool{false, true} {
		body := packument.Generate("p", 1500, 1)
		if indent {
			var v any
			if err := json.Unmarshal(body, &v); err != nil {
				t.Fatal(err)
			}
			body, _ = json.MarshalIndent(v, "", "  ")
		}
		place := -1
		how := halving{large, func(body []byte, from int) int { place = middle(body, from); return place }}
		sameScan(t, body, how)
		doc, err := scanWith(registry.Package{Ecosystem: Ecosystem, Name: "p"}, body, whole())
		if err != nil {
			t.Fatal(err)
		}
		hit := 0
		for i, e := range doc.(*document).entries {
			if int(e.member.Start) > place && place > 0 && strings.TrimSpace(string(body[place:e.member.Start])) == "," {
				hit = i
			}
		}
		if how.halves(registry.Package{Ecosystem: Ecosystem, Name: "p"}, body) == nil {
			t.Errorf("%d bytes, indented %v: read as a whole", len(body), indent)
		}
		if hit < 500 || hit > 1000 {
			t.Errorf("%d bytes, indented %v: the second half begins at byte %d, before version %d of 1500", len(body), indent, place, hit)
		}
	}
}

// A second half that fails by a fault of ours costs its work and nothing else.
func TestHalfThatPanics(t *testing.T) {
	h := &half{done: make(chan struct{})}
	h.scan = scan{second: true} // no scanner: the first call panics
	h.read()
	s := newScan(registry.Package{Ecosystem: Ecosystem, Name: "p"}, []byte(small), listing.NewScanner([]byte(small)))
	s.adopt(h)
	if s.joined || s.End() == nil {
		t.Error("it was adopted")
	}
}

func FuzzHalves(f *testing.F) {
	f.Add([]byte(small), 400)
	f.Add(packument.Generate("p", 5, 1), 3000)
	f.Fuzz(func(t *testing.T, body []byte, at int) {
		if at < 0 || at > len(body) {
			at = middle(body, len(body)/2)
		}
		sameScan(t, body, from(at))
	})
}

func BenchmarkHalves(b *testing.B) {
	body := packument.Generate("p", 2600, 1)
	pkg := registry.Package{Ecosystem: Ecosystem, Name: "p"}
	var spent [2]time.Duration
	for b.Loop() { // taken in turns, so that what else the machine does meets both
		for i, how := range []halving{whole(), {large, middle}} {
			start := time.Now()
			if _, err := scanWith(pkg, body, how); err != nil {
				b.Fatal(err)
			}
			spent[i] += time.Since(start)
		}
	}
	b.ReportMetric(spent[0].Seconds()*1e3/float64(b.N), "whole-ms/op")
	b.ReportMetric(spent[1].Seconds()*1e3/float64(b.N), "halves-ms/op")
	b.ReportMetric(float64(spent[0])/float64(spent[1]), "faster")
}
