// Package recipe is what the examples of libraries share: a database with a ruled
// table, and a look at whether the program has the keys that the rows have.
package recipe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/embedded"
	"github.com/shardkey/shardkey/rule"
)

const ruleText = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_0.t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 5}}
`

const table = `CREATE TABLE t_order_1 (
	order_id BIGINT PRIMARY KEY,
	item VARCHAR(20) NOT NULL UNIQUE,
	amount INT NOT NULL DEFAULT 1)`

// Keys are the keys that a program has been told, by the order's item.
type Keys map[string]int64

// Run inserts orders into t_order_1 with a library, over the driver "shardkey" and
// a DSN, and notes the keys that the library tells.
type Run func(ctx context.Context, dsn string, keys Keys) error

// Main runs an example against a server within the process.
func Main(run Run) {
	if err := embed(os.Stdout, run); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func embed(out io.Writer, run Run) error {
	dsn, stop, err := embedded.Start()
	if err != nil {
		return err
	}
	return errors.Join(Do(context.Background(), out, dsn, run), stop())
}

// Do makes the table in an empty database, whose DSN is go-sql-driver's, runs the
// example and prints the keys. The error says so when a row has another key than
// the program was told.
func Do(ctx context.Context, out io.Writer, dsn string, run Run) error {
	r, err := rule.Parse("recipe", []byte(ruleText))
	if err != nil {
		return err
	}
	if err := driver.RegisterRule("recipe", r); err != nil {
		return err
	}
	plain, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer plain.Close()
	if _, err := plain.ExecContext(ctx, table); err != nil {
		return err
	}
	have := Keys{}
	if err := run(ctx, dsn+"?shardkeyRule=recipe", have); err != nil {
		return err
	}
	want, err := stored(ctx, plain)
	if err != nil {
		return err
	}
	for _, item := range slices.Sorted(maps.Keys(want)) {
		fmt.Fprintf(out, "%d  %s\n", want[item], item)
	}
	if !maps.Equal(have, want) {
		return fmt.Errorf("the program has %v, and the table %v", have, want)
	}
	fmt.Fprintf(out, "%d orders, and the program knows their keys\n", len(want))
	return nil
}

// stored reads the table without shardkey.
func stored(ctx context.Context, plain *sql.DB) (Keys, error) {
	rows, err := plain.QueryContext(ctx, "SELECT item, order_id FROM t_order_1")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	keys := Keys{}
	for rows.Next() {
		var item string
		var key int64
		if err := rows.Scan(&item, &key); err != nil {
			return nil, err
		}
		keys[item] = key
	}
	return keys, rows.Err()
}
