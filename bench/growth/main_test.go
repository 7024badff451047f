package main

import (
	"math"
	"testing"
)

func TestSlope(t *testing.T) {
	for name, test := range map[string]struct {
		top  int
		f    func(n float64) float64
		want float64
	}{
		"as many":  {100_000, func(n float64) float64 { return 3 * n }, 1},
		"constant": {100_000, func(float64) float64 { return 7 }, 0},
		"squares":  {100_000, func(n float64) float64 { return n * n / 5 }, 2},
		"one":      {1, func(n float64) float64 { return n }, 0},
	} {
		numbers := counts(test.top)
		var values []float64
		for _, n := range numbers {
			values = append(values, test.f(float64(n)))
		}
		if have := slope(numbers, values); math.Abs(have-test.want) > 1e-9 {
			t.Errorf("%s\nhave: %v\nwant: %v", name, have, test.want)
		}
	}
}

func TestCounts(t *testing.T) {
	have := counts(65_535)
	if len(have) != 6 || have[4] != 10_000 || have[5] != 65_535 || len(counts(1)) != 1 || len(counts(1000)) != 4 {
		t.Errorf("have: %v, %v, %v", have, counts(1), counts(1000))
	}
}

// The tables that need no server have a value in each column.
func TestInMemory(t *testing.T) {
	for _, g := range inMemory {
		values, err := g.measure(10)
		if err != nil || len(values) != len(g.columns) {
			t.Fatalf("%s\nhave: %v, %v\nwant: %q", g.name, values, err, g.columns)
		}
		for i, v := range values {
			if !(v > 0) {
				t.Errorf("%s, %s: have: %v", g.name, g.columns[i], v)
			}
		}
	}
}
