package debug

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/shardkey/shardkey/driver"
)

// chart is a line over the window, to be drawn into chartWidth by chartHeight.
type chart struct {
	Title string
	Unit  string
	Now   string // the newest value, empty while there is none
	Top   string // the value at the upper edge
	Line  string // of SVG's path
	Area  string
	Says  string // the chart in words
}

const chartWidth, chartHeight = 300.0, 60.0

// gap is how far points may be apart for a line to join them: further apart, nobody
// looked in between.
const gap = 15 * time.Second

// point is a value over the time since the sample before it.
type point struct {
	at    time.Time
	value float64
	joins bool // the line comes from the point before
}

// charts are a connector's.
func charts(series []sample) []chart {
	perSecond := func(of func(sample) int64) func(a, b sample) (float64, bool) {
		return func(a, b sample) (float64, bool) { return rate(a, b, of(a), of(b)) }
	}
	return []chart{
		draw("Keys", "a second", number, series, perSecond(func(s sample) int64 { return s.keys })),
		draw("Time to make keys", "p99", func(f float64) string { return seconds(time.Duration(f * float64(time.Second))) }, series, slowest),
		draw("Calls that waited", "a second", number, series, perSecond(func(s sample) int64 { return s.waits })),
		draw("Refused statements", "a second", number, series, perSecond(func(s sample) int64 { return s.refused })),
	}
}

// keyRate is a generator's; nil for one that has counted nothing.
func keyRate(series []sample, name string) *chart {
	c := draw("Keys", "a second", number, series, func(a, b sample) (float64, bool) {
		before, ok := a.generators[name]
		if !ok {
			return 0, false
		}
		return rate(a, b, before, b.generators[name])
	})
	return &c
}

// rate is a count's over the time between two samples. A count that fell began again,
// with another rule.
func rate(a, b sample, from, to int64) (float64, bool) {
	return float64(to-from) / b.at.Sub(a.at).Seconds(), to >= from
}

// slowest is the duration, in seconds, below which 99 of 100 of the calls between two
// samples were.
func slowest(a, b sample) (float64, bool) {
	if len(a.generate.Counts) != len(b.generate.Counts) {
		return 0, false
	}
	between := driver.Histogram{Bounds: b.generate.Bounds, Counts: make([]int64, len(b.generate.Counts))}
	for i := range between.Counts {
		if between.Counts[i] = b.generate.Counts[i] - a.generate.Counts[i]; between.Counts[i] < 0 {
			return 0, false
		}
	}
	d, ok := quantile(between, 0.99)
	return d.Seconds(), ok
}

// quantile is the upper bound of the bucket that a share of the durations reaches into,
// or the last bound for those above it; ok is false where there are none.
func quantile(h driver.Histogram, share float64) (d time.Duration, ok bool) {
	total := h.Count()
	if total == 0 || len(h.Bounds) == 0 {
		return 0, false
	}
	rank, seen := int64(math.Ceil(share*float64(total))), int64(0)
	for i, bound := range h.Bounds {
		if seen += h.Counts[i]; seen >= rank {
			return bound, true
		}
	}
	return h.Bounds[len(h.Bounds)-1], true
}

func number(f float64) string { return trimmed(f) }

// draw draws what value says of each two samples that follow each other.
func draw(title, unit string, text func(float64) string, series []sample, value func(a, b sample) (float64, bool)) chart {
	c := chart{Title: title, Unit: unit}
	var points []point
	for i := 1; i < len(series); i++ {
		v, ok := value(series[i-1], series[i])
		if !ok {
			continue
		}
		n := len(points)
		points = append(points, point{series[i].at, v, n > 0 && series[i].at.Sub(points[n-1].at) <= gap})
	}
	if len(points) == 0 {
		c.Says = title + ": nothing to show yet"
		return c
	}
	top := 0.0
	for _, p := range points {
		top = max(top, p.value)
	}
	edge := niceAbove(top)
	last := points[len(points)-1]
	c.Now, c.Top = text(last.value), text(edge)
	c.Says = fmt.Sprintf("%s: now %s %s; at most %s in the last five minutes", title, c.Now, unit, text(top))
	c.path(points, series[len(series)-1].at, edge)
	return c
}

// path writes the line, and the area below it.
func (c *chart) path(points []point, now time.Time, edge float64) {
	var line, area strings.Builder
	x := func(p point) float64 {
		return chartWidth * (1 - min(1, now.Sub(p.at).Seconds()/window.Seconds()))
	}
	y := func(p point) float64 { return chartHeight - (chartHeight-2)*p.value/edge - 1 }
	for i, p := range points {
		if !p.joins {
			// A point by itself is a short line.
			fmt.Fprintf(&line, "M%.1f %.1fh1", x(p), y(p))
			if i > 0 {
				fmt.Fprintf(&area, "V%.0fZ", chartHeight)
			}
			fmt.Fprintf(&area, "M%.1f %.0fV%.1f", x(p), chartHeight, y(p))
			continue
		}
		fmt.Fprintf(&line, "L%.1f %.1f", x(p), y(p))
		fmt.Fprintf(&area, "L%.1f %.1f", x(p), y(p))
	}
	c.Line = line.String()
	c.Area = area.String() + fmt.Sprintf("V%.0fZ", chartHeight)
}

// niceAbove is the least of 1, 2, 5, 10, … that is not below a value.
func niceAbove(v float64) float64 {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if v <= n*power {
			return n * power
		}
	}
	return 10 * power
}
