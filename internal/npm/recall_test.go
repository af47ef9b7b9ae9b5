package npm

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/listing"
)

// alike is a document whose versions repeat each other, with all that can go wrong about that: a member that is there twice, has moved, is gone, has
// grown, ends otherwise, or says something of its version.
const alike = `{"name":"p","versions":{
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

// What the versions before said changes nothing about what a version says.
func TestRecallChangesNothing(t *testing.T) {
	sameScan(t, []byte(alike), whole())
	for at := range len(alike) {
		sameScan(t, []byte(alike), from(at))
		sameScan(t, []byte(alike[:at]+`"`+alike[at+1:]), whole())
		sameScan(t, []byte(alike[:at]+alike[at+1:]), whole())
	}
	sameScan(t, packument.Generate("p", 1200, 1, packument.Alike()), usual)
	doc := scanned(t, "p", alike)
	var got []string
	for i, v := range doc.Versions() {
		got = append(got, fmt.Sprintf("%s %s %v %v", v.Version, v.License, v.InstallScripts, doc.(*document).entries[i].flags&flagDeprecated != 0))
	}
	want := []string{"1.0.0 MIT true true", "1.0.1 MIT true true", "1.0.7 XY true false", "1.0.8 XY true false", "1.0.9 XY true false"}
	if !reflect.DeepEqual(got, want) || doc.Dropped() != 5 {
		t.Errorf("%q and %d dropped", got, doc.Dropped())
	}
}

// More members than are remembered, in an order that changes, are read like any others.
func TestRecallOfManyMembers(t *testing.T) {
	var versions []string
	for v := range 40 {
		members := []string{fmt.Sprintf(`"dist":{"tarball":"http://r.test/p-1.0.%d.tgz"}`, v)}
		for i := range 3 * maxKnown {
			members = append(members, fmt.Sprintf(`"m%d":{"x":%d}`, (i*(v%5+1)+v)%(3*maxKnown), i/(v%3+1)))
		}
		versions = append(versions, fmt.Sprintf(`"1.0.%d":{%s}`, v, strings.Join(members, ",")))
	}
	sameScan(t, []byte(`{"name":"p","versions":{`+strings.Join(versions, ",")+`}}`), whole())
}

// A member that is the same as before is not read again: versions that are alike are mostly compared.
func TestRecallIsUsed(t *testing.T) {
	s := usual.newScan(pkg("p"), []byte(alike), listing.NewScanner([]byte(alike)))
	defer s.leave()
	s.Object()
	for key := ""; key != "versions"; {
		key, _ = s.Member()
		if key != "versions" {
			s.Skip()
		}
	}
	s.Object()
	s.nextVersion()
	s.Member()
	s.rows = append(s.rows, row{version: "1.0.1"})
	s.Object()
	s.recall.at = 0
	repeated := 0
	for {
		m := s.repeated()
		if m == nil {
			if m = s.field(&s.rows[1]); m == nil {
				break
			}
			continue
		}
		repeated++
	}
	if repeated != 6 { // all but version and dist
		t.Errorf("%d of 8 members were compared", repeated)
	}
}

// A scan that follows another one in the same memory finds nothing of it, and leaves the other document alone.
func TestScratchIsUsedAgain(t *testing.T) {
	fresh := func(body string) *document {
		s := usual.newScan(pkg("p"), []byte(body), listing.NewScanner([]byte(body)))
		s.scratch = new(scratch)
		s.document()
		s.facts()
		s.finish(&s)
		s.doc.names = listing.Names{}
		return s.doc
	}
	bodies := []string{
		alike, `{"name":"p"}`, `{"name":"p","versions":{"1.0.0":{"dist":{"tarball":"t"}}}}`, small, string(packument.Generate("p", 50, 1)), string(packument.Generate("p", 3, 2)),
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

// What is kept for later scans holds nothing of a document that it has read, and is not without bound.
func TestScratchKeepsNoDocument(t *testing.T) {
	s := usual.newScan(pkg("p"), []byte(alike), listing.NewScanner([]byte(alike)))
	s.document()
	kept := *s.scratch
	if len(kept.rows) == 0 || len(kept.known) == 0 || len(kept.runs) == 0 {
		t.Fatalf("nothing was read: %+v", kept)
	}
	s.leave()
	for _, r := range kept.rows {
		if r != (row{}) {
			t.Fatalf("%+v", r)
		}
	}
	for _, m := range kept.known {
		if m != (told{}) {
			t.Fatalf("%+v", m)
		}
	}
	huge := &scratch{rows: make([]row, 1, maxScratch+1)}
	huge.rows[0].version = "1"
	huge.leave()
	if huge.rows[0].version != "1" {
		t.Error("a huge one is kept")
	}
}
