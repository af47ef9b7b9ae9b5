package packument

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/listing"
)

// edges is a document of versions that hardly differ, with what a scan must get right about each: a
// member that is there twice, is gone, means something else, or disagrees with its version.
const edges = `{"name":"p","versions":{
"1.0.0":{"name":"p","version":"1.0.0","license":"MIT","scripts":{"install":"x"},"n":1,"deprecated":"old","dist":{"tarball":"http://r.test/p-1.0.0.tgz"},"engines":{"node":">=1"}},
"1.0.1":{"name":"p","version":"1.0.1","license":"MIT","scripts":{"install":"x"},"n":1,"deprecated":"old","dist":{"tarball":"http://r.test/p-1.0.1.tgz"},"engines":{"node":">=1"}},
"1.0.2":{"name":"p","version":"1.0.2","license":"MIT","license":"MIT","n":12,"dist":{"tarball":"http://r.test/p-1.0.2.tgz"},"engines":{"node":">=1"},"deprecated":false},
"1.0.3":{"name":"q","version":"1.0.3","license":"ISC","scripts":{"install":"x"},"n":1,"dist":{"tarball":"http://r.test/p-1.0.3.tgz"}},
"1.0.4":{"name":"q","version":"1.0.4","license":"ISC","n":1.5,"scripts":{"install":""},"dist":{"tarball":"http://r.test/p-1.0.4.tgz"}},
"1.0.5":{"name":"p","version":"1.0.4","hasInstallScript":true,"dist":{"tarball":"http://r.test/p-1.0.5.tgz"},"bin":"b"},
"1.0.6":{"name":"p","version":"1.0.4","hasInstallScript":true,"dist":{"tarball":"http://r.test/p-1.0.5.tgz"},"bin":"b","dist":{"tarball":"http://r.test/p-1.0.5.tgz"}},
"1.0.7":{"license":{"type":"X\u0059"},"hasInstallScript":false,"dist":{"tarball":"http://r.test/p-1.0.5.tgz"},"gypfile":1 },
"1.0.8":{"license":{"type":"X\u0059"},"hasInstallScript":false,"dist":{"tarball":"http://r.test/p-1.0.5.tgz"},"gypfile":1},
"1.0.9":{"license":{"type":"X\u0059"},"hasInstallScript":false,"dist":{"tarball":"http://r.test/p-1.0.5.tgz"},"gypfile":0}}}`

// Issue "the npm gate", version facts: they come from the version's own members, never from those
// of the version before.
func TestFactsOfSimilarVersions(t *testing.T) {
	doc := scanned(t, "p", edges)
	var got []string
	for i, v := range doc.Versions() {
		deprecated := doc.(*document).entries[i].flags&flagDeprecated != 0
		got = append(got, fmt.Sprintf("%s %s %v %v", v.Version, v.License, v.InstallScripts, deprecated))
	}
	want := []string{"1.0.0 MIT true true", "1.0.1 MIT true true", "1.0.7 XY true false", "1.0.8 XY true false", "1.0.9 XY true false"}
	if !slices.Equal(got, want) || doc.Dropped() != 5 {
		t.Errorf("%q and %d dropped", got, doc.Dropped())
	}
}

// A scan that follows another one in the same memory finds nothing of it, and leaves the other
// document alone.
func TestScratchIsUsedAgain(t *testing.T) {
	fresh := func(body string) *document {
		s := newScan(pkg("p"), []byte(body))
		s.scratch = new(scratch)
		s.document()
		s.finish()
		s.doc.names = listing.Names{}
		return s.doc
	}
	bodies := []string{
		edges, `{"name":"p"}`, `{"name":"p","versions":{"1.0.0":{"dist":{"tarball":"t"}}}}`, string(packument.Generate("p", 50, 1)), string(packument.Generate("p", 3, 2)),
	}
	var want, got []*document
	for _, body := range bodies {
		want = append(want, fresh(body))
		_, _ = Scan(pkg("p"), []byte(body[:len(body)*2/3])) // refused, in the middle
		got = append(got, scanned(t, "p", body).(*document))
	}
	for i := range got {
		got[i].names = listing.Names{}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%.60s:\n%+v\nwant\n%+v", bodies[i], got[i], want[i])
		}
	}
}

// What is kept for later scans holds nothing of a document that it has read, and is not without
// bound.
func TestScratchKeepsNoDocument(t *testing.T) {
	s := newScan(pkg("p"), []byte(edges))
	s.document()
	kept := *s.scratch
	if len(kept.rawVersions) == 0 || len(kept.spans) == 0 {
		t.Fatalf("nothing was read: %+v", kept)
	}
	s.leave()
	for _, r := range kept.rawVersions {
		if r != (rawVersion{}) {
			t.Fatalf("%+v", r)
		}
	}
	huge := &scratch{rawVersions: make([]rawVersion, 1, maxScratch+1)}
	huge.rawVersions[0].version = "1"
	huge.leave()
	if huge.rawVersions[0].version != "1" {
		t.Error("a huge one is kept")
	}
}
