package main

import (
	"database/sql"
	"fmt"
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
