// Command growth measures shardkey's time and memory as its input grows: tables in a rule,
// statements, rows of a statement, connections, rows of an INSERT … SELECT. It prints
// Markdown tables:
//
//	go run ./internal/testserver/run -servers mysql,mariadb go run -C bench ./growth
//
// A slope is the slope of the logarithms over the last three rows: 1 if the value is
// proportional to the number, 0 if it is constant.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"

	"github.com/shardkey/shardkey/bench"
	"github.com/shardkey/shardkey/internal/testserver"
)

func main() {
	most := flag.Int("most", 1_000_000, "largest number of tables, statements, rows and connections")
	only := flag.String("only", "", "only table to print: tables, statements, rows, connections or select")
	cpu := flag.Int("cpu", runtime.NumCPU()-1, "processor for client and server, or -1 for no pinning")
	flag.Parse()
	if err := run(*only, *most, *cpu); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// growth is a table: the number that grows, up to top, and the measured values for each number.
type growth struct {
	name, title, counted string
	top                  int
	columns              []string
	measure              func(n int) ([]float64, error)
}

func run(only string, most, cpu int) error {
	fmt.Println(bench.Machine())
	print := func(all []growth) error {
		for _, g := range all {
			if only != "" && only != g.name {
				continue
			}
			g.top = min(g.top, most)
			if err := g.print(); err != nil {
				return fmt.Errorf("%s: %w", g.name, err)
			}
		}
		return nil
	}
	if err := print(inMemory); err != nil {
		return err
	}
	named, err := testserver.Named()
	if err != nil {
		return err
	}
	if len(named) == 0 {
		fmt.Println("\nno server: rows, connections and INSERT … SELECT are not measured")
		return nil
	}
	s, err := newServer(named[0].DSN)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Printf("\n%s, %s\n", s.version, bench.Pin(cpu, s.admin))
	return print(s.growths())
}

// print measures the values and prints the table.
func (g growth) print() error {
	fmt.Printf("\n### %s\n\n| %s | %s |\n", g.title, g.counted, strings.Join(g.columns, " | "))
	fmt.Println("|" + strings.Repeat(" --- |", 1+len(g.columns)))
	numbers := counts(g.top)
	values := make([][]float64, len(g.columns))
	for _, n := range numbers {
		row, err := g.measure(n)
		if err != nil {
			return err
		}
		fmt.Printf("| %s |", number(float64(n)))
		for i, v := range row {
			values[i] = append(values[i], v)
			fmt.Printf(" %s |", number(v))
		}
		fmt.Println()
	}
	fmt.Print("| slope |")
	for _, column := range values {
		fmt.Printf(" %.2f |", slope(numbers, column))
	}
	fmt.Println()
	return nil
}

// counts returns 1, 10, 100, … and top.
func counts(top int) (all []int) {
	for n := 1; n < top; n *= 10 {
		all = append(all, n)
	}
	return append(all, top)
}

// slope returns the slope of the logarithms over the last three values, by least squares.
func slope(numbers []int, values []float64) float64 {
	var n, x, y, xx, xy float64
	for i := max(0, len(values)-3); i < len(values); i++ {
		a, b := math.Log(float64(numbers[i])), math.Log(values[i])
		n, x, y, xx, xy = n+1, x+a, y+b, xx+a*a, xy+a*b
	}
	if d := n*xx - x*x; d != 0 {
		return (n*xy - x*y) / d
	}
	return 0
}

// number formats a number with three digits, or with commas if it is large.
func number(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.3g", v)
	}
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
