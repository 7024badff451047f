package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/keygen/snowflake"
)

// shop is a program's database with two tables for orders.
type shop struct {
	db     *sql.DB
	shown  string // the DSN without the password
	tables []string
}

// openShop opens the database and creates the tables, which must not exist yet. It adds param to
// the DSN.
func openShop(ctx context.Context, cfg *mysql.Config,
	driverName, param, keyColumn string, tables ...string) (*shop, error) {
	shown := cfg.Clone()
	if shown.Passwd != "" {
		shown.Passwd = "..."
	}
	s := &shop{shown: withParam(shown.FormatDSN(), param)}
	var err error
	if s.db, err = sql.Open(driverName, withParam(cfg.FormatDSN(), param)); err != nil {
		return nil, err
	}
	for _, table := range tables {
		_, err := s.db.ExecContext(ctx, "CREATE TABLE "+table+
			" (order_id "+keyColumn+", user_id INT NOT NULL, item VARCHAR(20) NOT NULL)")
		if err != nil {
			const tableExists = 1050
			if refused := (*mysql.MySQLError)(nil); errors.As(err, &refused) && refused.Number == tableExists {
				err = fmt.Errorf("it exists already in database %s; use -dsn with an empty database", cfg.DBName)
			}
			return nil, errors.Join(fmt.Errorf("create table %s: %w", table, err), s.close())
		}
		s.tables = append(s.tables, table)
	}
	return s, nil
}

func withParam(dsn, param string) string {
	switch {
	case param == "":
		return dsn
	case strings.Contains(dsn[strings.LastIndex(dsn, "/"):], "?"):
		return dsn + "&" + param
	}
	return dsn + "?" + param
}

// close drops the tables that openShop created, and closes the database.
func (s *shop) close() (err error) {
	for _, table := range s.tables {
		_, dropErr := s.db.Exec("DROP TABLE " + table)
		err = errors.Join(err, dropErr)
	}
	return errors.Join(err, s.db.Close())
}

// order is an inserted row, with the keys that the program received.
type order struct {
	table, how string
	item       string
	key        int64 // key in the table
	row        int   // position in its statement, from 1
	lastInsert int64 // LastInsertId of the statement
	withKeys   any   // entry of the row in driver.Keys, or nil
}

// insert inserts orders into both tables: single rows, a batch, and with a prepared statement.
// The statements are the same as with AUTO_INCREMENT.
func (s *shop) insert(ctx context.Context) (orders []order, err error) {
	for shard, table := range s.tables {
		inserted, err := s.insertInto(ctx, table, shard)
		if err != nil {
			return nil, err
		}
		orders = append(orders, inserted...)
	}
	return orders, nil
}

func (s *shop) insertInto(ctx context.Context, table string, shard int) (orders []order, err error) {
	query := "INSERT INTO " + table + " (user_id, item) VALUES "
	prepared, err := s.db.PrepareContext(ctx, query+"(?, ?)")
	if err != nil {
		return nil, err
	}
	defer prepared.Close()

	a, b, c := shard, shard+2, shard+4 // shard 0 has the users with even numbers
	for _, statement := range []struct {
		how  string
		exec func(context.Context) (sql.Result, error)
	}{
		{"single", func(ctx context.Context) (sql.Result, error) {
			return s.db.ExecContext(ctx, query+"(?, ?)", a, "tea")
		}},
		{"literal", func(ctx context.Context) (sql.Result, error) {
			return s.db.ExecContext(ctx, fmt.Sprintf("%s(%d, 'cups')", query, b))
		}},
		{"batch", func(ctx context.Context) (sql.Result, error) {
			return s.db.ExecContext(ctx, query+"(?, ?), (?, ?), (?, ?)", a, "milk", b, "sugar", c, "lemon")
		}},
		{"prepared", func(ctx context.Context) (sql.Result, error) { return prepared.ExecContext(ctx, b, "spoons") }},
		{"prepared", func(ctx context.Context) (sql.Result, error) { return prepared.ExecContext(ctx, c, "biscuits") }},
	} {
		var keys driver.Keys
		result, err := statement.exec(driver.WithKeys(ctx, &keys))
		if err != nil {
			return nil, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return nil, err
		}
		id, err := result.LastInsertId()
		if err != nil {
			return nil, err
		}
		for i := range int(n) {
			o := order{table: table, how: statement.how, row: i + 1, lastInsert: id}
			if values := keys.Values(); i < len(values) {
				o.withKeys = values[i]
			}
			orders = append(orders, o)
		}
	}
	return orders, s.readKeys(ctx, table, orders)
}

// readKeys reads the keys of the rows, in the order of insertion. The keys of one generator
// ascend, and so do those of AUTO_INCREMENT.
func (s *shop) readKeys(ctx context.Context, table string, orders []order) error {
	rows, err := s.db.QueryContext(ctx, "SELECT order_id, item FROM "+table+" ORDER BY order_id")
	if err != nil {
		return err
	}
	defer rows.Close()
	for i := range orders {
		if !rows.Next() {
			return fmt.Errorf("%s: expected %d rows, found %d", table, len(orders), i)
		}
		if err := rows.Scan(&orders[i].key, &orders[i].item); err != nil {
			return err
		}
	}
	return rows.Err()
}

// line returns a line for a table whose columns have these widths.
func line(widths ...int) string {
	text := ""
	for _, width := range widths {
		text += "  " + strings.Repeat("─", width)
	}
	return text
}

// printOrders prints each row with the parts of its key, and the key that the program received.
// It returns an error if that is not the row's key.
func printOrders(out io.Writer, orders []order) error {
	const format = "  %-9s  %-8s  %3v  %19v  %-23s  %6v  %3v  %19v  %19v\n"
	fmt.Fprintf(out, format, "table", "insert", "row", "key", "time (UTC)", "worker", "seq", "LastInsertId", "WithKeys")
	under := line(9, 8, 3, 19, 23, 6, 3, 19, 19)
	var wrong error
	for i, o := range orders {
		if i == 0 || o.table != orders[i-1].table {
			fmt.Fprintln(out, under)
		}
		parts, err := snowflake.Decode(snowflake.Classic, snowflake.DefaultEpoch, o.key)
		if err != nil {
			return err
		}
		var first any = ""
		if o.row == 1 { // LastInsertId is the key of the statement's first row
			first = o.lastInsert
		}
		fmt.Fprintf(out, format, o.table, o.how, o.row, o.key, parts.Time.UTC().Format("2006-01-02 15:04:05.000"),
			parts.WorkerID, parts.Sequence, first, o.withKeys)
		if o.withKeys != o.key || o.row == 1 && o.lastInsert != o.key {
			wrong = fmt.Errorf("row %d of %s has key %d, but LastInsertId is %d and WithKeys has %v",
				i+1, o.table, o.key, o.lastInsert, o.withKeys)
		}
	}
	return wrong
}

// printShards prints the keys of the two tables side by side.
func printShards(out io.Writer, orders []order) {
	const format = "  %-8s  %9v  %9v%s\n"
	half := len(orders) / 2
	left, right := orders[:half], orders[half:]
	fmt.Fprintf(out, format, "item", left[0].table, right[0].table, "")
	fmt.Fprintln(out, line(8, 9, 9, 18))
	for i := range left {
		note := ""
		if left[i].key == right[i].key {
			note = "  the same key twice"
		}
		fmt.Fprintf(out, format, left[i].item, left[i].key, right[i].key, note)
	}
}

// printRepeats prints how many keys repeat with AUTO_INCREMENT and with shardkey. It returns an
// error if a key of shardkey repeats.
func printRepeats(out io.Writer, orders, counters []order) error {
	ours, theirs := repeated(orders), repeated(counters)
	fmt.Fprintf(out, "\n  AUTO_INCREMENT   %2d rows, %2d keys repeat across the shards\n", len(counters), theirs)
	fmt.Fprintf(out, "  shardkey         %2d rows, %2d keys repeat across the shards\n", len(orders), ours)
	if ours > 0 {
		return errRepeat
	}
	return nil
}

// repeated returns the number of keys that several rows have.
func repeated(orders []order) (n int) {
	rows := map[int64]int{}
	for _, o := range orders {
		if rows[o.key]++; rows[o.key] == 2 {
			n++
		}
	}
	return n
}
