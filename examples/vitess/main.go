// Command vitess uses shardkey with Vitess. vtgate routes the rows of a keyspace with four
// shards. The program compares the reported keys with the rows in the shards.
//
//	go run -C examples ./vitess
//	go run -C examples ./vitess -over mariadb
//
// It starts its own MySQL or MariaDB, and Vitess' vtcombo, on 127.0.0.1. When it ends or is
// interrupted, it stops them and removes their files. The server is MySQL 9.7 or MariaDB
// 10.11, which "make servers" downloads on Debian. The first run builds vtcombo from Vitess'
// module, which takes two to three minutes on two cores and downloads 100 MB.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/engines"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	_ "github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/rule"
)

func main() {
	over := flag.String("over", "mysql", "`server` of the shards: mysql or mariadb")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Stderr, *over)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vitess:", err)
		os.Exit(1)
	}
}

var shards = []string{"-40", "40-80", "80-c0", "c0-"}

const vschema = `{
  "sharded": true,
  "vindexes": {"xxhash": {"type": "xxhash"}},
  "tables": {"t_order": {"column_vindexes": [{"column": "user_id", "name": "xxhash"}]}}
}`

const ruleText = `
rules:
- !SHARDING
  tables:
    t_order:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 123}}
`

// statements have two arguments for each row.
var statements = []struct {
	name, text string
	rows       []order
}{
	{"one row", "INSERT INTO t_order (user_id, item) VALUES (?, ?)", []order{{11, "pen"}}},
	{"three rows", "INSERT INTO t_order (user_id, item) VALUES (?, ?), (?, ?), (?, ?)",
		[]order{{12, "ink"}, {17, "cup"}, {14, "bag"}}},
	{"IGNORE, the first exists", "INSERT IGNORE INTO t_order (user_id, item) VALUES (?, ?), (?, ?), (?, ?)",
		[]order{{11, "pen"}, {18, "cap"}, {16, "map"}}},
	{"upsert of an existing row", "INSERT INTO t_order (user_id, item) VALUES (?, ?) ON DUPLICATE KEY UPDATE n = n + 1",
		[]order{{11, "pen"}}},
}

// order is a row. Each user has one.
type order struct {
	user int64
	item string
}

func run(ctx context.Context, out, progress io.Writer, over string) error {
	kind, ok := map[string]testserver.Kind{"mysql": testserver.KindMySQL, "mariadb": testserver.KindMariaDB}[over]
	if !ok {
		return fmt.Errorf("-over: expected mysql or mariadb, found %s", over)
	}
	fmt.Fprintf(progress, "starting %s and Vitess\n", kind)
	v, err := engines.NewVitess(progress, kind, engines.Keyspace{Name: "app", Shards: shards, VSchema: vschema})
	if err != nil {
		return err
	}
	defer v.Close()
	err = engines.Run(v.DSN("app"), "CREATE TABLE t_order (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, "+
		"item VARCHAR(20) NOT NULL, n INT NOT NULL DEFAULT 1, UNIQUE KEY (user_id, item))")
	if err != nil {
		return err
	}
	r, err := rule.Parse("rule.yaml", []byte(ruleText))
	if err != nil {
		return err
	}
	if err := driver.RegisterRule("orders", r); err != nil {
		return err
	}
	db, err := sql.Open("shardkey", v.DSN("app")+"?shardkeyRule=orders")
	if err != nil {
		return err
	}
	defer db.Close()
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	defer w.Flush() // an error means that the output is closed
	fmt.Fprintln(w, "statement\tshard\trow\tkey\tWithKeys\tLastInsertId\t")
	for _, s := range statements {
		var args []any
		for _, row := range s.rows {
			args = append(args, row.user, row.item)
		}
		var keys driver.Keys
		res, err := db.ExecContext(driver.WithKeys(ctx, &keys), s.text, args...)
		if err != nil {
			return fmt.Errorf("%s: %w", s.text, err)
		}
		id, err := res.LastInsertId()
		if err != nil {
			return err
		}
		for i, row := range s.rows {
			shard, key, err := find(ctx, v, row)
			if err != nil {
				return err
			}
			var reported any // nil if the row was not inserted
			if values := keys.Values(); i < len(values) {
				reported = values[i]
			}
			fmt.Fprintf(w, "%s\t%s\tuser %d, %s\t%d\t%v\t%d\t\n", s.name, shard, row.user, row.item, key, reported, id)
			if reported != nil && reported != key {
				return fmt.Errorf("%s: expected the key %d, found %v", s.text, key, reported)
			}
		}
	}
	return nil
}

func find(ctx context.Context, v *engines.Vitess, row order) (shard string, key int64, err error) {
	for _, shard := range shards {
		db, err := sql.Open("mysql", v.ShardDSN("app", shard))
		if err != nil {
			return "", 0, err
		}
		query := "SELECT id FROM t_order WHERE user_id = ? AND item = ?"
		err = db.QueryRowContext(ctx, query, row.user, row.item).Scan(&key)
		err = errors.Join(err, db.Close())
		if !errors.Is(err, sql.ErrNoRows) {
			return shard, key, err
		}
	}
	return "", 0, fmt.Errorf("no shard has %v", row)
}
