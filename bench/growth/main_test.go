package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func example(name string, f func(n float64) float64) line {
	l := line{name: name}
	for _, n := range counts(100_000) {
		l.points = append(l.points, point{float64(n), f(float64(n))})
	}
	return l
}

func TestSlope(t *testing.T) {
	for _, test := range []struct {
		line line
		want float64
	}{
		{example("as many", func(n float64) float64 { return 3 * n }), 1},
		{example("constant", func(float64) float64 { return 7 }), 0},
		{example("squares", func(n float64) float64 { return n * n / 5 }), 2},
		{line{points: []point{{1, 1}}}, 0},
	} {
		if have := test.line.slope(); math.Abs(have-test.want) > 1e-9 {
			t.Errorf("%s\nhave: %v\nwant: %v", test.line.name, have, test.want)
		}
	}
}

func TestCounts(t *testing.T) {
	have := counts(65_535)
	if len(have) != 6 || have[4] != 10_000 || have[5] != 65_535 || len(counts(1)) != 1 || len(counts(1000)) != 4 {
		t.Errorf("have: %v, %v, %v", have, counts(1), counts(1000))
	}
}

// The chart is XML, has each line and its slope, and is the same each time.
func TestChart(t *testing.T) {
	all := []growth{
		{title: "A & B", counted: "tables", lines: []line{example("µs <each>", func(n float64) float64 { return 3 * n }), example("flat", func(float64) float64 { return 0.2 })}},
		{title: "One point", counted: "rows", lines: []line{{name: "one", points: []point{{1, 1}}}}},
	}
	have := chart(all)
	if have != chart(all) {
		t.Error("two charts of the same figures differ")
	}
	for _, part := range []string{"A &amp; B", "µs &lt;each&gt;; slope 1.00", "flat; slope 0.00", "100,000", "prefers-color-scheme: dark"} {
		if !strings.Contains(have, part) {
			t.Errorf("have no %q in:\n%s", part, have)
		}
	}
	if strings.Contains(have, "NaN") || strings.Contains(have, "Inf") {
		t.Errorf("have what is no number:\n%s", have)
	}
	for d := xml.NewDecoder(strings.NewReader(have)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
