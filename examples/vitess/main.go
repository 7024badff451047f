// Command vitess uses shardkey with Vitess. vtgate routes the rows of a keyspace with four
// shards. The program compares shardkey's keys with those of Vitess' sequences.
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
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/engines"
	"github.com/shardkey/shardkey/internal/testserver"
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

// appVSchema shards both tables by user. The keys of one table come from shardkey, the keys of
// the other from a sequence.
const appVSchema = `{
  "sharded": true,
  "vindexes": {"xxhash": {"type": "xxhash"}},
  "tables": {
    "t_order": {"column_vindexes": [{"column": "user_id", "name": "xxhash"}]},
    "t_seq":   {"column_vindexes": [{"column": "user_id", "name": "xxhash"}],
                "auto_increment": {"column": "id", "sequence": "lookup.seq"}}
  }
}`

const lookupVSchema = `{"tables": {"seq": {"type": "sequence"}}}`

const ruleText = `
rules:
- !SHARDING
  tables:
    t_order:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 123}}
`

// statements are executed for both tables, with two arguments for each row.
var statements = []struct {
	name, text string
	rows       []order
}{
	{"one row", "INSERT INTO %s (user_id, item) VALUES (?, ?)", []order{{11, "pen"}}},
	{"three rows", "INSERT INTO %s (user_id, item) VALUES (?, ?), (?, ?), (?, ?)",
		[]order{{12, "ink"}, {17, "cup"}, {14, "bag"}}},
	{"IGNORE, the first exists", "INSERT IGNORE INTO %s (user_id, item) VALUES (?, ?), (?, ?), (?, ?)",
		[]order{{11, "pen"}, {18, "cap"}, {16, "map"}}},
	{"upsert of an existing row", "INSERT INTO %s (user_id, item) VALUES (?, ?) ON DUPLICATE KEY UPDATE n = n + 1",
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
	v, err := engines.NewVitess(progress, kind,
		engines.Keyspace{Name: "app", Shards: shards, VSchema: appVSchema},
		engines.Keyspace{Name: "lookup", Shards: []string{"0"}, VSchema: lookupVSchema})
	if err != nil {
		return err
	}
	defer v.Close()
	const columns = "(id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, item VARCHAR(20) NOT NULL, " +
		"n INT NOT NULL DEFAULT 1, UNIQUE KEY (user_id, item))"
	err = errors.Join(
		engines.Run(v.DSN("lookup"),
			"CREATE TABLE seq (id BIGINT PRIMARY KEY, next_id BIGINT, cache BIGINT) COMMENT 'vitess_sequence'",
			"INSERT INTO seq (id, next_id, cache) VALUES (0, 1, 1000)"),
		engines.Run(v.DSN("app"), "CREATE TABLE t_order "+columns, "CREATE TABLE t_seq "+columns))
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
	ours, err := try(ctx, v, "shardkey", v.DSN("app")+"?shardkeyRule=orders", "t_order")
	if err != nil {
		return err
	}
	theirs, err := try(ctx, v, "mysql", v.DSN("app"), "t_seq")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Keys of shardkey (SNOWFLAKE): %d shards, sharded by user_id\n\n", len(shards))
	show(out, ours, true)
	fmt.Fprint(out, "\nThe same statements with a sequence of Vitess\n\n")
	show(out, theirs, false)
	return verdict(out, ours, theirs)
}

// outcome is the result of a statement for one of its rows.
type outcome struct {
	statement string
	first     bool // the row is the first of its statement
	row       order
	shard     string
	key       int64
	withKeys  any   // nil if there are no keys
	lastID    int64 // LastInsertId
	session   int64 // LAST_INSERT_ID()
	inNoRow   bool  // LastInsertId is not the key of a row of the statement
}

// try executes all statements on a table, and finds the shards of the rows.
func try(ctx context.Context, v *engines.Vitess, driverName, dsn, table string) ([]outcome, error) {
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var all []outcome
	for _, s := range statements {
		var args []any
		for _, row := range s.rows {
			args = append(args, row.user, row.item)
		}
		var keys driver.Keys
		text := strings.Replace(s.text, "%s", table, 1)
		res, err := conn.ExecContext(driver.WithKeys(ctx, &keys), text, args...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		id, err := res.LastInsertId()
		if err != nil {
			return nil, err
		}
		var session int64
		if err := conn.QueryRowContext(ctx, "SELECT LAST_INSERT_ID()").Scan(&session); err != nil {
			return nil, err
		}
		begin := len(all)
		for i, row := range s.rows {
			o := outcome{statement: s.name, first: i == 0, row: row, lastID: id, session: session}
			if values := keys.Values(); i < len(values) {
				o.withKeys = values[i]
			}
			if o.shard, o.key, err = find(ctx, v, table, row); err != nil {
				return nil, err
			}
			all = append(all, o)
		}
		known := slices.ContainsFunc(all[begin:], func(o outcome) bool { return o.key == id })
		for i := range all[begin:] {
			all[begin+i].inNoRow = id != 0 && !known
		}
	}
	return all, nil
}

// find returns the shard and the key of a row.
func find(ctx context.Context, v *engines.Vitess, table string, row order) (shard string, key int64, err error) {
	for _, shard := range shards {
		db, err := sql.Open("mysql", v.ShardDSN("app", shard))
		if err != nil {
			return "", 0, err
		}
		query := "SELECT id FROM " + table + " WHERE user_id = ? AND item = ?"
		err = db.QueryRowContext(ctx, query, row.user, row.item).Scan(&key)
		err = errors.Join(err, db.Close())
		if !errors.Is(err, sql.ErrNoRows) {
			return shard, key, err
		}
	}
	return "", 0, fmt.Errorf("no shard has %v", row)
}

func show(out io.Writer, all []outcome, withKeys bool) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "  statement\tshard\trow\tkey\tWithKeys\tLastInsertId\tLAST_INSERT_ID()\t")
	for _, o := range all {
		known := "not known"
		if o.withKeys != nil {
			known = fmt.Sprint(o.withKeys)
		} else if withKeys {
			known = "not inserted"
		}
		statement, ids := "", "\t\t"
		if o.first {
			statement, ids = o.statement, fmt.Sprintf("%d\t%d\t", o.lastID, o.session)
			if o.inNoRow {
				ids += "LastInsertId is the key of none of these rows"
			}
		}
		fmt.Fprintf(w, "  %s\t%s\tuser %d, %s\t%d\t%s\t%s\n",
			statement, o.shard, o.row.user, o.row.item, o.key, known, ids)
	}
	_ = w.Flush() // an error means that the output is closed
}

var errWrong = errors.New("shardkey reported a wrong key")

// verdict counts the statements whose LastInsertId is not the key of one of their rows. It
// returns an error if shardkey has such a statement, or a wrong key in WithKeys.
func verdict(out io.Writer, ours, theirs []outcome) error {
	wrong := func(all []outcome) (n int) {
		for _, o := range all {
			if o.first && o.inNoRow || o.withKeys != nil && o.withKeys != o.key {
				n++
			}
		}
		return n
	}
	fmt.Fprintf(out, "\n  statements with a LastInsertId that is in none of their rows: sequence %d, shardkey %d\n",
		wrong(theirs), wrong(ours))
	if wrong(ours) > 0 {
		return errWrong
	}
	return nil
}
