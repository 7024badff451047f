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
	"fmt"
	"io"
	"maps"
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
    snowflake: {type: SNOWFLAKE, props: {worker-id: 5}} # for one process
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

func main() { server.Main(run) }

func run(ctx context.Context, out io.Writer, dsn string) error {
	r, err := rule.Parse("otherorms", []byte(ruleText))
	if err != nil {
		return err
	}
	if err := driver.RegisterRule("otherorms", r); err != nil {
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
	for _, library := range libraries {
		if _, err := plain.ExecContext(ctx, "DELETE FROM t_order_1"); err != nil {
			return err
		}
		keys, err := library.insert(ctx, dsn+"?shardkeyRule=otherorms")
		if err != nil {
			return fmt.Errorf("%s: %w", library.name, err)
		}
		fmt.Fprintf(out, "%s reports the keys of its %d orders\n", library.name, len(keys))
		for _, item := range slices.Sorted(maps.Keys(keys)) {
			fmt.Fprintf(out, "  %d  %s\n", keys[item], item)
			var stored string
			err := plain.QueryRowContext(ctx, "SELECT item FROM t_order_1 WHERE order_id = ?", keys[item]).Scan(&stored)
			if err != nil || stored != item {
				return fmt.Errorf("%s: expected %s with key %d, found %q, %v", library.name, item, keys[item], stored, err)
			}
		}
	}
	return nil
}
