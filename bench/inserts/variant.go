package main

import (
	"database/sql"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/bench"
)

// variant is a way to get the keys.
type variant struct {
	name, driver string
	auto         bool   // the key column is AUTO_INCREMENT
	row          string // placeholders of the first row
}

// variants are the columns of the table. The first variant has keys of bwmarrin/snowflake in an ordinary
// query. The second has the same keys in the query that shardkey sends. The difference of these
// two is the server's, and the difference to shardkey is the driver's.
var variants = []variant{
	{name: "go-sql-driver", driver: "mysql", row: "(?, ?, ?, ?)"},
	{name: "go-sql-driver, same query", driver: "mysql", row: "(?, ?, ?, LAST_INSERT_ID(?))"},
	{name: "go-sql-driver, AUTO_INCREMENT", driver: "mysql", auto: true, row: "(?, ?, ?)"},
	{name: "shardkey", driver: "shardkey", row: "(?, ?, ?)"},
}

// Indexes of variants.
const (
	ownKeys = iota
	sameQuery
	autoIncrement
	shardkey
)

// givesKeys reports whether the program generates the keys.
func (v variant) givesKeys() bool { return v.driver == "mysql" && !v.auto }

// query returns an INSERT of that many rows. Like shardkey's, it has LAST_INSERT_ID() only around
// the first key.
func (v variant) query(rows int) string {
	columns, rest := "(user_id, amount, note)", v.row
	if v.givesKeys() {
		columns, rest = "(user_id, amount, note, id)", variants[ownKeys].row
	}
	return "INSERT INTO t_order " + columns + " VALUES " + v.row + strings.Repeat(", "+rest, rows-1)
}

// schema returns the database of a variant. Each variant has its own, so that ascending keys of one variant
// aren't inserted between another's.
func schema(i int) string { return fmt.Sprintf("%s_%d", database, i) }

// runningVariant is a variant with its connections.
type runningVariant struct {
	variant
	db    *sql.DB
	node  *snowflake.Node
	exec  func(args ...any) (sql.Result, error)
	spent time.Duration // processor time of this process in all turns
}

// start creates a variant's table and opens its connections.
func (s scene) start(admin *sql.DB, cfg *mysql.Config, i int) (*runningVariant, error) {
	cfg = cfg.Clone()
	cfg.InterpolateParams = s.interpolate
	v := &runningVariant{variant: variants[i]}
	auto, params := "", ""
	if v.auto {
		auto = " AUTO_INCREMENT"
	}
	if v.driver == "shardkey" {
		params = "shardkeyRule=bench" + s.params
	}
	dsn, err := bench.Database(admin, cfg.FormatDSN(), schema(i), params, "t_order (id BIGINT NOT NULL"+auto+
		" PRIMARY KEY, user_id BIGINT, amount BIGINT, note VARCHAR(40))")
	if err != nil {
		return nil, err
	}
	if v.node, err = snowflake.NewNode(int64(i)); err != nil {
		return nil, err
	}
	if v.db, err = sql.Open(v.driver, dsn); err != nil {
		return nil, err
	}
	v.db.SetMaxOpenConns(s.conns)
	v.db.SetMaxIdleConns(s.conns)
	query := v.query(s.rows)
	v.exec = func(args ...any) (sql.Result, error) { return v.db.Exec(query, args...) }
	if s.prepared {
		st, err := v.db.Prepare(query)
		if err != nil {
			v.db.Close()
			return nil, err
		}
		v.exec = st.Exec
	}
	return v, nil
}

// turn runs one turn of a variant, with that many INSERTs on each connection.
func (v *runningVariant) turn(s scene, calls int) (time.Duration, error) {
	start, spent := time.Now(), bench.ProcessorTime()
	err := bench.AtOnce(s.conns, func(int) error { return v.inserts(s.rows, calls) })
	took := time.Since(start)
	v.spent += bench.ProcessorTime() - spent
	if err != nil {
		return 0, fmt.Errorf("%s: %w", v.name, err)
	}
	return took, nil
}

// inserts runs one connection's INSERTs of a turn.
func (v *runningVariant) inserts(rows, calls int) error {
	for n := range calls {
		args := make([]any, 0, 4*rows)
		for row := range rows {
			args = append(args, int64(n), int64(row), "a note")
			if v.givesKeys() {
				args = append(args, v.node.Generate().Int64())
			}
		}
		if _, err := v.exec(args...); err != nil {
			return err
		}
	}
	return nil
}

// scene is a row of the table: a way to insert, the same for all variants.
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
	var running []*runningVariant
	defer func() {
		for _, v := range running {
			v.db.Close()
		}
	}()
	for i := range variants {
		v, err := s.start(admin, cfg, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variants[i].name, err)
		}
		running = append(running, v)
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
	for _, v := range variants {
		head, line = head+" "+v.name+" |", line+" --- |"
	}
	fmt.Fprintf(out, "%s ratio | ratio, same query |\n%s --- | --- |\n", head, line)
}

// print prints the scene's row: for each variant the median time of an INSERT and this process'
// processor time for it, then the ratios.
func (s scene) print(out io.Writer, running []*runningVariant, took [][]time.Duration, calls int) (ratios []ratio) {
	fmt.Fprintf(out, "| %s |", s.name)
	for _, to := range []int{ownKeys, sameQuery} {
		ratios = append(ratios, ratio{Scene: s.name, To: variants[to].name, Ratio: medianRatio(took[to], took[shardkey])})
	}
	for i, v := range running {
		per := 1e6 / float64(calls*s.conns)
		spent := v.spent.Seconds() / float64(1+len(took[i])) // the warm-up round counts
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
func medianRatio(v, b []time.Duration) float64 {
	all := make([]float64, len(v))
	for i := range v {
		all[i] = v[i].Seconds() / b[i].Seconds()
	}
	slices.Sort(all)
	return all[len(all)/2]
}
