package main

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// series is one line of a picture.
type series struct {
	label string
	unit  string  // of the benchmark
	scale float64 // from the benchmark's unit to the axis's; 0: 1
}

func (s series) factor() float64 {
	if s.scale == 0 {
		return 1
	}
	return s.scale
}

// chart is one picture: the units of one benchmark over one key of its name.
type chart struct {
	file, title, x, y string
	bench, key        string
	series            []series
	flat              map[string]float64 // goals and bounds: straight lines across
	// also a line of slope 1 through the last point of the first series
	linear  bool
	logY    bool
	formatX func(float64) string
}

// charts are the pictures of docs/performance.md.
func charts() []chart {
	servers := func(unit string) []series {
		return []series{{label: "the gate", unit: unit}, {label: "plain Go, bytes in memory", unit: "plain-" + unit}, {label: "nginx, warm cache", unit: "nginx-" + unit}}
	}
	return []chart{
		{
			file: "document-time", title: "Cold listing: scan, rules, splice", x: "size of the document", y: "milliseconds",
			bench: "GrowthDocument", key: "size", series: []series{{"measured", "ns/op", 1e-6}}, linear: true, logY: true, formatX: size,
		},
		{
			file: "document-memory", title: "Live memory for each byte of a document", x: "size of the document", y: "bytes for each byte",
			bench: "GrowthDocument", key: "size", series: []series{{"document, scanned", "live/doc", 1}, {"with one listing made of it", "live-with-body/doc", 1}},
			flat: map[string]float64{"goal for the document": 1.5}, formatX: size,
		},
		{
			file: "versions-time", title: "Cold listing of short versions", x: "versions", y: "milliseconds",
			bench: "GrowthVersions", key: "versions", series: []series{{"measured", "ns/op", 1e-6}}, linear: true, logY: true, formatX: count,
		},
		{
			file: "clients-rate", title: "Warm listing of 160 KB", x: "clients at once", y: "requests a second",
			bench: "GrowthClients", key: "clients", series: servers("req/s"), formatX: count,
		},
		{
			file: "clients-p99", title: "Warm listing of 160 KB", x: "clients at once", y: "99th percentile, milliseconds",
			bench: "GrowthClients", key: "clients", series: servers("p99-ms"), logY: true, formatX: count,
		},
		{
			file: "documents-memory", title: "Memory of the gate, cache.maxBytes 256 MiB", x: "different listings of 160 KB asked for", y: "MiB",
			bench: "GrowthDocuments", key: "documents", series: []series{{"resident", "RSS-MiB", 1}},
			flat: map[string]float64{"budget and a fifth": 256 * 1.2}, formatX: count,
		},
	}
}

// palette is told apart by people who see few colours, too; markers and dashes differ as well.
var palette = []color.Color{
	color.RGBA{R: 0x00, G: 0x5a, B: 0x9c, A: 0xff}, color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}, color.RGBA{R: 0x00, G: 0x80, B: 0x5a, A: 0xff},
}

var (
	grey   = color.Gray{Y: 0x80}
	light  = color.Gray{Y: 0xdd}
	glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}}
)

// draw writes the picture of the results.
func (c chart) draw(r results, path string) error {
	plot.DefaultFont.Variant = "Sans"
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.Padding, p.X.Label.Padding, p.Y.Label.Padding = vg.Points(8), vg.Points(4), vg.Points(4)
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(3)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = light, light
	p.Add(grid)
	first := r.curve(c.bench, c.key, c.series[0].unit)
	first = positive(first)
	if len(first) < 2 {
		return errors.New("fewer than two points: run the benchmark first")
	}
	if c.linear {
		last := first[len(first)-1]
		y := last.y * c.series[0].factor()
		ideal := plotter.XYs{{X: first[0].x, Y: y * first[0].x / last.x}, {X: last.x, Y: y}}
		if err := c.dashes(p, "in proportion", ideal); err != nil {
			return err
		}
	}
	for label, y := range c.flat {
		if err := c.dashes(p, label, plotter.XYs{{X: first[0].x, Y: y}, {X: first[len(first)-1].x, Y: y}}); err != nil {
			return err
		}
	}
	for i, s := range c.series {
		if err := c.line(p, i, s, positive(r.curve(c.bench, c.key, s.unit))); err != nil {
			return err
		}
	}
	c.axes(p)
	return save(p, path)
}

// save draws with a margin, since labels reach beyond the ends of the axes.
func save(p *plot.Plot, path string) error {
	canvas := vgsvg.New(vg.Points(540), vg.Points(340))
	margin := vg.Points(10)
	p.Draw(draw.Crop(draw.New(canvas), margin, -2*margin, margin, -margin))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return err
	}
	text := bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,sans-serif;"))
	return os.WriteFile(path, text, 0o644)
}

// axes sets scales and marks.
func (c chart) axes(p *plot.Plot) {
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades(c.formatX)
	if c.logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades(count)
		p.Y.Max *= 4 // room for the legend
		return
	}
	p.Y.Min = 0
	p.Y.Max *= 1.35
	p.Y.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		ticks := plot.DefaultTicks{}.Ticks(low, high)
		for i, t := range ticks {
			if t.Label != "" {
				ticks[i].Label = count(t.Value)
			}
		}
		return ticks
	})
}

func (c chart) dashes(p *plot.Plot, label string, points plotter.XYs) error {
	l, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	l.Color, l.Dashes = grey, []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(l)
	p.Legend.Add(label, l)
	return nil
}

func (c chart) line(p *plot.Plot, i int, s series, points []point) error {
	if len(points) == 0 {
		return nil // a peer that is not installed
	}
	xys := make(plotter.XYs, len(points))
	for j, pt := range points {
		xys[j] = plotter.XY{X: pt.x, Y: pt.y * s.factor()}
	}
	l, marks, err := plotter.NewLinePoints(xys)
	if err != nil {
		return err
	}
	l.Color, l.Width = palette[i], vg.Points(1.5)
	marks.Color, marks.Shape, marks.Radius = palette[i], glyphs[i], vg.Points(2.5)
	p.Add(l, marks)
	p.Legend.Add(s.label, l, marks)
	return nil
}

// positive leaves out what a logarithmic axis has no place for.
func positive(points []point) (out []point) {
	for _, p := range points {
		if p.x > 0 {
			out = append(out, p)
		}
	}
	return out
}

// decades marks 1, 10, 100 and so on with a label, and the steps between without.
func decades(format func(float64) string) plot.TickerFunc {
	return func(low, high float64) (ticks []plot.Tick) {
		for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
			for step := 1.0; step < 10; step++ {
				value := decade * step
				if value < low*0.999 || value > high*1.001 {
					continue
				}
				t := plot.Tick{Value: value}
				if step == 1 {
					t.Label = format(value)
				}
				ticks = append(ticks, t)
			}
		}
		return ticks
	}
}

func count(v float64) string {
	text := strconv.FormatFloat(v, 'g', 12, 64)
	if v >= 1000 {
		text = strconv.FormatFloat(v, 'f', 0, 64)
	}
	for i := len(text) - 3; i > 0 && v >= 1000; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func size(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%g MB", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%g KB", v/1e3)
	}
	return fmt.Sprintf("%g B", v)
}
