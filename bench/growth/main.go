// Command growth measures what shardkey takes as what it is given grows: tables in a
// rule, texts, rows of a statement, connections, rows of an INSERT … SELECT. It prints
// Markdown tables, and draws them:
//
//	go run ./internal/testserver/run -servers mysql,mariadb go run -C bench ./growth -svg ../docs/growth.svg
//
// A slope is that of the logarithms over the last three points: 1 where what is
// measured grows as what is counted does, 0 where it does not grow.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/bench"
)

func main() {
	svg := flag.String("svg", "", "the file to draw to")
	most := flag.Int("most", 1_000_000, "the largest number of anything")
	only := flag.String("only", "", "the one growth to measure: tables, texts, rows, connections or select")
	cpu := flag.Int("cpu", runtime.NumCPU()-1, "the processor to pin client and server to; -1: none")
	flag.Parse()
	if err := run(*svg, *only, *most, *cpu); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// growth is one thing that grows, and the lines that say how.
type growth struct {
	title, counted string
	lines          []line
}

type line struct {
	name   string
	points []point
}

type point struct{ n, value float64 }

// slope is that of the logarithms over the last three points, by least squares.
func (l line) slope() float64 {
	points := l.points[max(0, len(l.points)-3):]
	var x, y, xx, xy float64
	for _, p := range points {
		a, b := math.Log(p.n), math.Log(p.value)
		x, y, xx, xy = x+a, y+b, xx+a*a, xy+a*b
	}
	n := float64(len(points))
	if d := n*xx - x*x; d != 0 {
		return (n*xy - x*y) / d
	}
	return 0
}

// counts are 1, 10, 100, … and top.
func counts(top int) (all []int) {
	for n := 1; n < top; n *= 10 {
		all = append(all, n)
	}
	return append(all, top)
}

func run(svg, only string, most, cpu int) error {
	fmt.Println(bench.Machine())
	var all []growth
	add := func(name string, measure func() (growth, error)) error {
		if only != "" && only != name {
			return nil
		}
		g, err := measure()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		g.print()
		all = append(all, g)
		return nil
	}
	err := errors.Join(
		add("tables", func() (growth, error) { return tables(min(most, 100_000)) }),
		add("texts", func() (growth, error) { return texts(most) }),
	)
	if err != nil {
		return err
	}
	dsn := os.Getenv("SHARDKEY_TEST_MYSQL_DSN")
	if dsn == "" {
		dsn = os.Getenv("SHARDKEY_TEST_MARIADB_DSN")
	}
	if dsn == "" {
		fmt.Println("\nno server: rows, connections and INSERT … SELECT are not measured")
		return draw(svg, all)
	}
	s, err := newServer(dsn)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Printf("\n%s, %s\n", s.version, bench.Pin(cpu, s.admin))
	err = errors.Join(
		add("rows", func() (growth, error) { return s.rows(min(most, 65_535)) }),
		add("connections", func() (growth, error) { return s.connections(min(most, 1_000)) }),
		add("select", func() (growth, error) { return s.insertSelect(most) }),
	)
	if err != nil {
		return err
	}
	return draw(svg, all)
}

func draw(path string, all []growth) error {
	if path == "" {
		return nil
	}
	return os.WriteFile(path, []byte(chart(all)), 0o666)
}

func (g growth) print() {
	fmt.Printf("\n### %s\n\n| %s |", g.title, g.counted)
	for _, l := range g.lines {
		fmt.Printf(" %s |", l.name)
	}
	fmt.Print("\n|" + strings.Repeat(" --- |", 1+len(g.lines)) + "\n")
	for i, p := range g.lines[0].points {
		fmt.Printf("| %s |", number(p.n))
		for _, l := range g.lines {
			fmt.Printf(" %s |", number(l.points[i].value))
		}
		fmt.Println()
	}
	fmt.Print("| slope |")
	for _, l := range g.lines {
		fmt.Printf(" %.2f |", l.slope())
	}
	fmt.Println()
}

// number writes three digits, and commas in large ones.
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

// heap is what is in use after a garbage collection.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// dsnOf returns a DSN with another database and more parameters.
func dsnOf(dsn, database, params string) (string, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	cfg.DBName = database
	dsn = cfg.FormatDSN()
	switch {
	case params == "":
	case strings.Contains(dsn, "?"):
		dsn += "&" + params
	default:
		dsn += "?" + params
	}
	return dsn, nil
}
