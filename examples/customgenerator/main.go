// Command customgenerator fills keys with a generator of one's own, which a
// sharding rule names by its type as it names SNOWFLAKE:
//
//	go run -C examples ./customgenerator
//
// generator.go is the generator. It counts in a row of one database: a counter
// in memory would begin again with each process, and repeat its keys.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/embedded"
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

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "customgenerator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	dsn, stop, err := embedded.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	if err := makeCounter(ctx, dsn); err != nil {
		return err
	}
	// Twice, as if the program were started again: the keys go on.
	for _, table := range []string{"t_order_0", "t_order_1"} {
		if err := start(ctx, out, dsn, table); err != nil {
			return err
		}
	}
	return nil
}

// makeCounter makes the counter's row; a real one is made once, by whoever makes
// the tables.
func makeCounter(ctx context.Context, dsn string) (err error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, countersDDL); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO counters VALUES ('orders', 0)")
	return err
}

// start is what a program does: it opens the database with its rule and inserts.
func start(ctx context.Context, out io.Writer, dsn, table string) (err error) {
	r, err := rule.Parse("customgenerator", fmt.Appendf(nil, ruleText, dsn))
	if err != nil {
		return err
	}
	if err := driver.RegisterRule("customgenerator", r); err != nil {
		return err
	}
	defer driver.DeregisterRule("customgenerator")
	db, err := sql.Open("shardkey", dsn+"?shardkeyRule=customgenerator")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	return insert(ctx, out, db, table)
}

func insert(ctx context.Context, out io.Writer, db *sql.DB, table string) error {
	if _, err := db.ExecContext(ctx, "CREATE TABLE "+table+" (order_id BIGINT PRIMARY KEY, item VARCHAR(20))"); err != nil {
		return err
	}
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
