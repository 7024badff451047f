package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/go-sql-driver/mysql"
)

// arm is one way to insert.
type arm struct {
	name, driver, params string
	table                string // "" is t_order, in a database of the arm's own
	prepared, auto       bool   // AUTO_INCREMENT: nobody gives a key
	gorm, sharding       bool   // through gorm, and its sharding plugin
	// detail arms say where the time goes, on one connection: wrapped is the key in
	// LAST_INSERT_ID(?), as shardkey sends it.
	detail, wrapped bool
}

// arms are all; the first is the one that others are held against.
var arms = []arm{
	{name: "go-sql-driver, keys of bwmarrin/snowflake", driver: "mysql"},
	{name: "the same, AUTO_INCREMENT", driver: "mysql", auto: true},
	{name: "the same, interpolateParams", driver: "mysql", params: "interpolateParams=true"},
	{name: "the same, prepared once", driver: "mysql", prepared: true},
	{name: "the same, through gorm", driver: "mysql", gorm: true},
	{name: "gorm/sharding", driver: "mysql", gorm: true, sharding: true},
	{name: "shardkey", driver: "shardkey"},
	{name: "shardkey, through gorm", driver: "shardkey", gorm: true},
	{name: "shardkey, shardkeyStatements=off", driver: "shardkey", params: "shardkeyStatements=off"},
	{name: "shardkey, interpolateParams", driver: "shardkey", params: "interpolateParams=true"},
	{name: "shardkey, interpolateParams and shardkeyStatements=always", driver: "shardkey", params: "interpolateParams=true&shardkeyStatements=always"},
	{name: "shardkey, prepared once", driver: "shardkey", prepared: true},
	{name: "go-sql-driver, interpolateParams, LAST_INSERT_ID(?) for the key", driver: "mysql", params: "interpolateParams=true", detail: true, wrapped: true},
	{name: "go-sql-driver, prepared once, LAST_INSERT_ID(?) for the key", driver: "mysql", prepared: true, detail: true, wrapped: true},
	{name: "shardkey, interpolateParams, shardkeyServer=other", driver: "shardkey", params: "interpolateParams=true&shardkeyServer=other", detail: true},
	{name: "shardkey, prepared once, shardkeyServer=other", driver: "shardkey", params: "shardkeyServer=other", prepared: true, detail: true},
}

// givesKeys reports whether the program makes the keys.
func (a arm) givesKeys() bool { return a.driver == "mysql" && !a.auto && !a.sharding }

// runningArm is an arm with its table and connections.
type runningArm struct {
	arm
	db    *sql.DB
	query string
	node  *snowflake.Node
	exec  []func(args []any) error // of each connection
	conns []*sql.Conn              // none through gorm
	took  []time.Duration          // of the rounds
}

// schema is the database of an arm: each has its own, as ascending keys of one
// would be in the middle of another's.
func schema(i int) string { return fmt.Sprintf("%s_%d", database, i) }

// start makes an arm's table, where it has none yet, and opens its connections.
func (s scene) start(admin *sql.DB, cfg *mysql.Config, of arm, i int) (*runningArm, error) {
	database, table := cfg.DBName, of.table
	var err error
	if table == "" {
		database, table = schema(i), "t_order"
		err = of.create(admin, database)
	}
	if err != nil {
		return nil, err
	}
	a := &runningArm{arm: of}
	if a.db, err = sql.Open(of.driver, s.dsn(cfg, of, database)); err != nil {
		return nil, err
	}
	a.db.SetMaxOpenConns(s.conns)
	a.db.SetMaxIdleConns(s.conns)
	if a.node, err = snowflake.NewNode(int64(i)); err != nil {
		return a, err
	}
	row, columns := "(?, ?, ?)", "(user_id, amount, note)"
	if a.givesKeys() {
		row, columns = "(?, ?, ?, ?)", "(user_id, amount, note, id)"
	}
	if a.wrapped {
		row = "(?, ?, ?, LAST_INSERT_ID(?))"
	}
	a.query = "INSERT INTO " + table + " " + columns + " VALUES " + row + strings.Repeat(", "+row, s.rows-1)
	return a, a.open(s.conns)
}

// create makes an arm's database, and its table.
func (a arm) create(admin *sql.DB, database string) error {
	auto, table := "", "t_order"
	if a.auto {
		auto = " AUTO_INCREMENT"
	}
	if a.sharding {
		table += onlyShard
	}
	for _, query := range []string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database,
		"CREATE TABLE " + database + "." + table + " (id BIGINT NOT NULL" + auto + " PRIMARY KEY, user_id BIGINT, amount BIGINT, note VARCHAR(40))"} {
		if _, err := admin.Exec(query); err != nil {
			return err
		}
	}
	return nil
}

func (s scene) dsn(cfg *mysql.Config, of arm, schema string) string {
	own := cfg.Clone()
	own.Addr, own.DBName = s.addr, schema
	dsn, params := own.FormatDSN(), of.params
	if of.driver == "shardkey" {
		params = strings.Trim(params+"&shardkeyRule=bench", "&")
	}
	switch {
	case params == "":
		return dsn
	case strings.Contains(dsn, "?"):
		return dsn + "&" + params
	}
	return dsn + "?" + params
}

// open makes what executes the arm's INSERT on each of its connections.
func (a *runningArm) open(conns int) error {
	ctx := context.Background()
	if a.gorm {
		exec, err := gormExec(a.db, a.query, a.sharding)
		for range conns {
			a.exec = append(a.exec, exec)
		}
		return err
	}
	for range conns {
		c, err := a.db.Conn(ctx)
		if err != nil {
			return err
		}
		a.conns = append(a.conns, c)
		if !a.prepared {
			a.exec = append(a.exec, func(args []any) error { _, err := c.ExecContext(ctx, a.query, args...); return err })
			continue
		}
		st, err := c.PrepareContext(ctx, a.query)
		if err != nil {
			return err
		}
		a.exec = append(a.exec, func(args []any) error { _, err := st.ExecContext(ctx, args...); return err })
	}
	return nil
}

func (a *runningArm) close() {
	for _, c := range a.conns {
		_ = c.Close()
	}
	_ = a.db.Close()
}

// inserts is one connection's part of a turn.
func (a *runningArm) inserts(s scene, conn int) error {
	for n := range s.calls {
		args := make([]any, 0, 4*s.rows)
		for row := range s.rows {
			args = append(args, int64(n), int64(row), "a note")
			if a.givesKeys() {
				args = append(args, a.node.Generate().Int64())
			}
		}
		if err := a.exec[conn](args); err != nil {
			return err
		}
	}
	return nil
}
