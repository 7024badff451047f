package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/shardkey/shardkey/bench"
)

// ratio is the speed of shardkey divided by that of another variant of a scene.
type ratio struct {
	Server, Scene, To string
	Ratio             float64
	// Noise is the largest expected difference from Ratio.
	Noise float64 `json:",omitempty"`
}

func (r ratio) name() string { return r.Server + ", " + r.Scene + ": to " + r.To }

// noted is a file of ratios that -note has written.
type noted struct {
	Machine string
	Runs    int
	Ratios  []ratio
}

// A few runs don't show all of the noise, so it is doubled, and is at least leastNoise.
const (
	noiseFactor = 2
	leastNoise  = 0.05
)

// summary returns the median and the noise of each ratio over several runs. It leaves out ratios
// whose noise is more than half of the ratio.
func summary(runs [][]ratio) (all []ratio) {
	for i, r := range runs[0] {
		var values []float64
		for _, run := range runs {
			values = append(values, run[i].Ratio)
		}
		slices.Sort(values)
		r.Ratio = values[len(values)/2]
		r.Noise = max(leastNoise, noiseFactor*max(r.Ratio-values[0], values[len(values)-1]-r.Ratio))
		r.Ratio, r.Noise = math.Round(100*r.Ratio)/100, math.Round(100*r.Noise)/100
		if r.Noise <= r.Ratio/2 {
			all = append(all, r)
		}
	}
	return all
}

// note measures several times and writes the file for check.
func note(o options) error {
	file := noted{Machine: bench.Machine(), Runs: o.runs}
	var runs [][]ratio
	for range o.runs {
		ratios, err := servers(o)
		if err != nil {
			return err
		}
		runs = append(runs, ratios)
	}
	file.Ratios = summary(runs)
	text, err := json.MarshalIndent(file, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(o.note, append(text, '\n'), 0o666)
}

// check measures, and fails if the same ratio is outside of its noise in two runs.
func check(o options) error {
	file, err := readNoted(o.check)
	if err != nil {
		return err
	}
	file.Ratios = slices.DeleteFunc(file.Ratios, func(r ratio) bool { return o.scene != "" && r.Scene != o.scene })
	return checkRuns(o.out, file, func() ([]ratio, error) { return servers(o) })
}

func checkRuns(out io.Writer, file noted, run func() ([]ratio, error)) error {
	for range 2 {
		have, err := run()
		if err != nil {
			return err
		}
		if file.Ratios, err = outside(out, have, file); err != nil || len(file.Ratios) == 0 {
			return err
		}
	}
	return fmt.Errorf("%d ratios differ from the noted ones in two runs, for example %s",
		len(file.Ratios), file.Ratios[0].name())
}

func readNoted(path string) (file noted, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return file, err
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return file, fmt.Errorf("%s: %w", path, err)
	}
	if len(file.Ratios) == 0 {
		return file, fmt.Errorf("%s: expected ratios, found none", path)
	}
	for _, r := range file.Ratios {
		if !(r.Ratio > 0) || !(r.Noise >= 0) || r.Noise >= r.Ratio {
			return file, fmt.Errorf("%s: %s: invalid ratio %v or noise %v", path, r.name(), r.Ratio, r.Noise)
		}
	}
	return file, nil
}

// outside returns the noted ratios whose measured value is outside of their noise, higher or
// lower. It prints servers that weren't measured.
func outside(out io.Writer, have []ratio, file noted) (all []ratio, err error) {
	measured, servers := map[string]float64{}, map[string]bool{}
	for _, r := range have {
		measured[r.name()], servers[r.Server] = r.Ratio, true
	}
	fmt.Fprintf(out, "\nnoted: %s, %d runs\n", file.Machine, file.Runs)
	compared := 0
	for _, want := range file.Ratios {
		if !servers[want.Server] {
			fmt.Fprintf(out, "not measured: %s\n", want.name())
			continue
		}
		compared++
		r := measured[want.name()] // 0 if the scene no longer exists
		verdict := "ok"
		switch {
		case r < want.Ratio-want.Noise:
			verdict = "SLOWER"
		case r > want.Ratio+want.Noise:
			verdict = "FASTER"
		}
		if verdict != "ok" {
			all = append(all, want)
		}
		fmt.Fprintf(out, "%-6s %.2f, noted %.2f ± %.2f: %s\n", verdict, r, want.Ratio, want.Noise, want.name())
	}
	if compared == 0 {
		return nil, errors.New("no noted ratio was measured")
	}
	return all, nil
}
