// Command customgenerator fills keys with a generator of one's own, which a
// sharding rule names by its type as it names SNOWFLAKE:
//
//	go run -C examples ./customgenerator
//
// generator.go is the generator. It counts in memory, which serves to be looked
// at and nothing else: it begins again with each connector.
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
      keyGenerateStrategy: {column: order_id, keyGeneratorName: clock}
  keyGenerators:
    clock: {type: TICKTOCK}
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

	r, err := rule.Parse("customgenerator", []byte(ruleText))
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

	for _, table := range []string{"t_order_0", "t_order_1"} {
		if err := insert(ctx, out, db, table); err != nil {
			return err
		}
	}
	return nil
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
