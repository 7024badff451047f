package main

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/bench"
	"github.com/shardkey/shardkey/internal/test/must"
)

// Ratios are of the same round, so a round in which both are slow doesn't change them.
func TestFigures(t *testing.T) {
	turns := func(ms ...int) (all []bench.Times) {
		for _, n := range ms {
			d := time.Duration(n) * time.Millisecond
			all = append(all, bench.Times{Wall: d, Client: d / 2, Server: d / 4})
		}
		return all
	}
	w := workload{name: "INSERT", goroutines: 2, variants: []int{plain, shardkey, withKeys}}
	have := w.figures("MySQL", [][]bench.Times{turns(20, 600, 20), turns(10, 300, 10), turns(10, 300, 20)}, 5)
	figureOf := func(v, to int, wall float64, ratio float64, err float64) figure {
		e := estimate{ratio, err}
		return figure{Server: "MySQL", Workload: "INSERT", Variant: variants[v].name, To: variants[to].name,
			Wall: wall, Client: wall / 2, ServerTime: wall / 4, Speed: e, Processor: e}
	}
	want := []figure{
		figureOf(plain, plain, 2000, 1, 0),
		figureOf(shardkey, plain, 1000, 2, 0),
		figureOf(withKeys, shardkey, 2000, 1, 0.25),
	}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("have: %+v\nwant: %+v", have, want)
	}
}

// Processor times that can't be read are no ratio.
func TestFigures_withoutProcessorTime(t *testing.T) {
	turn := []bench.Times{{Wall: time.Second, Client: time.Second}}
	w := workload{goroutines: 1, variants: []int{plain, shardkey}}
	for _, f := range w.figures("MySQL", [][]bench.Times{turn, turn}, 1) {
		if want := (estimate{}); f.Processor != want || f.Speed.Median != 1 {
			t.Errorf("have: %+v\nwant: no ratio of processor times", f)
		}
	}
}

func TestEstimateOf(t *testing.T) {
	have := estimateOf(100, func(i int) float64 { return float64((i * 37) % 100) }) // 0 to 99
	must.Equal(t, have, (estimate{50, 5}))
}

func speedOf(workload, variant string, speed float64) figure {
	return figure{Server: "MySQL", Workload: workload, Variant: variant, Speed: estimate{speed, 0.02}}
}

func speedsOf(values ...float64) (all []figure) {
	for i, v := range values {
		all = append(all, speedOf([]string{"INSERT", "UPDATE"}[i], "shardkey", v))
	}
	return all
}

// A comparison passes if the first or the second run has the recorded figures.
func TestCompare(t *testing.T) {
	recorded := record{Figures: append(speedsOf(2.0, 0.95), speedOf("INSERT", "go-sql-driver", 1))}
	newWorkload := []figure{speedOf("DELETE", "shardkey", 1)}
	for _, test := range []struct {
		name string
		runs [][]figure
		want string
	}{
		{"as recorded", [][]figure{speedsOf(2.0, 0.95)}, ""},
		{"within noise", [][]figure{speedsOf(1.92, 1.03)}, ""},
		{"slower once", [][]figure{speedsOf(1.5, 0.95), speedsOf(2.0, 0.95)}, ""},
		{"each slower once", [][]figure{speedsOf(1.5, 0.95), speedsOf(2.0, 0.5)}, ""},
		{"another workload only", [][]figure{speedsOf(2.0)}, ""},
		{"a new workload", [][]figure{newWorkload, newWorkload}, "MySQL, DELETE: shardkey"},
		{"slower", [][]figure{speedsOf(1.5, 0.95), speedsOf(1.5, 0.95)}, "MySQL, INSERT: shardkey"},
		{"faster", [][]figure{speedsOf(2.0, 1.5), speedsOf(2.0, 1.5)}, "MySQL, UPDATE: shardkey"},
	} {
		next := 0
		err := recorded.compare(io.Discard, func() ([]figure, error) {
			next++
			return slices.Clone(test.runs[next-1]), nil
		})
		have := ""
		if err != nil {
			have = err.Error()
		}
		if (have == "") != (test.want == "") || !strings.HasSuffix(have, test.want) || next != len(test.runs) {
			t.Errorf("%s\nhave: %d runs, %s\nwant: %d runs, %s", test.name, next, have, len(test.runs), test.want)
		}
	}
}

func TestRecord_readsWhatItWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	want := record{"2026-11-26", speedsOf(2.0, 0.95)}
	must.Do(t, want.write(path))
	if have, err := readRecord(path); err != nil || !reflect.DeepEqual(have, want) {
		t.Errorf("have: %+v, %v\nwant: %+v", have, err, want)
	}
}

// An invalid file fails before a server is started.
func TestRun_invalidRecord(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":    "figures: 1",
		"no figures": `"2026-11-26"`,
		"no speed":   `"2026-11-26"` + "\n" + `{"Server": "MySQL"}`,
		"half a one": `"2026-11-26"` + "\n" + `{"Server": "MySQL", "Speed": {"Median": 2}} {"Server"`,
	} {
		path := filepath.Join(t.TempDir(), "figures.json")
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		must.FailWith(t, run(options{check: path, servers: "none"}), path, name)
	}
	if err := run(options{check: filepath.Join(t.TempDir(), "none")}); !os.IsNotExist(err) {
		t.Errorf("no file\nhave: %v\nwant: that there is none", err)
	}
}
