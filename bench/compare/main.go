// Command compare compares shardkey's generators with those of other libraries, and prints
// Markdown tables. Each figure is the median of many short turns. All subjects take turns, so
// that other load on the machine affects all of them.
package main

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/shardkey/shardkey/bench"
)

func main() {
	testing.Init()
	rounds := flag.Int("rounds", 50, "number of turns of each generator; a tenth of it for saturation")
	each := flag.Duration("time", 5*time.Millisecond, "duration of a turn")
	full := flag.Duration("saturate", 2*time.Second, "duration of each measurement of saturation")
	flag.Parse()
	err := flag.Set("test.benchtime", "200ms")
	if err == nil {
		fmt.Println(bench.Machine())
		err = oneKey("One integer key, below saturation", bench.Snowflakes(), *rounds, *each)
	}
	if err == nil {
		batches()
		err = oneKey("One UUID or the like", bench.Random(), *rounds, *each)
	}
	if err == nil {
		err = saturated(max(1, *rounds/10), *full)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// oneKey measures all subjects in turn, and prints medians. It opens the subjects again in each
// turn, because some libraries have settings for the whole process.
func oneKey(title string, subjects []bench.Subject, rounds int, each time.Duration) error {
	goroutines := []int{1, 2, 16}
	perKey := make([][]float64, len(goroutines)) // in ns, for each subject
	for j, n := range goroutines {
		keys := make([]int, len(subjects)) // keys of each goroutine in a turn
		turn := func(i int) (time.Duration, error) {
			took, err := inOneTurn(subjects[i], n, keys[i])
			if err != nil {
				return 0, fmt.Errorf("%s: %w", subjects[i].Name, err)
			}
			return took, nil
		}
		for i := range keys { // find the number of keys that takes as long as a turn
			keys[i] = 10_000
			for range 2 {
				took, err := turn(i)
				if err != nil {
					return err
				}
				keys[i] = max(1_000/n, int(float64(keys[i])*each.Seconds()/took.Seconds()))
			}
		}
		took, err := bench.Rounds(rounds, len(subjects), turn)
		if err != nil {
			return err
		}
		for i := range subjects {
			perKey[j] = append(perKey[j], float64(bench.Median(took[i]).Nanoseconds())/float64(n*keys[i]))
		}
	}
	fmt.Printf("\n### %s: ns, and the ratio to the first\n\n"+
		"| | alone | 2 goroutines | 16 goroutines | allocations |\n| --- | --- | --- | --- | --- |\n", title)
	for i, s := range subjects {
		fmt.Printf("| %s |", s.Name)
		for _, ns := range perKey {
			fmt.Printf(" %.0f (%.2f) |", ns[i], ns[i]/ns[0])
		}
		allocs, err := allocations(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		fmt.Printf(" %.0f |\n", allocs)
	}
	return nil
}

// inOneTurn opens a subject, generates that many keys in each goroutine, and returns the time.
func inOneTurn(s bench.Subject, goroutines, keys int) (time.Duration, error) {
	next, done, err := s.Open()
	if err != nil {
		return 0, err
	}
	defer done()
	if err := next(); err != nil {
		return 0, err
	}
	start := time.Now()
	err = bench.AtOnce(goroutines, func(int) error {
		for range keys {
			if err := next(); err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(start), err
}

// allocations returns the number of allocations for one key.
func allocations(s bench.Subject) (n float64, err error) {
	next, done, err := s.Open()
	if err != nil {
		return 0, err
	}
	defer done()
	return testing.AllocsPerRun(1000, func() {
		if failed := next(); failed != nil {
			err = failed
		}
	}), err
}

func batches() {
	fmt.Print("\n### A batch of keys of shardkey SNOWFLAKE, leased\n\n" +
		"| keys | ns a key | allocations |\n| --- | --- | --- |\n")
	for _, n := range []int{100, 1000} {
		r := testing.Benchmark(bench.Batch(n))
		fmt.Printf("| %d | %.2f | %d |\n", n, float64(r.T.Nanoseconds())/float64(r.N)/float64(n), r.AllocsPerOp())
	}
}

// saturated prints the share and cores of the round with the highest share.
func saturated(rounds int, d time.Duration) error {
	fmt.Print("\n### Saturated at 41-10-12, 16 goroutines\n\n" +
		"| | of 4.096 million a second | cores | longest stall, best and worst round |\n| --- | --- | --- | --- |\n")
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
		fmt.Printf("| %s | %.1f %% | %.2f | %v, %v |\n",
			s.Name, 100*top.Share, top.Cores, shortest.Round(10*time.Microsecond), longest.Round(10*time.Microsecond))
	}
	return nil
}
