// Command compare prints how shardkey's generators do beside their peers, as
// Markdown tables. Each figure is the best of several rounds, in which all
// subjects take turns, so that a busy neighbour slows all or none.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/shardkey/shardkey/bench"
)

func main() {
	testing.Init()
	rounds := flag.Int("rounds", 5, "how often each measurement is repeated")
	each := flag.Duration("time", 200*time.Millisecond, "how long one measurement takes")
	full := flag.Duration("saturate", 2*time.Second, "how long one measurement of saturation takes")
	flag.Parse()
	err := flag.Set("test.benchtime", each.String())
	if err == nil {
		fmt.Printf("%s, %s/%s, %d processors, %s\n", time.Now().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
		oneKey("One integer key, below saturation", bench.Snowflakes(), *rounds)
		batches(*rounds)
		oneKey("One UUID or the like", bench.Random(), *rounds)
		err = saturated(*rounds, *full)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// best is the shortest time of a key, and its allocations.
type best struct {
	ns     float64
	allocs int64
}

func (b *best) take(r testing.BenchmarkResult) {
	if ns := float64(r.T.Nanoseconds()) / float64(r.N); b.ns == 0 || ns < b.ns {
		b.ns = ns
	}
	b.allocs = r.AllocsPerOp()
}

func oneKey(title string, subjects []bench.Subject, rounds int) {
	goroutines := []int{1, 2, 16}
	results := make([][]best, len(subjects))
	for i := range results {
		results[i] = make([]best, len(goroutines))
	}
	for range rounds {
		for j, n := range goroutines {
			for i, s := range subjects {
				results[i][j].take(testing.Benchmark(bench.OneKey(s, n)))
			}
		}
	}
	fmt.Printf("\n### %s: ns, and the ratio to the first\n\n| | alone | 2 goroutines | 16 goroutines | allocations |\n| --- | --- | --- | --- | --- |\n", title)
	for i, s := range subjects {
		fmt.Printf("| %s |", s.Name)
		for j := range goroutines {
			fmt.Printf(" %.0f (%.2f) |", results[i][j].ns, results[i][j].ns/results[0][j].ns)
		}
		fmt.Printf(" %d |\n", results[i][0].allocs)
	}
}

func batches(rounds int) {
	fmt.Print("\n### A batch of keys of shardkey SNOWFLAKE, leased\n\n| keys | ns a key | allocations |\n| --- | --- | --- |\n")
	for _, n := range []int{100, 1000} {
		var b best
		for range rounds {
			b.take(testing.Benchmark(bench.Batch(n)))
		}
		fmt.Printf("| %d | %.2f | %d |\n", n, b.ns/float64(n), b.allocs)
	}
}

// saturated shows share and cores of the round with the highest share.
func saturated(rounds int, d time.Duration) error {
	fmt.Print("\n### Saturated at 41-10-12, 16 goroutines\n\n| | of 4.096 million a second | cores | longest stall, best and worst round |\n| --- | --- | --- | --- |\n")
	for _, s := range bench.Saturated() {
		var top bench.Load
		var shortest, longest time.Duration
		for round := range rounds {
			load, err := bench.Saturate(s, 16, d, false)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			timed, err := bench.Saturate(s, 16, d, true)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			if load.Share > top.Share {
				top = load
			}
			if longest = max(longest, timed.Stall); round == 0 || timed.Stall < shortest {
				shortest = timed.Stall
			}
		}
		fmt.Printf("| %s | %.1f %% | %.2f | %v, %v |\n", s.Name, 100*top.Share, top.Cores, shortest.Round(10*time.Microsecond), longest.Round(10*time.Microsecond))
	}
	return nil
}
