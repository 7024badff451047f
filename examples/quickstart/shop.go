package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/keygen/snowflake"
)

// sell creates tables, which must not exist yet, inserts orders into them, and drops them.
func sell(ctx context.Context, driverName, dsn, keyColumn string, tables ...string) (orders []order, err error) {
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for shard, table := range tables {
		_, err := db.ExecContext(ctx, "CREATE TABLE "+table+
			" (order_id "+keyColumn+", user_id INT NOT NULL, item VARCHAR(20) NOT NULL)")
		const tableExists = 1050
		if refused, ok := errors.AsType[*mysql.MySQLError](err); ok && refused.Number == tableExists {
			err = errors.New("it exists already; use -dsn with an empty database")
		}
		if err != nil {
			return nil, fmt.Errorf("create table %s: %w", table, err)
		}
		defer db.Exec("DROP TABLE " + table)
		inserted, err := insert(ctx, db, table, shard)
		if err != nil {
			return nil, err
		}
		orders = append(orders, inserted...)
	}
	return orders, nil
}

// order is an inserted row, with the keys that the program received.
type order struct {
	table, how string
	item       string
	key        int64 // key in the table
	lastInsert any   // LastInsertId in a statement's first row, otherwise ""
	withKeys   any   // entry of the row in driver.Keys, or nil
}

// insert inserts orders into a table: single rows, a batch, and with a prepared statement. The
// statements are the same as with AUTO_INCREMENT.
func insert(ctx context.Context, db *sql.DB, table string, shard int) (orders []order, err error) {
	query := "INSERT INTO " + table + " (user_id, item) VALUES "
	prepared, err := db.PrepareContext(ctx, query+"(?, ?)")
	if err != nil {
		return nil, err
	}
	defer prepared.Close()
	a, b, c := shard, shard+2, shard+4 // shard 0 has the users with even numbers
	for _, statement := range []struct {
		how, values string // without values, the statement is the prepared one
		args        []any
	}{
		{"single", "(?, ?)", []any{a, "tea"}},
		{"literal", fmt.Sprintf("(%d, 'cups')", b), nil},
		{"batch", "(?, ?), (?, ?), (?, ?)", []any{a, "milk", b, "sugar", c, "lemon"}},
		{"prepared", "", []any{b, "spoons"}},
		{"prepared", "", []any{c, "biscuits"}},
	} {
		var keys driver.Keys
		var result sql.Result
		if ctx := driver.WithKeys(ctx, &keys); statement.values == "" {
			result, err = prepared.ExecContext(ctx, statement.args...)
		} else {
			result, err = db.ExecContext(ctx, query+statement.values, statement.args...)
		}
		if err != nil {
			return nil, err
		}
		inserted, err := read(ctx, db, table, result, keys.Values())
		if err != nil {
			return nil, err
		}
		for _, o := range inserted {
			o.table, o.how = table, statement.how
			orders = append(orders, o)
		}
	}
	return orders, nil
}

// read reads the rows that the last statement inserted. Their keys follow LastInsertId, because
// the keys of one generator ascend, and so do those of AUTO_INCREMENT.
func read(ctx context.Context, db *sql.DB, table string, result sql.Result, keys []any) (orders []order, err error) {
	id, err := result.LastInsertId()
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT order_id, item FROM "+table+" WHERE order_id >= ? ORDER BY order_id", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for i := 0; rows.Next(); i++ {
		o := order{lastInsert: ""}
		if err := rows.Scan(&o.key, &o.item); err != nil {
			return nil, err
		}
		if i == 0 {
			o.lastInsert = id
		}
		if i < len(keys) {
			o.withKeys = keys[i]
		}
		orders = append(orders, o)
	}
	return orders, rows.Err()
}

// printOrders prints each row with the parts of its key, and the key that the program received.
// It returns an error if that is not the row's key.
func printOrders(out io.Writer, orders []order) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "table\tinsert\tkey\ttime (UTC)\tworker\tseq\tLastInsertId\tWithKeys")
	for _, o := range orders {
		parts, err := snowflake.Decode(snowflake.Classic, snowflake.DefaultEpoch, o.key)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%d\t%v\t%v\n", o.table, o.how, o.key,
			parts.Time.UTC().Format("2006-01-02 15:04:05.000"), parts.WorkerID, parts.Sequence, o.lastInsert, o.withKeys)
		if o.withKeys != o.key || o.lastInsert != "" && o.lastInsert != o.key {
			return fmt.Errorf("%s in %s has key %d, but LastInsertId is %v and WithKeys has %v",
				o.item, o.table, o.key, o.lastInsert, o.withKeys)
		}
	}
	return nil
}

// printShards prints the keys of the two tables side by side.
func printShards(out io.Writer, orders []order) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	left, right := orders[:len(orders)/2], orders[len(orders)/2:]
	fmt.Fprintf(w, "item\t%s\t%s\t\n", left[0].table, right[0].table)
	for i := range left {
		note := ""
		if left[i].key == right[i].key {
			note = "the same key twice"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", left[i].item, left[i].key, right[i].key, note)
	}
}

// printRepeats prints how many keys repeat with AUTO_INCREMENT and with shardkey. It returns an
// error if a key of shardkey repeats.
func printRepeats(out io.Writer, orders, counters []order) error {
	ours, theirs := repeated(orders), repeated(counters)
	fmt.Fprintf(out, "\n  AUTO_INCREMENT   %2d rows, %2d keys repeat across the shards\n", len(counters), theirs)
	fmt.Fprintf(out, "  shardkey         %2d rows, %2d keys repeat across the shards\n", len(orders), ours)
	if ours > 0 {
		return errors.New("two rows have the same key")
	}
	return nil
}

// repeated returns the number of rows whose key is that of an earlier row.
func repeated(orders []order) int {
	distinct := map[int64]bool{}
	for _, o := range orders {
		distinct[o.key] = true
	}
	return len(orders) - len(distinct)
}
