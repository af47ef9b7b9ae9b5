// Command benchplot turns what `go test -bench` printed into the pictures and the table of
// docs/performance.md. The same input gives the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

func main() {
	in := flag.String("in", "", "the `file` that go test -bench wrote")
	plots := flag.String("plots", "", "the `folder` for the SVG files")
	page := flag.String("page", "", "the `page` whose table is written anew")
	flag.Parse()
	if err := run(*in, *plots, *page); err != nil {
		fmt.Fprintln(os.Stderr, "benchplot:", err)
		os.Exit(1)
	}
}

func run(in, plots, page string) error {
	f, err := os.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	r, machine, err := read(f, in)
	if err != nil {
		return err
	}
	if plots != "" {
		for _, c := range charts() {
			if err := c.draw(r, filepath.Join(plots, c.file+".svg")); err != nil {
				return fmt.Errorf("%s: %w", c.file, err)
			}
		}
	}
	if page == "" {
		return nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	changed, err := replaceTable(string(text), machine.String()+table(r))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(changed), 0o644)
}

// results are the values of every benchmark: by its full name without the processors, and by unit,
// one for each repetition.
type results map[string]map[string][]float64

// machine is what the first results say about where they were made.
type machine map[string]string

// String is one line for the page, with the empty line that follows it.
func (m machine) String() string {
	var parts []string
	for _, key := range []string{"cpu", "cores", "goos", "kernel", "go", "nginx", "verdaccio", "node", "load-before"} {
		if m[key] != "" {
			parts = append(parts, key+" "+m[key])
		}
	}
	return "Measured with: " + strings.Join(parts, ", ") + ".\n\n"
}

// read collects the results of a file, with units as go test prints them.
func read(r io.Reader, name string) (results, machine, error) {
	out, where := results{}, machine{}
	for records := benchfmt.NewReader(r, name); records.Scan(); {
		switch rec := records.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, nil, rec
		case *benchfmt.Result:
			for _, c := range rec.Config {
				if _, ok := where[c.Key]; !ok {
					where[c.Key] = string(c.Value)
				}
			}
			full := string(rec.Name)
			if i := strings.LastIndexByte(full, '-'); i > 0 {
				if _, err := strconv.Atoi(full[i+1:]); err == nil {
					full = full[:i]
				}
			}
			if out[full] == nil {
				out[full] = map[string][]float64{}
			}
			for _, v := range rec.Values {
				unit, value := v.Unit, v.Value
				if v.OrigUnit != "" {
					unit, value = v.OrigUnit, v.OrigValue
				}
				out[full][unit] = append(out[full][unit], value)
			}
		}
	}
	if len(out) == 0 {
		return nil, nil, errors.New("no results")
	}
	return out, where, nil
}

// middle is the median of a benchmark's values of a unit.
func (r results) middle(name, unit string) (float64, bool) {
	values := slices.Sorted(slices.Values(r[name][unit]))
	if len(values) == 0 {
		return 0, false
	}
	return values[len(values)/2], true
}

// point is a place of a curve.
type point struct{ x, y float64 }

// curve gives the medians of a benchmark's unit over one key of its name, such as size=160KB,
// rising.
func (r results) curve(name, key, unit string) (points []point) {
	prefix := name + "/" + key + "="
	for full := range r {
		rest, ok := strings.CutPrefix(full, prefix)
		if !ok {
			continue
		}
		x, ok := number(rest)
		y, has := r.middle(full, unit)
		if ok && has {
			points = append(points, point{x, y})
		}
	}
	slices.SortFunc(points, func(a, b point) int { return int(math.Copysign(1, a.x-b.x)) })
	return points
}

// number reads 12, 160KB or 3.7MB.
func number(text string) (float64, bool) {
	for suffix, factor := range map[string]float64{"KB": 1e3, "MB": 1e6} {
		if digits, ok := strings.CutSuffix(text, suffix); ok {
			n, err := strconv.ParseFloat(digits, 64)
			return n * factor, err == nil
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}
