package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// goal is one row of the table: a value of a benchmark, and what it should be.
type goal struct {
	work        string
	bench, unit string
	want        float64 // 0: nothing is promised
	atMost      bool    // else at least
	scale       float64 // from the benchmark's unit; 0: 1
	suffix      string
}

// goals are the rows, in order.
func goals() []goal {
	const small, large = "Listing/size=160KB/encoding=identity", "Listing/size=3.7MB/encoding="
	return []goal{
		{work: "warm listing, 160 KB, identity, to plain Go", bench: small, unit: "ratio/plain", want: 0.8},
		{work: "the same, to Verdaccio", bench: small, unit: "ratio/verdaccio", want: 50},
		{work: "the same, to nginx with a warm cache", bench: small, unit: "ratio/nginx"},
		{work: "warm listing, 3.7 MB, gzip, to plain Go with it compressed", bench: large + "gzip", unit: "ratio/plain", want: 0.8},
		{work: "the same, to Verdaccio, which compresses for each request", bench: large + "gzip", unit: "ratio/verdaccio", want: 200},
		{work: "the same, to nginx with a warm cache of it compressed", bench: large + "gzip", unit: "ratio/nginx"},
		{work: "warm listing, 3.7 MB, identity, to plain Go", bench: large + "identity", unit: "ratio/plain"},
		{work: "the same, to nginx with a warm cache", bench: large + "identity", unit: "ratio/nginx"},
		{work: "304", bench: "NotModified/size=160KB", unit: "req/s", want: 20_000, suffix: "/s"},
		{work: "cold: scan, rules, splice of 3.7 MB", bench: "GrowthDocument/size=3.7MB", unit: "ns/op", want: 6, atMost: true, scale: 1e-6, suffix: " ms"},
		{work: "the same, versions that repeat each other like real ones", bench: "GrowthAlike/size=3.7MB", unit: "ns/op", scale: 1e-6, suffix: " ms"},
		{work: "the same, 21 MB in the shape of next", bench: "GrowthAlike/like=next", unit: "ns/op", scale: 1e-6, suffix: " ms"},
		{work: "live memory of a document of 3.7 MB to its size", bench: "GrowthDocument/size=3.7MB", unit: "live/doc", want: 1.5, atMost: true},
		{work: "the same, 64 MB", bench: "GrowthDocument/size=64MB", unit: "live/doc", want: 1.5, atMost: true},
		{work: "a version comes of age in 3.7 MB: recompression, processor time", bench: "Pack/gzip/runs-differ", unit: "cpu-ms/op", want: 2, atMost: true, suffix: " ms"},
		{work: "the same, from the request to the new compressed body", bench: "ComesOfAge/npm-full/kept-runs-gzip", unit: "cpu-ms/op", suffix: " ms"},
		{work: "compressing the whole instead", bench: "Pack/gzip/whole", unit: "cpu-ms/op", suffix: " ms"},
		{work: "a release comes of age in a page of 10,000 files, JSON, from the request to the new compressed body", bench: "ComesOfAge/pypi-json/kept-runs-gzip", unit: "cpu-ms/op", suffix: " ms"},
		{work: "compressing the whole instead", bench: "ComesOfAge/pypi-json/whole-compression", unit: "cpu-ms/op", suffix: " ms"},
		{work: "3.7 MB merged with ten private versions, each request, gzip", bench: "Merged/gzip", unit: "cpu-ms/op", suffix: " ms"},
		{work: "refusal while cooling", bench: "Refusal/cooling", unit: "req/s", want: 20_000, suffix: "/s"},
		{work: "the same, 99th percentile", bench: "Refusal/cooling", unit: "p99-ms", want: 10, atMost: true, suffix: " ms"},
		{work: "artifact from disk, 10 MB, to nginx", bench: "Artifact/size=10MB", unit: "ratio/nginx", want: 0.9},
		{work: "the same, to http.ServeFile", bench: "Artifact/size=10MB", unit: "ratio/plain"},
		{work: "50 clients, one cold artifact: upstream transfers", bench: "ColdArtifact/clients=50", unit: "transfers", want: 1, atMost: true},
		{work: "the same, first byte to upstream's", bench: "ColdArtifact/clients=50", unit: "ratio/upstream", want: 1.1, atMost: true},
		{work: "idle gate, resident", bench: "GrowthDocuments/documents=0", unit: "RSS-MiB", want: 40, atMost: true, scale: 1.048576, suffix: " MB"},
		{work: "1,000 documents, resident, to cache.maxBytes", bench: "GrowthDocuments/documents=1000", unit: "RSS/budget", want: 1.2, atMost: true},
	}
}

const begin, end = "<!-- benchplot: begin -->\n", "<!-- benchplot: end -->\n"

// replaceTable puts a table between the marks of a page.
func replaceTable(page, table string) (string, error) {
	before, rest, ok := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", errors.New("the marks for the table are missing")
	}
	return before + begin + table + end + after, nil
}

// table is the goals beside the medians, with the lowest and the highest.
func table(r results) string {
	var out strings.Builder
	out.WriteString("| work | goal | measured | |\n|---|---|---|---|\n")
	for _, g := range goals() {
		values := slices.Sorted(slices.Values(r[g.bench][g.unit]))
		want, verdict, measured := "", "", "not measured"
		if g.want > 0 {
			want = g.format(g.want)
		}
		if len(values) > 0 {
			middle := values[len(values)/2]
			measured = g.format(g.scaled(middle))
			if len(values) > 1 {
				measured += fmt.Sprintf(" (%s to %s)", g.format(g.scaled(values[0])), g.format(g.scaled(values[len(values)-1])))
			}
			verdict = g.verdict(g.scaled(middle))
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", g.work, want, measured, verdict)
	}
	return out.String()
}

func (g goal) scaled(v float64) float64 {
	if g.scale != 0 {
		return v * g.scale
	}
	return v
}

func (g goal) verdict(v float64) string {
	switch {
	case g.want == 0:
		return ""
	case g.atMost && v <= g.want, !g.atMost && v >= g.want:
		return "met"
	}
	return "**not met**"
}

// format shows two or three digits that count.
func (g goal) format(v float64) string {
	switch {
	case v >= 1000:
		return count(float64(int(v/100)*100)) + g.suffix
	case v >= 20:
		return fmt.Sprintf("%.0f%s", v, g.suffix)
	case v >= 2:
		return fmt.Sprintf("%.3g%s", v, g.suffix)
	}
	return fmt.Sprintf("%.2f%s", v, g.suffix)
}
