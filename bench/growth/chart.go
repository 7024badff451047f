package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The chart's measures, in pixels. A growth is a panel with both axes logarithmic.
const (
	panelWidth, panelHeight = 440, 300
	left, right             = 64, 16
	top, bottom             = 34, 84
	columns                 = 2
)

// chart draws the growths as an SVG, readable on light and dark pages. The same
// figures give the same bytes.
func chart(all []growth) string {
	rows := (len(all) + columns - 1) / columns
	width, height := columns*panelWidth, rows*panelHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11" role="img">
<title>How shardkey grows</title>
<style>
text { fill: #24292f } .page { fill: #ffffff } .grid { stroke: #d0d7de; fill: none }
.c0 { stroke: #0969da; fill: #0969da } .c1 { stroke: #bc4c00; fill: #bc4c00 } .c2 { stroke: #1a7f37; fill: #1a7f37 } .c3 { stroke: #8250df; fill: #8250df }
.line { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .page { fill: #0d1117 } .grid { stroke: #30363d }
.c0 { stroke: #58a6ff; fill: #58a6ff } .c1 { stroke: #f0883e; fill: #f0883e } .c2 { stroke: #3fb950; fill: #3fb950 } .c3 { stroke: #bc8cff; fill: #bc8cff }
.line { fill: none }
}
</style>
<rect class="page" width="%d" height="%d"/>
`, width, height, width, height, width, height)
	for i, g := range all {
		fmt.Fprintf(&b, "<g transform=\"translate(%d %d)\">\n", i%columns*panelWidth, i/columns*panelHeight)
		g.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// decades are the powers of ten around all values of an axis.
func decades(g growth, value func(point) float64) (low, high int) {
	low, high = math.MaxInt, math.MinInt
	for _, l := range g.lines {
		for _, p := range l.points {
			v := math.Log10(value(p))
			low, high = min(low, int(math.Floor(v))), max(high, int(math.Ceil(v)))
		}
	}
	return low, max(high, low+1)
}

func (g growth) draw(b *strings.Builder) {
	w, h := float64(panelWidth-left-right), float64(panelHeight-top-bottom)
	x0, x1 := decades(g, func(p point) float64 { return p.n })
	y0, y1 := decades(g, func(p point) float64 { return p.value })
	x := func(v float64) float64 { return left + w*(math.Log10(v)-float64(x0))/float64(x1-x0) }
	y := func(v float64) float64 { return top + h - h*(math.Log10(v)-float64(y0))/float64(y1-y0) }

	fmt.Fprintf(b, "<text x=\"%d\" y=\"20\" font-weight=\"bold\">%s</text>\n", left, html.EscapeString(g.title))
	for d := x0; d <= x1; d++ {
		v := math.Pow(10, float64(d))
		fmt.Fprintf(b, "<path class=\"grid\" d=\"M%.1f %dV%.1f\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x(v), top, top+h, x(v), top+h+14, number(v))
	}
	for d := y0; d <= y1; d++ {
		v := math.Pow(10, float64(d))
		fmt.Fprintf(b, "<path class=\"grid\" d=\"M%d %.1fH%.1f\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", left, y(v), left+w, left-5, y(v)+4, number(v))
	}
	for i, l := range g.lines {
		path := "M"
		for _, p := range l.points {
			fmt.Fprintf(b, "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", i, x(p.n), y(p.value))
			path += fmt.Sprintf("%.1f %.1f ", x(p.n), y(p.value))
		}
		fmt.Fprintf(b, "\n<path class=\"c%d line\" style=\"fill:none\" d=\"%s\"/>\n", i, strings.TrimSpace(path))
		at := top + h + 32 + float64(13*i)
		fmt.Fprintf(b, "<path class=\"c%d line\" d=\"M%d %.1fh16\"/><text x=\"%d\" y=\"%.1f\">%s; slope %.2f</text>\n", i, left, at-4, left+21, at, html.EscapeString(l.name), l.slope())
	}
}
