package main

import (
	"database/sql"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/bench"
)

// scene is a row of the table: a way to insert, the same for all arms.
type scene struct {
	name                  string
	conns, rows           int
	prepared, interpolate bool
	params                string // parameters of shardkey's DSN
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

// measure measures a scene and prints its row.
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
	took, err := bench.Rounds(o.rounds, len(running), func(i int) (time.Duration, error) {
		return running[i].turn(s, calls)
	})
	if err != nil {
		return nil, err
	}
	return s.print(o.out, running, took, calls), nil
}

// printHead prints the table's head. A ratio is the speed of shardkey divided by another's.
func printHead(out io.Writer) {
	head, line := "| |", "| --- |"
	for _, a := range arms {
		head, line = head+" "+a.name+" |", line+" --- |"
	}
	fmt.Fprintf(out, "%s ratio | ratio, same query |\n%s --- | --- |\n", head, line)
}

// print prints the scene's row: for each arm the median time of an INSERT and this process'
// processor time for it, then the ratios.
func (s scene) print(out io.Writer, running []*runningArm, took [][]time.Duration, calls int) (ratios []ratio) {
	fmt.Fprintf(out, "| %s |", s.name)
	for _, to := range []int{ownKeys, sameQuery} {
		ratios = append(ratios, ratio{Scene: s.name, To: arms[to].name, Ratio: medianRatio(took[to], took[shardkey])})
	}
	for i, a := range running {
		per := 1e6 / float64(calls*s.conns)
		spent := a.spent.Seconds() / float64(1+len(took[i])) // the warm-up round counts
		median := bench.Median(slices.Clone(took[i]))
		fmt.Fprintf(out, " %.1f (%.1f) |", median.Seconds()*per, spent*per)
	}
	for _, r := range ratios {
		fmt.Fprintf(out, " %.2f |", r.Ratio)
	}
	fmt.Fprintln(out)
	return ratios
}

// medianRatio returns the median of the rounds' ratios. The turns of a round are close in time,
// so that other load slows them equally.
func medianRatio(a, b []time.Duration) float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i].Seconds() / b[i].Seconds()
	}
	slices.Sort(all)
	return all[len(all)/2]
}
