package npm

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// whole is a scan in one piece.
func whole() way { return way{from: listing.MaxBytes + 1} }

// from is a scan whose second half begins at a place, whatever stands there.
func from(at int) way { return way{place: func([]byte, int) int { return at }} }

// sameScan fails unless a way of reading gives the same document or the same error as to read all of it from front to back.
func sameScan(t *testing.T, body []byte, how way) {
	t.Helper()
	pkg := registry.Package{Ecosystem: Ecosystem, Name: "p"}
	want, wantErr := way{from: listing.MaxBytes + 1, anew: true}.scan(pkg, body)
	got, err := how.scan(pkg, body)
	if wantErr != nil || err != nil {
		if wantErr == nil || err == nil || wantErr.Error() != err.Error() {
			t.Fatalf("%v; read plainly: %v", err, wantErr)
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
		t.Fatalf("%+v\nread plainly:\n%+v", b, a)
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

// The memory of both halves goes to later scans, which may be at work at the same time.
func TestHalvesShareNoScratch(t *testing.T) {
	s, o := usual.newScan(pkg("p"), []byte(small), listing.NewScanner([]byte(small))), usual.newScan(pkg("p"), []byte(small), listing.NewScanner([]byte(small)))
	o.document()
	if len(o.times) == 0 {
		t.Fatal("no times")
	}
	s.rest(&o)
	if s.times = append(s.times[:0], rawTime{}); cap(o.times) > 0 && &o.times[:1][0] == &s.times[0] {
		t.Error("two scans would write to the same memory")
	}
}

// What stands before "versions" and what stands behind it are judged together: what may be there once, what must be there, and how much of it.
func TestHalvesOfTheRest(t *testing.T) {
	const versions = `"versions":{"1.0.0":{"dist":{"tarball":"http://r.test/p-1.0.0.tgz"}},"2.0.0":{"dist":{"tarball":"http://r.test/p-2.0.0.tgz"}}}`
	const name, time, later = `"name":"p"`, `"time":{"2.0.0":"2020-01-01T00:00:00Z"}`, `"time":{"2.0.0":"2021-01-01T00:00:00Z","modified":"2022-01-01T00:00:00Z"}`
	const tags, modified = `"dist-tags":{"latest":"2.0.0"}`, `"modified":"2023-01-01T00:00:00Z"`
	for _, members := range [][]string{
		{name, time, tags, modified, versions},
		{versions, name, time, tags, modified},
		{versions, modified, name},
		{modified, versions, later, name, tags},
		{later, versions, modified, name},
		{versions},
		{tags, versions, time},
		{name, versions, name},
		{name, time, versions, later},
		{name, tags, versions, tags},
		{name, modified, versions, modified},
		{name, versions, versions},
		{name, `"_uplinks":{}`, versions, `"_uplinks":{}`, `"x":1`, `"x":2`},
	} {
		body := "{" + strings.Join(members, ",") + "}"
		for at := range len(body) {
			sameScan(t, []byte(body), from(at))
		}
		at := strings.Index(body, `,"2.0.0"`)
		if _, err := whole().scan(pkg("p"), []byte(body)); (err == nil) != (from(at).halves(pkg("p"), []byte(body)) != nil) {
			t.Errorf("%s: %v, but not so in halves", body, err)
		}
	}
	other := func(i int) string { return fmt.Sprintf(`"m%d":0`, i) }
	for _, n := range []int{maxTop/2 - 2, maxTop/2 - 1, maxTop / 2} {
		body := "{" + name + "," + many(n, other) + "," + versions + "," + many(n, other) + "}"
		sameScan(t, []byte(body), from(strings.Index(body, `,"2.0.0"`)))
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
	sameScan(t, body, way{place: middle})
}

func TestHalvesNestedTooDeep(t *testing.T) {
	deep := strings.Repeat("[", listing.MaxDepth-2)
	body := `{"name":"p","versions":{"1.0.0":{},"2.0.0":{},"3.0.0":{"x":` + deep + strings.Repeat("]", len(deep)) + `},"4.0.0":{}}}`
	for at := range len(body) {
		sameScan(t, []byte(body), from(at))
	}
	sameScan(t, []byte(strings.Replace(body, "[[", "[", 1)), way{place: middle})
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
		how := way{from: large, place: func(body []byte, from int) int { place = middle(body, from); return place }}
		sameScan(t, body, how)
		doc, err := whole().scan(registry.Package{Ecosystem: Ecosystem, Name: "p"}, body)
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
	h.scan = scan{stop: &h.stop} // no scanner: the first call panics
	h.read()
	s := usual.newScan(registry.Package{Ecosystem: Ecosystem, Name: "p"}, []byte(small), listing.NewScanner([]byte(small)))
	s.adopt(h)
	if s.joined || s.End() == nil {
		t.Error("it was adopted")
	}
}

func FuzzHalves(f *testing.F) {
	f.Add([]byte(small), 400)
	f.Add(packument.Generate("p", 5, 1), 3000)
	f.Add([]byte(alike), 900)
	f.Fuzz(func(t *testing.T, body []byte, at int) {
		if at < 0 || at > len(body) {
			at = middle(body, len(body)/2)
		}
		sameScan(t, body, from(at))
		sameScan(t, body, whole())
	})
}

func BenchmarkHalves(b *testing.B) {
	body := packument.Generate("p", 2600, 1)
	pkg := registry.Package{Ecosystem: Ecosystem, Name: "p"}
	var spent [2]time.Duration
	for b.Loop() { // taken in turns, so that what else the machine does meets both
		for i, how := range []way{whole(), usual} {
			start := time.Now()
			if _, err := how.scan(pkg, body); err != nil {
				b.Fatal(err)
			}
			spent[i] += time.Since(start)
		}
	}
	b.ReportMetric(spent[0].Seconds()*1e3/float64(b.N), "whole-ms/op")
	b.ReportMetric(spent[1].Seconds()*1e3/float64(b.N), "halves-ms/op")
	b.ReportMetric(float64(spent[0])/float64(spent[1]), "faster")
}
