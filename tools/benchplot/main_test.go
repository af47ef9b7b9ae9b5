package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `load-before: 0.25
goos: linux
cpu: AMD EPYC
BenchmarkListing/size=160KB/encoding=identity-2         	       1	        20000 req/s	         1.20 ratio/plain
BenchmarkListing/size=160KB/encoding=identity-2         	       1	        21000 req/s	         0.90 ratio/plain
BenchmarkListing/size=160KB/encoding=identity-2         	       1	        22000 req/s	         1.00 ratio/plain
BenchmarkNotModified/size=160KB-2 	       1	     12345 req/s
BenchmarkGrowthDocument/size=10KB-2 	     100	     20000 ns/op	 500 MB/s	         1.400 live/doc	1.9 live-with-body/doc
BenchmarkGrowthDocument/size=3.7MB-2 	     100	   5500000 ns/op	 500 MB/s	         1.300 live/doc	1.8 live-with-body/doc
BenchmarkGrowthVersions/versions=10-2 	     100	     20000 ns/op
BenchmarkGrowthVersions/versions=100000-2 	     100	     200000000 ns/op
BenchmarkGrowthClients/clients=1-2 	     1	     3000 req/s	 2 p99-ms	 4000 plain-req/s	 2 plain-p99-ms
BenchmarkGrowthClients/clients=2000-2 	     1	     2000 req/s	 200 p99-ms	 4000 plain-req/s	 200 plain-p99-ms
BenchmarkGrowthDocuments/documents=0-2 	     1	     30 RSS-MiB	 31 peak-MiB
BenchmarkGrowthDocuments/documents=1-2 	     1	     40 RSS-MiB	 41 peak-MiB
BenchmarkGrowthDocuments/documents=1000-2 	     1	     400 RSS-MiB	 410 peak-MiB
`

func readSample(t *testing.T) results {
	t.Helper()
	r, where, err := read(strings.NewReader(sample), "sample")
	if err != nil {
		t.Fatal(err)
	}
	if got := where.String(); got != "Measured with: cpu AMD EPYC, goos linux, load-before 0.25.\n\n" {
		t.Errorf("%q", got)
	}
	return r
}

// The table holds medians with the lowest and the highest, and says which goals are met, which are
// not, and what was not measured.
func TestTable(t *testing.T) {
	got := table(readSample(t))
	for _, row := range []string{
		"| warm listing, 160 KB, identity, to plain Go | 0.80 | 1.00 (0.90 to 1.20) | met |\n",
		"| 304 | 20,000/s | 12,300/s | **not met** |\n",
		"| cold: scan, rules, splice of 3.7 MB | 6 ms | 5.5 ms | met |\n",
		"| artifact from disk, 10 MB, to nginx | 0.90 | not measured |  |\n",
	} {
		if !strings.Contains(got, row) {
			t.Errorf("%q is missing in\n%s", row, got)
		}
	}
}

// Only what stands between the marks of a page changes.
func TestReplaceTable(t *testing.T) {
	page, err := replaceTable("a\n"+begin+"old\n"+end+"z\n", "new\n")
	if want := "a\n" + begin + "new\n" + end + "z\n"; err != nil || page != want {
		t.Errorf("%q %v", page, err)
	}
	if _, err := replaceTable("a\n", "new\n"); err == nil {
		t.Error("a page without marks was taken")
	}
}

// The same results give the same pictures, with their labels as text.
func TestChartsAreTheSameEachTime(t *testing.T) {
	r := readSample(t)
	for _, c := range charts() {
		var pictures [2][]byte
		for i := range pictures {
			path := filepath.Join(t.TempDir(), "x.svg")
			if err := c.draw(r, path); err != nil {
				t.Fatal(err)
			}
			var err error
			if pictures[i], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(pictures[0], pictures[1]) {
			t.Errorf("%s differs", c.file)
		}
		for _, label := range []string{c.title, c.x, c.y} {
			if !strings.Contains(string(pictures[0]), ">"+label+"<") {
				t.Errorf("%s: no label %q", c.file, label)
			}
		}
	}
}

func TestNothingMeasured(t *testing.T) {
	if _, _, err := read(strings.NewReader("PASS\n"), "x"); err == nil {
		t.Error("an empty file was taken")
	}
}
