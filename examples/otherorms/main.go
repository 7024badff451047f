// Command otherorms inserts with sqlx, bun, ent and xorm, one after another:
//
//	go run -C examples ./otherorms
//
// Each library has a file with the lines to change. docs/guides/libraries.md compares how the
// libraries get the generated keys.
package main

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
	"github.com/shardkey/shardkey/examples/internal/server"
	"github.com/shardkey/shardkey/rule"
)

const ruleText = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: app.t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 5}}
`

const table = `CREATE TABLE t_order_1 (
	order_id BIGINT PRIMARY KEY,
	item VARCHAR(20) NOT NULL UNIQUE,
	amount INT NOT NULL DEFAULT 1)`

// libraries insert orders into t_order_1: single orders, batches, and in transactions. Each
// returns the reported keys by item.
var libraries = []struct {
	name   string
	insert func(ctx context.Context, dsn string) (map[string]int64, error)
}{
	{"sqlx", withSQLX},
	{"bun", withBun},
	{"ent", withEnt},
	{"xorm", withXORM},
}

func main() {
	dsn, stop, err := server.Start()
	if err == nil {
		err = errors.Join(run(context.Background(), os.Stdout, dsn), stop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "otherorms:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, dsn string) error {
	r, err := rule.Parse("otherorms", []byte(ruleText))
	if err != nil {
		return err
	}
	if err := driver.RegisterRule("otherorms", r); err != nil {
		return err
	}
	defer driver.DeregisterRule("otherorms")
	plain, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer plain.Close()
	for _, library := range libraries {
		if _, err := plain.ExecContext(ctx, table); err != nil {
			return err
		}
		have, err := library.insert(ctx, dsn+"?shardkeyRule=otherorms")
		if err != nil {
			return fmt.Errorf("%s: %w", library.name, err)
		}
		want, err := stored(ctx, plain)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s reports the keys of its %d orders\n", library.name, len(have))
		for _, item := range slices.Sorted(maps.Keys(want)) {
			fmt.Fprintf(out, "  %d  %s\n", want[item], item)
		}
		if !maps.Equal(have, want) {
			return fmt.Errorf("%s: expected the keys %v of the table, found %v", library.name, want, have)
		}
		if _, err := plain.ExecContext(ctx, "DROP TABLE t_order_1"); err != nil {
			return err
		}
	}
	return nil
}

// stored reads the keys in the table without shardkey.
func stored(ctx context.Context, plain *sql.DB) (map[string]int64, error) {
	rows, err := plain.QueryContext(ctx, "SELECT item, order_id FROM t_order_1")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	keys := map[string]int64{}
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
