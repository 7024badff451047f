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

// arm is a way to get the keys.
type arm struct {
	name, driver string
	auto         bool   // the key column is AUTO_INCREMENT
	row          string // placeholders of the first row
}

// arms are the columns of the table. The first arm has keys of bwmarrin/snowflake in an ordinary
// query. The second has the same keys in the query that shardkey sends. The difference of these
// two is the server's, and the difference to shardkey is the driver's.
var arms = []arm{
	{name: "go-sql-driver", driver: "mysql", row: "(?, ?, ?, ?)"},
	{name: "go-sql-driver, same query", driver: "mysql", row: "(?, ?, ?, LAST_INSERT_ID(?))"},
	{name: "go-sql-driver, AUTO_INCREMENT", driver: "mysql", auto: true, row: "(?, ?, ?)"},
	{name: "shardkey", driver: "shardkey", row: "(?, ?, ?)"},
}

// Indexes of arms.
const (
	ownKeys = iota
	sameQuery
	autoIncrement
	shardkey
)

// givesKeys reports whether the program generates the keys.
func (a arm) givesKeys() bool { return a.driver == "mysql" && !a.auto }

// query returns an INSERT of that many rows. Like shardkey's, it has LAST_INSERT_ID() only around
// the first key.
func (a arm) query(rows int) string {
	columns, rest := "(user_id, amount, note)", a.row
	if a.givesKeys() {
		columns, rest = "(user_id, amount, note, id)", arms[ownKeys].row
	}
	return "INSERT INTO t_order " + columns + " VALUES " + a.row + strings.Repeat(", "+rest, rows-1)
}

// schema returns the database of an arm. Each arm has its own, so that ascending keys of one arm
// aren't inserted between another's.
func schema(i int) string { return fmt.Sprintf("%s_%d", database, i) }

// runningArm is an arm with its connections.
type runningArm struct {
	arm
	db    *sql.DB
	node  *snowflake.Node
	exec  func(args ...any) (sql.Result, error)
	spent time.Duration // processor time of this process in all turns
}

// start creates an arm's table and opens its connections.
func (s scene) start(admin *sql.DB, cfg *mysql.Config, i int) (*runningArm, error) {
	cfg = cfg.Clone()
	cfg.InterpolateParams = s.interpolate
	a := &runningArm{arm: arms[i]}
	auto, params := "", ""
	if a.auto {
		auto = " AUTO_INCREMENT"
	}
	if a.driver == "shardkey" {
		params = "shardkeyRule=bench" + s.params
	}
	dsn, err := bench.Database(admin, cfg.FormatDSN(), schema(i), params, "t_order (id BIGINT NOT NULL"+auto+
		" PRIMARY KEY, user_id BIGINT, amount BIGINT, note VARCHAR(40))")
	if err != nil {
		return nil, err
	}
	if a.node, err = snowflake.NewNode(int64(i)); err != nil {
		return nil, err
	}
	if a.db, err = sql.Open(a.driver, dsn); err != nil {
		return nil, err
	}
	a.db.SetMaxOpenConns(s.conns)
	a.db.SetMaxIdleConns(s.conns)
	query := a.query(s.rows)
	a.exec = func(args ...any) (sql.Result, error) { return a.db.Exec(query, args...) }
	if s.prepared {
		st, err := a.db.Prepare(query)
		if err != nil {
			a.db.Close()
			return nil, err
		}
		a.exec = st.Exec
	}
	return a, nil
}

// turn runs one turn of an arm, with that many INSERTs on each connection.
func (a *runningArm) turn(s scene, calls int) (time.Duration, error) {
	start, spent := time.Now(), bench.ProcessorTime()
	err := bench.AtOnce(s.conns, func(int) error { return a.inserts(s.rows, calls) })
	took := time.Since(start)
	a.spent += bench.ProcessorTime() - spent
	if err != nil {
		return 0, fmt.Errorf("%s: %w", a.name, err)
	}
	return took, nil
}

// inserts runs one connection's INSERTs of a turn.
func (a *runningArm) inserts(rows, calls int) error {
	for n := range calls {
		args := make([]any, 0, 4*rows)
		for row := range rows {
			args = append(args, int64(n), int64(row), "a note")
			if a.givesKeys() {
				args = append(args, a.node.Generate().Int64())
			}
		}
		if _, err := a.exec(args...); err != nil {
			return err
		}
	}
	return nil
}

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
