package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/shardkey/shardkey/bench"
)

// figure is the result of a variant of a workload. Times are the medians of the rounds, in µs for a
// statement.
type figure struct {
	Server, Workload, Variant string
	Wall, Client, ServerTime  float64
	// Speed and Processor are ratios to the variant To: how many times as fast this variant is, and
	// how many times as much processor time To needs, 0 if that is unknown.
	To               string
	Speed, Processor estimate
}

// estimate is a median and its standard error.
type estimate struct{ Median, Error float64 }

func (e estimate) String() string { return fmt.Sprintf("%.3f ± %.3f", e.Median, e.Error) }

const figuresHead = "| workload | variant | µs | client | server | speed | processor |\n" +
	"| --- | --- | --- | --- | --- | --- | --- |\n"

// String returns the figure's row in the printed table.
func (f figure) String() string {
	return fmt.Sprintf("| %s | %s | %.1f | %.1f | %.1f | %v | %v |\n",
		f.Workload, f.Variant, f.Wall, f.Client, f.ServerTime, f.Speed, f.Processor)
}

// figures returns the figures of a workload's variants from the times of their turns.
func (w workload) figures(server string, took [][]bench.Times, calls int) (all []figure) {
	per := 1e6 / float64(calls*w.goroutines)
	wall := func(t bench.Times) time.Duration { return t.Wall }
	median := func(all []bench.Times, of func(bench.Times) time.Duration) float64 {
		return estimateOf(len(all), func(i int) float64 { return of(all[i]).Seconds() * per }).Median
	}
	for i, turns := range took {
		v := variants[w.variants[i]]
		to := took[slices.Index(w.variants, v.to)]
		ratio := func(of func(bench.Times) time.Duration) estimate {
			return estimateOf(len(turns), func(i int) float64 { return of(to[i]).Seconds() / of(turns[i]).Seconds() })
		}
		all = append(all, figure{
			Server: server, Workload: w.name, Variant: v.name, To: variants[v.to].name,
			Wall:       median(turns, wall),
			Client:     median(turns, func(t bench.Times) time.Duration { return t.Client }),
			ServerTime: median(turns, func(t bench.Times) time.Duration { return t.Server }),
			Speed:      ratio(wall), Processor: ratio(bench.Times.Processor),
		})
	}
	return all
}

// estimateOf returns the median of n values. Its error is half the distance between the values
// whose ranks are a standard deviation, √n/2, from the median's. This needs no assumption about
// the distribution, and a few disturbed rounds don't change it.
func estimateOf(n int, value func(i int) float64) estimate {
	all := make([]float64, n)
	for i := range all {
		all[i] = value(i)
	}
	slices.Sort(all)
	if math.IsNaN(all[0]) { // the first in this order
		return estimate{}
	}
	d := int(math.Ceil(math.Sqrt(float64(n)) / 2))
	round := func(v float64) float64 { return math.Round(1000*v) / 1000 }
	low, high := all[max(0, n/2-d)], all[min(n-1, n/2+d)]
	return estimate{round(all[n/2]), round((high - low) / 2)}
}

// record is the file that -note writes and -check reads: the figures of one run.
type record struct {
	Run     string
	Figures []figure
}

// write writes the run's description and a line for each figure.
func (r record) write(path string) error {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	err := to.Encode(r.Run)
	for _, f := range r.Figures {
		err = cmp.Or(err, to.Encode(f))
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o666)
}

func readRecord(path string) (r record, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	from := json.NewDecoder(bytes.NewReader(text))
	err = from.Decode(&r.Run)
	for err == nil && from.More() {
		var f figure
		if err = from.Decode(&f); err == nil && !(f.Speed.Median > 0) {
			err = fmt.Errorf("%s: expected a speed, found %v", f.name(), f.Speed.Median)
		}
		r.Figures = append(r.Figures, f)
	}
	switch {
	case err != nil:
		return r, fmt.Errorf("%s: %w", path, err)
	case len(r.Figures) == 0:
		return r, fmt.Errorf("%s: expected figures, found none", path)
	}
	return r, nil
}

func (f figure) name() string { return f.Server + ", " + f.Workload + ": " + f.Variant }

// compare compares the measured speeds of shardkey's variants with the recorded ones. It fails if
// one of them differs in two runs.
func (r record) compare(out io.Writer, run func() ([]figure, error)) error {
	var suspects []string
	for round := range 2 {
		have, err := run()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\nrecorded: %s\n", r.Run)
		have = slices.DeleteFunc(have, func(f figure) bool {
			return !strings.HasPrefix(f.Variant, "shardkey") || round > 0 && !slices.Contains(suspects, f.name())
		})
		if suspects = r.different(out, have); len(suspects) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%d speeds differ from the recorded ones in two runs, for example %s", len(suspects), suspects[0])
}

// Two runs differ by more than the errors of their medians, so a difference counts if it is more than
// three errors and more than leastNoise.
const leastNoise = 0.05

// different returns the names of figures whose speed differs from the recorded one, or isn't recorded.
func (r record) different(out io.Writer, have []figure) (names []string) {
	for _, f := range have {
		want, verdict := estimate{}, "ok"
		if i := slices.IndexFunc(r.Figures, func(f2 figure) bool { return f2.name() == f.name() }); i >= 0 {
			want = r.Figures[i].Speed
		}
		switch noise := max(leastNoise, 3*math.Hypot(f.Speed.Error, want.Error)); {
		case want == estimate{}:
			verdict = "NEW"
		case f.Speed.Median < want.Median-noise:
			verdict = "SLOWER"
		case f.Speed.Median > want.Median+noise:
			verdict = "FASTER"
		}
		if verdict != "ok" {
			names = append(names, f.name())
		}
		fmt.Fprintf(out, "%-6s %v, recorded %v: %s\n", verdict, f.Speed, want, f.name())
	}
	return names
}
