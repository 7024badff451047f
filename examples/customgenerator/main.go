// Command customgenerator generates keys with a custom generator. The rule refers to it by its
// type, like SNOWFLAKE:
//
//	go run -C examples ./customgenerator
//
// The generator is in generator.go. It counts in a row of a database. A counter in memory would
// start again in each process and repeat its keys.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/server"
	"github.com/shardkey/shardkey/rule"
)

const ruleText = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: app.t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: counter}
  keyGenerators:
    counter: {type: COUNTER, props: {dsn: '%s', name: orders}}
`

func main() { server.Main(run) }

func run(ctx context.Context, out io.Writer, dsn string) (err error) {
	// In production, create this table together with the sharded tables.
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close()) }()
	for _, query := range []string{countersDDL, "INSERT INTO counters VALUES ('orders', 0)",
		"CREATE TABLE t_order_0 (order_id BIGINT PRIMARY KEY, item VARCHAR(20))",
		"CREATE TABLE t_order_1 (order_id BIGINT PRIMARY KEY, item VARCHAR(20))"} {
		if _, err := admin.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	r, err := rule.Parse("customgenerator", fmt.Appendf(nil, ruleText, dsn))
	if err != nil {
		return err
	}
	if err := driver.RegisterRule("customgenerator", r); err != nil {
		return err
	}
	// Open the database twice, like a program that restarts. The counter continues.
	for _, table := range []string{"t_order_0", "t_order_1"} {
		db, err := sql.Open("shardkey", dsn+"?shardkeyRule=customgenerator")
		if err != nil {
			return err
		}
		if err := errors.Join(insert(ctx, out, db, table), db.Close()); err != nil {
			return err
		}
	}
	return nil
}

func insert(ctx context.Context, out io.Writer, db *sql.DB, table string) error {
	for _, values := range []string{"('tea')", "('milk'), ('sugar'), ('lemon')"} {
		var keys driver.Keys
		_, err := db.ExecContext(driver.WithKeys(ctx, &keys), "INSERT INTO "+table+" (item) VALUES "+values)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, table, values, "got the keys", keys.Values())
	}
	return nil
}
