package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/bench"
)

// scene is a row of the table: how all arms insert.
type scene struct {
	name                  string
	conns, rows           int
	prepared, interpolate bool
	params                string // of shardkey's DSN
}

var scenes = []scene{
	{name: "default DSN", conns: 1, rows: 1},
	{name: "default DSN, 16 connections", conns: 16, rows: 1},
	{name: "default DSN, batches of 100", conns: 1, rows: 100},
	{name: "prepared once", conns: 1, rows: 1, prepared: true},
	{name: "interpolateParams", conns: 1, rows: 1, interpolate: true},
	{name: "interpolateParams, shardkeyStatements=always", conns: 1, rows: 1, interpolate: true,
		params: "&shardkeyStatements=always"},
}

// measure measures a scene, and prints its row.
func (o options) measure(s scene, admin *sql.DB, cfg *mysql.Config) ([]ratio, error) {
	var running []*runningArm
	defer func() {
		for _, a := range running {
			a.db.Close()
		}
	}()
	for i := range arms {
		a, err := s.start(admin, cfg, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arms[i].name, err)
		}
		running = append(running, a)
	}
	calls := o.calls
	if s.conns > 1 || s.rows > 1 {
		calls = max(1, calls/4)
	}
	for round := range o.rounds + 1 {
		for i := range running {
			a := running[(i+round)%len(running)]
			if err := a.turn(s, calls); err != nil {
				return nil, fmt.Errorf("%s: %w", a.name, err)
			}
			if round == 0 { // it warms up
				a.took, a.spent = nil, 0
			}
		}
	}
	return s.print(o.out, running, calls), nil
}

// atOnce calls f so many times at once.
func atOnce(n int, f func() error) error {
	if n == 1 {
		return f()
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// printHead prints the table's head. A ratio is how many times as fast shardkey is.
func printHead(out io.Writer) {
	head, line := "| |", "| --- |"
	for _, a := range arms {
		head, line = head+" "+a.name+" |", line+" --- |"
	}
	fmt.Fprintf(out, "%s ratio | ratio, same query |\n%s --- | --- |\n", head, line)
}

// print prints the scene's row: of each arm the median time of an INSERT, and the
// processor time that this process used for it; and the ratios.
func (s scene) print(out io.Writer, running []*runningArm, calls int) (ratios []ratio) {
	fmt.Fprintf(out, "| %s |", s.name)
	own := running[shardkey].took
	for _, to := range []int{ownKeys, sameQuery} {
		ratios = append(ratios, ratio{Scene: s.name, To: arms[to].name, Ratio: medianRatio(running[to].took, own)})
	}
	for _, a := range running {
		per := 1e6 / float64(calls*s.conns)
		spent := a.spent.Seconds() / float64(len(a.took))
		fmt.Fprintf(out, " %.1f (%.1f) |", bench.Median(a.took).Seconds()*per, spent*per)
	}
	for _, r := range ratios {
		fmt.Fprintf(out, " %.2f |", r.Ratio)
	}
	fmt.Fprintln(out)
	return ratios
}

// medianRatio returns the median of the rounds' ratios: the turns of one round are
// close in time, so that a busy neighbor slows them alike.
func medianRatio(a, b []time.Duration) float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i].Seconds() / b[i].Seconds()
	}
	slices.Sort(all)
	return all[len(all)/2]
}
