package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/shardkey/shardkey/keygen/snowflake"
)

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
